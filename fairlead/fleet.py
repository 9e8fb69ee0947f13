"""How a fleet fares: how many are well, what is wrong, since when, and whose move it is. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from apis import names
from apis.pause import is_paused, pause_reason, until
from apis.reasons import BY_STATE, REASONS, NextActor
from fairlead.exits import Exit
from runtime.conditions import conditions_of, find, instant
from runtime.objects import Object, annotations_of, generation_of, key_of, metadata, status_of

_HOUR: Final = timedelta(hours=1)
_UNSEEN_FOR: Final = timedelta(minutes=1)
_LIMITS: Final = frozenset({"Brake", "LimitReached", "QuotaExceeded"})
_HOLDS: Final = frozenset({"DeletionProtected", "HeldChange", "HeldDeletion", "InUse"})
_OF_THE_CLOUD: Final = BY_STATE | {
    "ChildNotReady",
    "CloudUnreachable",
    "PendingChangesInTheWay",
    "QuotaExceeded",
    "ServerUnreachable",
    "Throttled",
}
_UNDER_WAY: Final = frozenset({"Progressing", "Soaking"})
_NO_GROUP: Final = "-"


class State(StrEnum):
    """How an object fares: the first of these that holds."""

    STALLED = "stalled"
    HELD = "held"
    LIMITED = "limited"
    DRIFTING = "drifting"
    PAUSED = "paused"
    WAITING = "waiting"
    ROLLING_OUT = "rolling out"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class Member:
    """A claim, a managed resource made by hand, a Composition or a ProviderConfig, and how it fares.

    `since`: since when it is so, as far as its conditions say. `actor` acts next; `needs_person`: nothing goes on by
    itself until somebody does.
    """

    kind: str
    namespace: str
    name: str
    composition: str
    cloud: str
    state: State
    reason: str = ""
    message: str = ""
    since: datetime | None = None
    actor: str = ""
    needs_person: bool = False

    @property
    def called(self) -> str:
        """The object as people read it."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def order(self) -> tuple[bool, bool, datetime, str]:
        """The place in a list: what needs a person, what may be looked at, what goes on by itself; the oldest first."""
        by_itself = self.state in (State.WAITING, State.ROLLING_OUT)
        return not self.needs_person, by_itself, self.since or datetime.max.replace(tzinfo=UTC), self.called


@dataclass(frozen=True, slots=True)
class Account:
    """What a ProviderConfig says of its account: orphans when they were listed last, destroys of the last hour."""

    name: str
    orphans: int
    destroys: int


@dataclass(frozen=True, slots=True)
class Fleet:
    """Claims and managed resources made by hand (`members`); Compositions and ProviderConfigs that are not well."""

    members: tuple[Member, ...]
    by_hand: int
    settings: tuple[Member, ...]
    accounts: tuple[Account, ...]

    @property
    def not_well(self) -> list[Member]:
        """All that is not as it shall be, in the order of a list."""
        wrong = (member for member in (*self.members, *self.settings) if member.state is not State.READY)
        return sorted(wrong, key=lambda member: member.order)

    @property
    def exit(self) -> Exit:
        """STALLED where a person is needed, DIFFERENCES where the cloud differs and nothing puts that right."""
        if any(member.needs_person for member in self.not_well):
            return Exit.STALLED
        return Exit.DIFFERENCES if any(member.state is State.DRIFTING for member in self.members) else Exit.DONE


@dataclass(frozen=True, slots=True)
class Listed:
    """The objects of a fleet as they were listed; of managed resources those without a claim."""

    claims: tuple[Object, ...] = ()
    managed: tuple[Object, ...] = ()
    compositions: tuple[Object, ...] = ()
    revisions: tuple[Object, ...] = ()
    configs: tuple[Object, ...] = ()


def fleet_of(listed: Listed, now: datetime) -> Fleet:
    """Return how a fleet fares."""
    coming = revisions_under_way(listed.revisions)
    members = [member_of(obj, now, coming) for obj in (*listed.claims, *listed.managed)]
    settings = (_setting_of(obj, now) for obj in (*listed.compositions, *listed.configs))
    return Fleet(
        members=tuple(members),
        by_hand=len(listed.managed),
        settings=tuple(member for member in settings if member.state is not State.READY),
        accounts=tuple(_account(config, now) for config in listed.configs),
    )


