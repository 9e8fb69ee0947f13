"""`fairlead status`: list what there is of claims and settings, once or whenever something changes, and show it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from apis import names
from fairlead.cluster import connected, refuse_unknown_namespace
from fairlead.discovery import Discovery
from fairlead.fleet import Fleet, Listed, Member, State, counts_of, fleet_of
from fairlead.imports.following import Followed
from fairlead.kube_options import USUAL, Server
from fairlead.layout import fitted, table
from fairlead.tree import age_text
from runtime import clock
from runtime.errors import Forbidden, NotFound
from runtime.kube import Kube, Selection
from runtime.objects import Object, Resource, loads
from runtime.text import readable

SCHEMA_VERSION: Final = 1
By = Literal["composition", "namespace", "cloud"]
# What a screen holds: rows, and characters of a cause.
_MOST_ROWS: Final = 20
_MOST_CHARACTERS: Final = 240
_BY_HAND: Final = f"!{names.CLAIM_LABEL}"
_SETTLED_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose claims: of one namespace, or with an empty one of all."""

    namespace: str
    server: Server = USUAL


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds of a fleet, each with how it is listed."""

    claims: tuple[Resource, ...]
    managed: tuple[Resource, ...]
    configs: tuple[Resource, ...]

    def selections(self, namespace: str) -> Iterator[tuple[str, Resource, Selection]]:
        """Yield by which lists the fleet is read, each with the field of `Listed` that it is of."""
        yield from (("claims", kind, Selection(namespace=namespace)) for kind in self.claims)
        yield from (("managed", kind, Selection(namespace=namespace, labels=_BY_HAND)) for kind in self.managed)
        yield "compositions", names.COMPOSITIONS, Selection()
        yield "revisions", names.REVISIONS, Selection()
        yield from (("configs", kind, Selection()) for kind in self.configs)


async def status(scope: Scope) -> Fleet:
    """Return how the fleet fares now. Raises CommandError and ApiError."""
    async with connected(scope.server) as kube:
        fleet = fleet_of(await looked_at(kube, await kinds_of(kube), scope), clock.now())
        if scope.namespace and not fleet.members:
            await refuse_unknown_namespace(kube, scope.namespace)
        return fleet


async def statuses(scope: Scope) -> AsyncIterator[Fleet]:
    """Yield how the fleet fares whenever that changes; what changes within a second is one change."""
    async with connected(scope.server) as kube:
        selections = list((await kinds_of(kube)).selections(scope.namespace))
        lists = await asyncio.gather(*(_may_list(kube, resource, selection) for _, resource, selection in selections))
        seen = [selection for selection, is_allowed in zip(selections, lists, strict=True) if is_allowed]
        places = [(resource, selection.namespace) for _, resource, selection in seen]
        labels = {resource: selection.labels for _, resource, selection in seen}
        before: Fleet | None = None
        async with Followed.begin(kube, places, labels) as followed:
            while True:
                objects = [followed.all_of(resource, selection.namespace) for _, resource, selection in seen]
                fleet = fleet_of(_listed([of for of, _, _ in seen], objects), clock.now())
                if fleet != before:
                    yield fleet
                before = fleet
                await followed.change()
                await asyncio.sleep(_SETTLED_S)


async def kinds_of(kube: Kube) -> Kinds:
    """Ask which kinds there are of claims, managed resources and ProviderConfigs."""
    discovery = Discovery(kube)
    claims, managed, configs = (
        await discovery.claim_kinds(),
        await discovery.managed_kinds(),
        await discovery.config_kinds(),
    )
    return Kinds(tuple(claims), tuple(managed), tuple(configs))


async def looked_at(kube: Kube, kinds: Kinds, scope: Scope) -> Listed:
    """List the fleet, each kind once. Raises ApiError."""
    wanted = list(kinds.selections(scope.namespace))
    lists = await asyncio.gather(*(_list(kube, resource, selection) for _, resource, selection in wanted))
    return _listed([of for of, _, _ in wanted], lists)


def _listed(fields: Iterable[str], lists: Iterable[list[Object]]) -> Listed:
    """Put lists together, each into its field."""
    listed: dict[str, list[Object]] = {}
    for field, objects in zip(fields, lists, strict=True):
        listed.setdefault(field, []).extend(objects)
    return Listed(**{field: tuple(objects) for field, objects in listed.items()})


async def _may_list(kube: Kube, resource: Resource, selection: Selection) -> bool:
    """Return whether a person may list a kind; of claims that it cannot be is an error."""
    try:
        await kube.list_page(resource, replace(selection, metadata_only=True), limit=1)
    except (Forbidden, NotFound):
        if resource.namespaced and resource.group in names.CLAIM_GROUPS:
            raise
        return False
    return True


async def _list(kube: Kube, resource: Resource, selection: Selection) -> list[Object]:
    """List objects, each with its kind; none of what a person may not see of the platform's own settings."""
    about, token, objects = {"apiVersion": resource.api_version, "kind": resource.kind}, "", list[Object]()
    try:
        while True:
            page = await kube.list_page(resource, selection, next_page=token)
            objects += [about | loads(item) for item in page.items]
            token = page.next_page
            if not token:
                return objects
    except (Forbidden, NotFound):
        if resource.namespaced and resource.group in names.CLAIM_GROUPS:
            raise
        return objects


