"""How far the revisions of a Composition have come among its claims, who waits, and what failed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from apis import names
from apis.pause import is_paused
from composer.composition.rollout import DEFAULT_WAVES, is_included, sentence
from composer.composition.rollout_claims import RolloutClaim, rollout_claim_of
from composer.models import RolloutStatus
from fairlead.exits import Exit
from fairlead.layout import fitted, table
from fairlead.tree import age_text
from runtime.conditions import find, instant, is_true
from runtime.objects import Object, annotations_of, deleting, generation_of, key_of, metadata, status_of
from runtime.text import readable

_SHOWN_NAMES = 3
_ENDED_WELL = frozenset({"Finished"})
_STOPPED = frozenset({"Halted", "Reverted"})
AT_ONCE = "all claims at once"


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """One revision: its number, its object's name and content, how many claims use it, and how far it has come.

    `ready` of them are Ready, `pinned` name it; `phase` is empty of a revision that goes to all claims at once.
    """

    number: int
    name: str
    content: Object
    environments: dict[str, Any]
    created: datetime | None
    claims: int
    ready: int
    pinned: int
    phase: str


@dataclass(frozen=True, slots=True)
class Report:
    """A rollout as it stands: `waiting` are claims that do not have the newest revision, by why.

    `is_seen`: the composer has looked at the newest content, at what was requested, and at the end of a pause.
    """

    composition: str
    rows: tuple[RevisionRow, ...]
    text: str
    rules: str
    phase: str
    refusal: str
    is_seen: bool
    waiting: dict[str, tuple[str, ...]]
    failures: tuple[str, ...]

    @property
    def is_ended(self) -> bool:
        """Whether nothing moves any more by itself."""
        return self.exit is not Exit.NOT_READY or (self.is_seen and self.phase == "Paused")

    @property
    def progress(self) -> str:
        """How far it is, with how many wait and why, in one sentence."""
        waiting = ", ".join(f"{len(claims)} {why}" for why, claims in self.waiting.items())
        return f"{self.text} ({waiting})" if waiting else self.text

    @property
    def exit(self) -> Exit:
        """DONE when all claims have the newest revision, STALLED when it is refused or stopped, else NOT_READY."""
        if self.is_seen and (self.refusal or self.phase in _STOPPED):
            return Exit.STALLED
        is_there = self.phase in _ENDED_WELL if self.phase else not self.waiting
        return Exit.DONE if self.is_seen and self.rows and is_there else Exit.NOT_READY


def report_of(composition: Object, revisions: Sequence[Object], claims: Sequence[Object], now: datetime) -> Report:
    """Return how the revisions of a Composition stand; `claims` are those of its kind, whatever they use."""
    name = key_of(composition).name
    users = [claim for claim in claims if _choice(claim).get("name") == name]
    own = (revision for revision in revisions if (revision.get("spec") or {}).get("compositionName") == name)
    rows = sorted((_row(revision, users) for revision in own), key=lambda row: row.number, reverse=True)
    newest = next(iter(rows), None)
    states = {str(metadata(revision)["name"]): _state(revision) for revision in revisions}
    state = states[newest.name] if newest else None
    ready = find(composition, "Ready") or {}
    is_refused = ready.get("status") == "False"
    return Report(
        composition=name,
        rows=tuple(rows),
        text=_text(newest, state, is_refused=is_refused),
        rules=rules_of(newest.content) if newest else "",
        phase=state.phase if state else "",
        refusal=f"{ready.get('reason')}: {ready.get('message')}" if is_refused else "",
        is_seen=_is_seen(composition, state, now),
        waiting=_waiting(users, newest, state, now) if newest else {},
        failures=tuple(f"{item.claim}: {item.reason}: {item.message}" for item in (state.failures if state else ())),
    )


def _is_seen(composition: Object, state: RolloutStatus | None, now: datetime) -> bool:
    status, annotations = status_of(composition), annotations_of(composition)
    request = annotations.get(names.RECONCILE_REQUESTED_AT, "")[:256]
    return (
        status.get("observedGeneration", -1) == generation_of(composition)
        and request in ("", status.get("lastHandledReconcileAt"))
        and (state is None or (state.phase != "Paused") or is_paused(annotations, now))
    )


def rules_of(content: Object) -> str:
    """Return by which rules a content goes to its claims."""
    rollout = content.get("rollout")
    if not rollout:
        return AT_ONCE
    waves = ", ".join(rollout.get("waves") or DEFAULT_WAVES)
    soak, failure = rollout.get("soakSeconds", 300), rollout.get("onFailure", "Halt")
    return f"waves of {waves}, each watched for {soak} s; on failure: {failure}"


def _choice(claim: Object) -> Object:
    choice = status_of(claim).get("composition")
    return choice if isinstance(choice, dict) else {}


def _pin(claim: Object) -> str:
    return str(((claim.get("spec") or {}).get("compositionRevisionRef") or {}).get("name", ""))


def _row(revision: Object, users: Sequence[Object]) -> RevisionRow:
    spec, name = revision["spec"], str(metadata(revision)["name"])
    own = [claim for claim in users if _choice(claim).get("revision") == name]
    state = _state(revision)
    return RevisionRow(
        number=int(spec.get("revision") or 0),
        name=name,
        content=dict(spec.get("composition") or {}),
        environments=dict(spec.get("environments") or {}),
        created=instant(str(metadata(revision).get("creationTimestamp") or "")),
        claims=len(own),
        ready=sum(is_true(claim, "Ready") for claim in own),
        pinned=sum(_pin(claim) == name for claim in users),
        phase=state.phase if state else "",
    )


def _state(revision: Object) -> RolloutStatus | None:
    """Return how far a revision has come under its present number."""
    rollout = status_of(revision).get("rollout")
    try:
        state = msgspec.convert(rollout, RolloutStatus) if rollout else None
    except msgspec.ValidationError:
        return None
    return state if state and state.revision == (revision.get("spec") or {}).get("revision") else None


def _text(newest: RevisionRow | None, state: RolloutStatus | None, *, is_refused: bool) -> str:
    if newest is None:
        return "there is no accepted revision"
    text = sentence(state) if state else f"revision {newest.number} goes to {AT_ONCE}"
    return f"its present content is refused, and claims stay; of before: {text}" if is_refused else text


def _waiting(
    users: Sequence[Object], newest: RevisionRow, state: RolloutStatus | None, now: datetime
) -> dict[str, tuple[str, ...]]:
    waiting: dict[str, list[str]] = {}
    for claim in sorted(users, key=lambda claim: str(key_of(claim))):
        if _choice(claim).get("revision") == newest.name:
            continue
        why = _why(claim, rollout_claim_of(claim, newest.name, now), state, now)
        if state is not None or why not in ("pinned", "paused", "being deleted"):
            waiting.setdefault(why, []).append(str(key_of(claim)))
    return {why: tuple(names) for why, names in waiting.items()}


def _why(claim: Object, in_rollout: RolloutClaim | None, state: RolloutStatus | None, now: datetime) -> str:
    """Return why a claim does not have the newest revision."""
    if in_rollout is None:
        return "being deleted" if deleting(claim) else "pinned" if _pin(claim) else "nothing is composed yet"
    if is_paused(annotations_of(claim), now):
        return "paused"
    if state is None or state.phase in _STOPPED:
        return "not reached" if state else "about to take it"
    passed_over = {failure.claim: failure.reason for failure in state.failures}
    if reason := passed_over.get(str(key_of(claim))):
        return f"passed over: {reason}"
    if is_included(state, in_rollout.rank, well=in_rollout.is_well, since=in_rollout.unchanged_since):
        return "in the open wave"
    return "in a later wave" if in_rollout.is_well else f"in the last wave, since not well: {in_rollout.hindrance}"


def lines_of(report: Report, now: datetime, columns: int) -> Iterator[tuple[str, bool]]:
    """Yield the lines of `rollout status`, each with whether it says what is wrong."""
    is_wrong = report.exit is Exit.STALLED
    yield from ((part, is_wrong) for part in fitted(readable(report.text), columns, then="  "))
    if report.refusal:
        yield from ((part, True) for part in fitted(readable(report.refusal), columns, then="  "))
    if not report.rows:
        return
    yield "", False
    yield from ((line, False) for line in _table(report, now))
    yield "", False
    yield from ((part, False) for part in fitted(report.rules, columns, then="  "))
    for why, claims in report.waiting.items():
        more = f" and {len(claims) - _SHOWN_NAMES} more" if len(claims) > _SHOWN_NAMES else ""
        text = f"{len(claims)} {why}: {', '.join(claims[:_SHOWN_NAMES])}{more}"
        yield from ((part, False) for part in fitted(readable(text), columns, then="  "))
    for failure in report.failures:
        yield from ((part, is_wrong) for part in fitted(f"failed: {readable(failure)}", columns, then="  "))


def history_of(report: Report, now: datetime) -> Iterator[str]:
    """Yield the lines of `rollout history`."""
    yield from _table(report, now)


def _table(report: Report, now: datetime) -> list[str]:
    rows = [("REVISION", "AGE", "CLAIMS", "READY", "PINNED", "STATE", "NAME")]
    rows += [
        (
            str(row.number),
            age_text(_age(row, now)),
            str(row.claims),
            str(row.ready),
            str(row.pinned),
            row.phase or "-",
            readable(row.name),
        )
        for row in report.rows
    ]
    return table(rows)


def _age(row: RevisionRow, now: datetime) -> timedelta | None:
    return now - row.created if row.created else None


def json_of(report: Report) -> Object:
    """Return a report as plain JSON data."""
    rows = [
        {
            "revision": row.number,
            "name": row.name,
            "claims": row.claims,
            "ready": row.ready,
            "pinned": row.pinned,
            "phase": row.phase,
        }
        for row in report.rows
    ]
    return {
        "schemaVersion": 1,
        "composition": report.composition,
        "phase": report.phase,
        "message": report.text,
        "refusal": report.refusal,
        "revisions": rows,
        "waiting": {why: list(claims) for why, claims in report.waiting.items()},
        "failures": list(report.failures),
    }


def target_of(report: Report, spec: Object) -> RevisionRow | None:
    """Return the revision to go back to: the last before the newest that came to all claims.

    An edit that was refused is undone by the newest revision. None where there is none.
    """
    if report.refusal and report.rows and report.rows[0].content != spec:
        return report.rows[0]
    return next((row for row in report.rows[1:] if row.phase in ("", *_ENDED_WELL)), None)
