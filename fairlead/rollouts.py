"""`fairlead rollout`: follow the revisions of a Composition, go back to an earlier one, pause and resume."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from apis import names
from apis.pause import is_paused
from fairlead.annotate import MANAGER, Changes, annotate, patch, tools_with
from fairlead.cluster import connected, every_object, existing
from fairlead.discovery import Discovery
from fairlead.exits import CommandError, Exit
from fairlead.imports.following import Followed
from fairlead.kube_options import Server
from fairlead.pausing import Outcome, end_in
from fairlead.rollout_report import AT_ONCE, Report, RevisionRow, report_of, rules_of, target_of
from runtime import clock
from runtime.errors import NotFound
from runtime.kube import Kube
from runtime.objects import CONFIG_MAPS, Key, Object, Resource, annotations_of, key_of, metadata
from runtime.preconditions import patch_tests

_SETTINGS: Final = "fairlead-system"
_SETTLED_S: Final = 0.5
_WORD: Final = "composition/"


@dataclass(frozen=True, slots=True)
class Undo:
    """What to go back to: a revision's number, 0 for the last good one; `environments`: write their ConfigMaps, too."""

    number: int = 0
    environments: bool = False


def _key(name: str) -> Key:
    return Key("", name.removeprefix(_WORD))


async def report(name: str, server: Server) -> Report:
    """Return how the revisions of a Composition stand. Raises CommandError and ApiError."""
    async with connected(server) as kube:
        composition, claims = await _subject(kube, name)
        return await _reported(kube, composition, claims)


async def _subject(kube: Kube, name: str) -> tuple[Object, Resource | None]:
    """Return a Composition and the kind of its claims, None where that is not served."""
    composition = await existing(kube, names.COMPOSITIONS, _key(name))
    kind = (composition.get("spec") or {}).get("compositeTypeRef") or {}
    return composition, await Discovery(kube).resource_of(str(kind.get("apiVersion")), str(kind.get("kind")))


async def _reported(kube: Kube, composition: Object, claims: Resource | None) -> Report:
    revisions = [obj async for obj in every_object(kube, names.REVISIONS)]
    users = [obj async for obj in every_object(kube, claims)] if claims else []
    return report_of(composition, revisions, users, clock.now())


async def reports(name: str, server: Server) -> AsyncGenerator[Report, None]:
    """Yield how a rollout stands whenever that changes. Raises CommandError and ApiError."""
    async with connected(server) as kube:
        composition, claims = await _subject(kube, name)
        key, places = key_of(composition), [(names.COMPOSITIONS, ""), (names.REVISIONS, "")]
        before: Report | None = None
        async with Followed.begin(kube, [*places, *([(claims, "")] if claims else [])]) as followed:
            while (present := followed.present(names.COMPOSITIONS, key)) is not None:
                users = followed.all_of(claims) if claims else []
                report = report_of(present, followed.all_of(names.REVISIONS), users, clock.now())
                if report != before:
                    yield report
                before = report
                await followed.change()
                await asyncio.sleep(_SETTLED_S)
        raise CommandError(f"Composition {key.name} is gone")


async def ended(name: str, server: Server, timeout_s: float | None, show: Callable[[str], object]) -> Report:
    """Return the last report of a rollout, once nothing moves any more by itself; `show` gets each before.

    Raises CommandError (not ready) where that takes longer.
    """
    last = ""
    try:
        async with asyncio.timeout(timeout_s):
            async with aclosing(reports(name, server)) as standing:
                async for report in standing:
                    if report.is_ended:
                        return report
                    if report.progress != last:
                        show(report.progress)
                    last = report.progress
    except TimeoutError as error:
        text = f"Composition {_key(name).name}: not ended within {timeout_s:g} s: {last}"
        raise CommandError(text, exit_code=Exit.NOT_READY) from error
    raise AssertionError


def row_of(report: Report, number: int) -> RevisionRow:
    """Return a revision by its number. Raises CommandError that lists what there is."""
    row = next((row for row in report.rows if row.number == number), None)
    if row is None:
        there = ", ".join(str(row.number) for row in report.rows) or "none"
        raise CommandError(f"Composition {report.composition} has no revision {number}; there are {there}")
    return row


def manifest_of(report: Report, row: RevisionRow) -> list[Object]:
    """Return a revision as what can be planned and applied: the Composition, and environments as they were. Pure."""
    about = {"apiVersion": names.COMPOSITIONS.api_version, "kind": names.COMPOSITIONS.kind}
    environments = (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": _SETTINGS}, "data": data}
        for name, data in row.environments.items()
    )
    return [{**about, "metadata": {"name": report.composition}, "spec": row.content}, *environments]