def _setting_of(obj: Object, now: datetime) -> Member:
    """Return how a Composition or a ProviderConfig fares; a pause is shown though nothing waits for its end yet."""
    member, annotations = member_of(obj, now), annotations_of(obj)
    if member.state is not State.READY or not is_paused(annotations, now):
        return member
    text = f"paused {until(annotations)}: {pause_reason(annotations)}"
    return replace(member, state=State.PAUSED, reason="Paused", message=text, actor="anyone")


def revisions_under_way(revisions: Iterable[Object]) -> dict[str, str]:
    """Return the revisions that come to their claims by waves now, by Composition."""
    newest: dict[str, Object] = {}
    for revision in revisions:
        spec = revision.get("spec") or {}
        name, number = str(spec.get("compositionName", "")), int(spec.get("revision") or 0)
        if name not in newest or number > int(newest[name]["spec"].get("revision") or 0):
            newest[name] = revision
    return {
        name: str(metadata(revision)["name"])
        for name, revision in newest.items()
        if (status_of(revision).get("rollout") or {}).get("phase") in _UNDER_WAY
    }


def member_of(obj: Object, now: datetime, coming: Mapping[str, str] | None = None) -> Member:
    """Return how one object fares; `coming` are the revisions under way by Composition."""
    key, choice = key_of(obj), status_of(obj).get("composition") or {}
    composition = str(choice.get("name", "")) if isinstance(choice, dict) else ""
    conditions = {condition["type"]: condition for condition in conditions_of(obj)}
    condition = speaking(conditions)
    state = _state(obj, conditions, condition, (coming or {}).get(composition, ""))
    member = Member(str(obj["kind"]), key.namespace, key.name, composition or _NO_GROUP, cloud_of(obj), state)
    if state is State.READY:
        return member
    if not conditions or not _is_current(obj, conditions):
        return _unseen(obj, member, now, is_edit=bool(conditions))
    reason, is_stalled = str(condition.get("reason", "")), _is(conditions, "Stalled", "True")
    if state is State.ROLLING_OUT:
        text = f"revision {(coming or {}).get(composition)} has not come to it yet"
        return replace(member, reason="RollingOut", message=text, actor=actor_of("RollingOut", is_stalled=False))
    if state is State.DRIFTING and not _is(conditions, "Synced", "False"):
        condition, reason = conditions["Synced"], str(conditions["Synced"].get("reason", ""))
    since = instant(str(condition.get("lastTransitionTime") or ""))
    return replace(
        member,
        reason=reason,
        message=str(condition.get("message", "")),
        since=since,
        actor=actor_of(reason, is_stalled=is_stalled),
        needs_person=is_stalled,
    )


def actor_of(reason: str, *, is_stalled: bool) -> str:
    """Return who acts next in one word; of what makes no progress by itself for too long it is the platform team."""
    row = REASONS.get(reason)
    match row.next_actor if row else None:
        case NextActor.DEVELOPER:
            return "developer"
        case NextActor.PERSON:
            return "anyone"
        case None if row:
            return "anyone"
        case NextActor.COMPOSER:
            return "fairlead"
        case NextActor.NOBODY if not is_stalled:
            return "cloud" if reason in _OF_THE_CLOUD else "fairlead"
        case _:
            return "platform"


def counts_of(members: Iterable[Member], group: Callable[[Member], str]) -> dict[str, Counter[State]]:
    """Count the states of members by group, the groups by name."""
    counts: dict[str, Counter[State]] = {}
    for member in members:
        counts.setdefault(group(member), Counter())[member.state] += 1
    return dict(sorted(counts.items()))


def speaking(conditions: Mapping[str, Object]) -> Object:
    """Return the condition that says what is wrong, else Ready."""
    for type_, status in (("Stalled", "True"), ("Reconciling", "True"), ("Synced", "False"), ("Ready", "False")):
        if _is(conditions, type_, status):
            return conditions[type_]
    return conditions.get("Ready") or {}