def lines_of(fleet: Fleet, by: By, columns: int, now: datetime, *, wide: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the lines of one screen, each with whether a person is needed for what it says."""
    claims = len(fleet.members) - fleet.by_hand
    by_hand = f", {_count(fleet.by_hand, 'managed resource')} made by hand" if fleet.by_hand else ""
    needing = sum(member.needs_person for member in fleet.not_well)
    need = "nothing needs a person" if not needing else f"{needing} need{'s' if needing == 1 else ''} a person"
    yield f"{_count(claims, 'claim')}{by_hand}: {need}", needing > 0
    if fleet.members:
        yield "", False
        yield from ((line, False) for line in _counted(fleet.members, by, columns))
    yield from _rows(fleet.not_well, columns, now, wide=wide)
    notes = list(_of_accounts(fleet))
    if notes:
        yield "", False
    yield from ((part, False) for note in notes for part in fitted(note, columns, then="  "))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _counted(members: Sequence[Member], by: By, columns: int) -> list[str]:
    """Return the table of counts: a row for each group, and a column for each state that something is in.

    Where it is too wide each group is a sentence.
    """
    counts = counts_of(members, lambda member: getattr(member, by))
    states = [state for state in State if any(count[state] for count in counts.values()) or state is State.READY]
    rows = [(by.upper(), "ALL", *(state.upper() for state in reversed(states)))]
    rows += [
        (group, str(count.total()), *(str(count[state]) for state in reversed(states)))
        for group, count in counts.items()
    ]
    lines = table(rows)
    if max(map(len, lines)) <= columns:
        return lines
    return [
        part
        for group, count in counts.items()
        for part in fitted(
            f"{group}: {', '.join(f'{count[state]} {state}' for state in states if count[state])}", columns
        )
    ]


def _rows(members: Sequence[Member], columns: int, now: datetime, *, wide: bool) -> Iterator[tuple[str, bool]]:
    """Yield a row for each member that is not well; what goes on by itself alike is one row unless `wide`."""
    rows = [(member, [member]) for member in members] if wide else _folded(members)
    if not rows:
        return
    cells = [(_since(member, now), member.state, member.actor, member.reason, _called(same)) for member, same in rows]
    yield "", False
    heading, *lines = table([("SINCE", "STATE", "MOVE", "REASON", "OBJECT"), *cells])
    are_apart = max(map(len, lines)) > columns
    if are_apart:
        heading, *lines = table([("SINCE", "STATE", "MOVE", "REASON"), *(row[:-1] for row in cells)])
    yield heading, False
    shown = len(rows) if wide else _MOST_ROWS
    for (member, same), line in list(zip(rows, lines, strict=True))[:shown]:
        yield readable(line), member.needs_person
        text = readable(member.message, None if wide else _MOST_CHARACTERS)
        text = f"{_called(same)}: {text}" if are_apart else text
        yield from ((part, False) for part in fitted(text, columns, begin="       "))
    if len(rows) > shown:
        yield f"and {len(rows) - shown} more: -o wide", False


def _folded(members: Sequence[Member]) -> list[tuple[Member, list[Member]]]:
    groups: dict[tuple[object, ...], list[Member]] = {}
    for member in members:
        is_alike = not member.needs_person
        alike = (member.kind, member.state, member.actor, member.reason) if is_alike else (member.called,)
        groups.setdefault(alike, []).append(member)
    return [(group[0], group) for group in groups.values()]


def _called(members: Sequence[Member]) -> str:
    oldest = members[0].called
    return oldest if len(members) == 1 else f"{oldest} and {len(members) - 1} more"


def _since(member: Member, now: datetime) -> str:
    return age_text(now - member.since if member.since else None)


def _of_accounts(fleet: Fleet) -> Iterator[str]:
    for account in fleet.accounts:
        if account.destroys:
            yield (
                f"{account.name}: {_count(account.destroys, 'database')} deleted or interrupted within the hour, which "
                "the destroy rate limit counts"
            )
        if account.orphans:
            yield (
                f"{account.name}: {_count(account.orphans, 'orphan')} when the account was listed last; "
                "`fairlead orphans` lists it now"
            )


def json_of(fleet: Fleet) -> Object:
    """Return how the fleet fares as plain JSON data."""
    groups: Iterable[By] = ("composition", "namespace", "cloud")
    return {
        "schemaVersion": SCHEMA_VERSION,
        "needsPerson": any(member.needs_person for member in fleet.not_well),
        "claims": len(fleet.members) - fleet.by_hand,
        "madeByHand": fleet.by_hand,
        "counts": {by: _json_counts(fleet.members, by) for by in groups},
        "notWell": [_json(member) for member in fleet.not_well],
        "accounts": [
            {"name": account.name, "orphans": account.orphans, "destroysWithinTheHour": account.destroys}
            for account in fleet.accounts
        ],
    }


def _json_counts(members: Sequence[Member], by: By) -> Object:
    counts = counts_of(members, lambda member: getattr(member, by))
    return {group: {state.value: count[state] for state in State if count[state]} for group, count in counts.items()}


def _json(member: Member) -> Object:
    return {
        "kind": member.kind,
        "namespace": member.namespace,
        "name": member.name,
        "composition": member.composition,
        "cloud": member.cloud,
        "state": member.state.value,
        "reason": member.reason,
        "message": member.message,
        "since": member.since.isoformat().replace("+00:00", "Z") if member.since else None,
        "nextActor": member.actor,
        "needsPerson": member.needs_person,
    }