async def undo(name: str, target: Undo, server: Server) -> Outcome:
    """Give a Composition the content of an earlier revision again, which then goes to its claims as a newest one does.

    Raises CommandError where there is none, or where its environments are others now and are not to be written.
    """
    async with connected(server) as kube:
        composition, claims = await _subject(kube, name)
        report = await _reported(kube, composition, claims)
        row = row_of(report, target.number) if target.number else target_of(report, composition.get("spec") or {})
        if row is None:
            text = f"Composition {report.composition} has no earlier revision that came to all claims; name one by --to"
            raise CommandError(f"{text}: fairlead rollout history {report.composition}", exit_code=Exit.REFUSED)
        environments = [config async for config in _other_environments(kube, row)]
        if row.content == composition.get("spec") and not environments:
            return Outcome((f"Composition {report.composition} has the content of revision {row.number} already",))
        if environments and not target.environments:
            raise CommandError(_of_environments(row, environments), exit_code=Exit.REFUSED)
        for config, data in environments:
            operations = [*patch_tests(config), {"op": "add", "path": "/data", "value": data}]
            await kube.json_patch(CONFIG_MAPS, key_of(config), operations, manager=MANAGER)
        # Whoever follows it from now on waits until the composer has looked at it.
        request = patch(composition, {names.RECONCILE_REQUESTED_AT: f"undo-{secrets.token_hex(8)}"})
        operations = [*patch_tests(composition), {"op": "replace", "path": "/spec", "value": row.content}, *request]
        await kube.json_patch(names.COMPOSITIONS, key_of(composition), operations, manager=MANAGER)
    lines = (
        f"Composition {report.composition} has the content of revision {row.number} again: {rules_of(row.content)}",
        f"to follow it: fairlead rollout status {report.composition}",
    )
    remarks = [
        f"remark: {manager} has applied this Composition, and may apply its own content again: change it where that is"
        for manager in _appliers(composition)
    ]
    return Outcome(lines, tuple(remarks))


async def _other_environments(kube: Kube, row: RevisionRow) -> AsyncIterator[tuple[Object, dict[str, Any]]]:
    """Yield the environments of a revision that have other data now, each with those of then. Raises ApiError."""
    for name, data in row.environments.items():
        try:
            config = await kube.get(CONFIG_MAPS, Key(_SETTINGS, name))
        except NotFound as error:
            text = f"ConfigMap {name} of {_SETTINGS}, which revision {row.number} reads, is gone"
            raise CommandError(f"{text}: apply it first", exit_code=Exit.REFUSED) from error
        if (config.get("data") or {}) != data:
            yield config, data


def _of_environments(row: RevisionRow, environments: list[tuple[Object, dict[str, Any]]]) -> str:
    named = ", ".join(key_of(config).name for config, _ in environments)
    return (
        f"revision {row.number} had other environments: ConfigMap {named} of {_SETTINGS}; with --with-environments "
        "they are written, too, and every Composition that reads them gets a new revision"
    )


def _appliers(composition: Object) -> list[str]:
    """Return who applies the content again and again: field managers of the spec, hands left out. Pure."""
    managers = {
        str(entry.get("manager", ""))
        for entry in metadata(composition).get("managedFields") or ()
        if entry.get("operation") == "Apply" and "f:spec" in (entry.get("fieldsV1") or {})
    }
    return sorted(name for name in managers if not name.startswith(("kubectl", MANAGER, names.PREFIX)))


async def pause(name: str, *, until: str, reason: str, server: Server) -> Outcome:
    """Let no further claim take a new revision. Raises CommandError where all claims take revisions at once."""
    now = clock.now()
    value = end_in(until, now) if until else "true"

    def decide(composition: Object) -> Changes:
        if rules_of(composition.get("spec") or {}) == AT_ONCE:
            text = f"Composition {key_of(composition).name} has no rollout: a new revision goes to {AT_ONCE}"
            raise CommandError(f"{text}, and nothing can be paused", exit_code=Exit.REFUSED)
        return {names.PAUSED: value, names.PAUSED_REASON: reason or None}

    async with connected(server) as kube:
        composition = await annotate(kube, names.COMPOSITIONS, _key(name), decide)
    called = f"the rollout of Composition {key_of(composition).name}"
    end = f"until {value}" if until else f"until `fairlead rollout resume {key_of(composition).name}`"
    return Outcome((f"{called} is paused {end}; claims that have the newest revision keep it",), _remarks(composition))


async def resume(name: str, *, server: Server) -> Outcome:
    """End a pause, and let a rollout that was stopped go on once what failed is mended."""
    async with connected(server) as kube:
        composition, claims = await _subject(kube, name)
        report = await _reported(kube, composition, claims)
        is_stopped = report.phase in ("Halted", "Reverted")
        request = f"resume-{secrets.token_hex(8)}" if is_stopped else None
        changes: dict[str, str | None] = {names.PAUSED: None, names.PAUSED_REASON: None}
        if request:
            changes[names.RECONCILE_REQUESTED_AT] = request
        composition = await annotate(kube, names.COMPOSITIONS, _key(name), lambda _: changes)
    called = f"the rollout of Composition {report.composition}"
    if is_stopped:
        line = f"{called} goes on; it stops again where the claims that failed are not mended"
    else:
        was_paused = is_paused(annotations_of(composition), clock.now())
        line = f"{called} goes on" if was_paused else f"{called} was not paused"
    return Outcome((line,), _remarks(composition))


def _remarks(composition: Object) -> tuple[str, ...]:
    return tuple(
        f"remark: {manager} has set {names.PAUSED} here, and may set it again: change it where that comes from"
        for manager in tools_with(composition, names.PAUSED)
    )