def _is(conditions: Mapping[str, Object], type_: str, status: str) -> bool:
    return (conditions.get(type_) or {}).get("status") == status


def _state(obj: Object, conditions: Mapping[str, Object], condition: Object, coming: str) -> State:
    reason = str(condition.get("reason", ""))
    held = {"Paused": State.PAUSED, "DriftHeld": State.DRIFTING}.get(reason, State.HELD)
    by_order = (
        (not conditions or not _is_current(obj, conditions), State.WAITING),
        (reason in _LIMITS, State.LIMITED),
        (_is(conditions, "Stalled", "True"), State.HELD if reason in _HOLDS else State.STALLED),
        (_is(conditions, "Reconciling", "True"), State.WAITING),
        (_is(conditions, "Synced", "False"), held),
        (not _is(conditions, "Ready", "True"), State.WAITING),
        (_differs(obj), State.DRIFTING),
        (bool(coming) and _takes_part(obj, coming), State.ROLLING_OUT),
    )
    return next((state for holds, state in by_order if holds), State.READY)


def _differs(obj: Object) -> bool:
    """Return whether a resource that only looks (`managementPolicy: Observe`) sees differences."""
    observes = (obj.get("spec") or {}).get("managementPolicy") == "Observe" and find(obj, "Synced") is not None
    return observes and any(entry.get("action") != "Tolerated" for entry in status_of(obj).get("drift") or ())


def _takes_part(claim: Object, coming: str) -> bool:
    is_pinned = bool((claim.get("spec") or {}).get("compositionRevisionRef"))
    return not is_pinned and (status_of(claim).get("composition") or {}).get("revision") != coming


def _is_current(obj: Object, conditions: Mapping[str, Object]) -> bool:
    """Return whether the conditions speak of the newest spec; of a deletion and a pause they always do."""
    generation = generation_of(obj)
    seen = [int(condition.get("observedGeneration", generation)) for condition in conditions.values()]
    return not generation or max(seen, default=0) >= generation


def _unseen(obj: Object, member: Member, now: datetime, *, is_edit: bool) -> Member:
    """Return a member that no controller has looked at since it was made, or edited."""
    text = "no controller has looked at its newest spec yet" if is_edit else "no controller has looked at it yet"
    created = instant(str(metadata(obj).get("creationTimestamp") or ""))
    since = None if is_edit else created
    is_late = since is not None and now - since > _UNSEEN_FOR
    text += ": is it running, and are the Compositions of this kind Ready (`kubectl get flc`)?" if is_late else ""
    actor = "platform" if is_late else "fairlead"
    return replace(member, reason="Unseen", message=text, since=since, actor=actor, needs_person=is_late)


def cloud_of(obj: Object) -> str:
    """Return the cloud of an object: its provider's, for other operators the group of what holds the data."""
    group = str(obj.get("apiVersion", "")).rpartition("/")[0]
    if names.is_managed(group):
        return group.removesuffix(names.GROUP_SUFFIX)
    inventory = status_of(obj).get("inventory") or ()
    groups = [str(entry.get("apiVersion", "")).rpartition("/")[0] for entry in inventory]
    ours = next((group for group in groups if names.is_managed(group)), "")
    stateful = (group for group, entry in zip(groups, inventory, strict=True) if entry.get("stateful") and "." in group)
    return ours.removesuffix(names.GROUP_SUFFIX) or next(stateful, _NO_GROUP)


def _account(config: Object, now: datetime) -> Account:
    group, status = str(config["apiVersion"]).rpartition("/")[0], status_of(config)
    destroys = sum(
        int(entry.get("count") or 0)
        for entry in status.get("recentDestroys") or ()
        if (minute := instant(str(entry.get("minute") or ""))) is not None and now - minute < _HOUR
    )
    orphans = len((status.get("orphans") or {}).get("items") or ())
    return Account(f"{group.removesuffix(names.GROUP_SUFFIX)}/{key_of(config).name}", orphans, destroys)
