"""The status of a claim: alive, being deleted, or paused. Pure.

Each of the three begins as what was written before; conditions keep the time of their last transition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec

from apis import names
from apis.connection import PasswordRecord
from apis.pause import pause_reason, until
from apis.reasons import MISSING_PATIENCE, ReasonClass
from composer import inventory
from composer.causes import Cause, cause, most_severe
from composer.claim.readiness import broken, is_served, of_broken
from composer.claim.snapshot import Snapshot
from composer.composition.rollout import choice_after
from composer.inventory import Entry
from composer.models import CompositionChoice
from composer.render.render import Rendered
from runtime.conditions import Condition, find, merge, timestamp
from runtime.objects import Object, generation_of

PROGRESS_DEADLINE = timedelta(hours=1)
LOST_SECRET = frozenset({"SecretNotFound", "SecretNotOwned"})
"""Reasons for which the connection Secret that a claim names cannot be used."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a pass has found out about a claim, from which its status is computed.

    `rendered` is None when nothing could be rendered; `waited`: how long the first cause has held. `early`: for so long
    a write may wait, since what holds now is about to end by itself; zero where it is not. `has_rollout`: the
    revision goes to its claims by waves. `judged`: the resources with a `readyWhen`. `published`: the connection Secret
    is there, or there is to be none. `passwords`: which are made; None leaves what is recorded.
    """

    causes: tuple[Cause, ...]
    entries: tuple[Entry, ...]
    rendered: Rendered | None = None
    composition: str = ""
    revision: str = ""
    deletion_policy: str = "Orphan"
    secret: str = ""
    connection_hash: str = ""
    published: bool = True
    waited: timedelta = timedelta()
    early: timedelta = timedelta()
    has_rollout: bool = False
    judged: frozenset[str] = frozenset()
    passwords: tuple[PasswordRecord, ...] | None = None


@dataclass(frozen=True, slots=True)
class Pauser:
    """Who set the pause, as the API server recorded it: a field manager, and when (RFC 3339)."""

    manager: str
    at: str

    def __str__(self) -> str:
        return f" by {self.manager} at {self.at}" if self.manager else ""


NOBODY = Pauser("", "")


def pauser(claim: Object) -> Pauser:
    """Return who set the pause in a claim that was read with its managedFields; the last of several.

    Source: "Server-Side Apply", field management: an annotation's owner is the manager that set its value last.
    """
    return max(_pausers(claim), key=lambda candidate: candidate.at, default=NOBODY)


def _pausers(claim: Object) -> Iterator[Pauser]:
    for managed in claim["metadata"].get("managedFields") or ():
        fields = (managed.get("fieldsV1") or {}).get("f:metadata") or {}
        if f"f:{names.PAUSED}" in (fields.get("f:annotations") or {}):
            yield Pauser(str(managed.get("manager", ""))[:64], str(managed.get("time", "")))


def report(snapshot: Snapshot, findings: Findings, now: datetime) -> Object:
    """Return the whole status of a claim that lives."""
    stalled = _is_stalled(snapshot, findings, now)
    status: Object = {
        **_conditions_status(snapshot, _conditions(snapshot, findings, stalled=stalled), now),
        "identity": str(snapshot.identity),
        "deletionPolicy": findings.deletion_policy,
        **_extras(snapshot, findings),
    }
    if findings.composition:
        since = timestamp(now) if findings.has_rollout else ""
        choice = CompositionChoice(findings.composition, findings.revision, since)
        status["composition"] = choice_after(snapshot.status.get("composition") or {}, choice, snapshot.claim)
    if findings.secret:
        status["binding"] = {"name": findings.secret}
        status["connectionHash"] = findings.connection_hash
    passwords = _passwords(snapshot, findings)
    if passwords:
        status["passwords"] = passwords
    if findings.entries:
        entries = inventory.proven(findings.entries) if _all_ready(findings) else findings.entries
        status["inventory"] = inventory.dump(entries)
    return {**status, **_handled_request(snapshot)}


def _passwords(snapshot: Snapshot, findings: Findings) -> list[Object]:
    """Return which passwords are made, as the status records them."""
    if findings.passwords is None:
        return list(snapshot.status.get("passwords") or ())
    return [msgspec.to_builtins(record) for record in findings.passwords]


def _conditions_status(snapshot: Snapshot, conditions: list[Condition], now: datetime) -> Object:
    """Return the fields of a status that every report has: the generation, and the conditions merged into those."""
    before = snapshot.status.get("conditions") or ()
    return {"observedGeneration": generation_of(snapshot.claim), "conditions": merge(before, conditions, now)}


def _handled_request(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the field that repeats the token of a requested reconcile; nothing without a token."""
    token = snapshot.annotations.get(names.RECONCILE_REQUESTED_AT, "")
    return {"lastHandledReconcileAt": token[:256]} if token else {}


_OWN_FIELDS = frozenset({
    "binding", "composition", "conditions", "connectionHash", "deletionPolicy", "identity", "inventory",
    "lastHandledReconcileAt", "observedGeneration", "passwords",
})  # fmt: skip


def _extras(snapshot: Snapshot, findings: Findings) -> Mapping[str, Any]:
    """Return the fields that the composition adds; without a render those written before stay."""
    if findings.rendered is None:
        return {name: value for name, value in snapshot.status.items() if name not in _OWN_FIELDS}
    return {name: value for name, value in findings.rendered.status.items() if name not in _OWN_FIELDS}


def _is_stalled(snapshot: Snapshot, findings: Findings, now: datetime) -> bool:
    """Return whether a person must act: for the most severe cause, or since the claim makes no progress."""
    first = most_severe(findings.causes)
    if first is None or first.reason_class in (ReasonClass.HELD, ReasonClass.NOTED):
        return False
    if first.reason_class is ReasonClass.STALLED or _was_stalled(snapshot.claim, first):
        return True
    if first.reason_class is ReasonClass.MISSING:
        return findings.waited >= MISSING_PATIENCE
    return is_overdue(snapshot.claim, now)


def is_overdue(claim: Object, now: datetime) -> bool:
    """Return whether a claim has been Reconciling for longer than anything takes that ends by itself."""
    return now - _reconciling_since(claim, now) >= PROGRESS_DEADLINE


def _was_stalled(claim: Object, first: Cause) -> bool:
    """Return whether the same cause stalled this generation before, so that a new process does not start over."""
    before = find(claim, "Stalled") or {}
    stalled = before.get("status"), before.get("reason"), before.get("observedGeneration")
    return stalled == ("True", first.reason, generation_of(claim))


def _reconciling_since(claim: Object, now: datetime) -> datetime:
    """Return since when a claim is Reconciling; now where it was not."""
    before = find(claim, "Reconciling")
    if before is None or before.get("status") != "True":
        return now
    try:
        return datetime.fromisoformat(str(before.get("lastTransitionTime")))
    except ValueError:
        return now


def _conditions(snapshot: Snapshot, findings: Findings, *, stalled: bool) -> list[Condition]:
    """Return the conditions of a claim that lives."""
    generation = generation_of(snapshot.claim)
    first = most_severe(findings.causes)
    conditions = [_ready(snapshot, findings), _synced(findings, generation, stalled=stalled)]
    if first and stalled:
        conditions.append(Condition("Stalled", "True", first.reason, first.message, generation))
    elif first and first.reason_class in (ReasonClass.MISSING, ReasonClass.WAITING, ReasonClass.PROGRESS):
        conditions.append(Condition("Reconciling", "True", first.reason, first.message, generation))
    return conditions


def _ready(snapshot: Snapshot, findings: Findings) -> Condition:
    """Return Ready; as True it has the newest generation that was ready, so that a wait after an edit ends in time."""
    generation = generation_of(snapshot.claim)
    first = most_severe(findings.causes)
    if findings.rendered is not None and _all_ready(findings):
        return Condition("Ready", "True", "Available", "everything composed is ready", generation)
    unusable = broken(snapshot, findings.rendered, findings.judged)
    # A Secret that was published before and is not there any more.
    is_secret_lost = bool(findings.secret) and not findings.published
    if not unusable and not is_secret_lost:
        ready = as_before(snapshot, findings.rendered, findings.judged)
        if ready:
            return ready
    resources = {observed.entry.resource for observed in unusable}
    lost = tuple(why for why in findings.causes if is_secret_lost and why.reason in LOST_SECRET)
    first = most_severe(tuple(why for why in findings.causes if why.resource in resources) or lost) or first
    if first is None:
        return Condition("Ready", "False", "Creating", "not everything is there yet", generation)
    return Condition("Ready", "False", first.reason, first.message, generation)


def as_before(snapshot: Snapshot, rendered: Rendered | None, judged: Collection[str] = ()) -> Condition | None:
    """Return Ready=True of a claim that waits for something and can be used meanwhile, else None.

    After an outage it is for the generation before: whether this one was carried out is not known.
    """
    before, generation = find(snapshot.claim, "Ready"), generation_of(snapshot.claim)
    if before is None:
        return None
    if before["status"] == "True":
        observed_generation = before.get("observedGeneration", generation)
        return Condition("Ready", "True", before["reason"], before["message"], observed_generation)
    if not is_served(snapshot, rendered, judged):
        return None
    return Condition("Ready", "True", "Available", "everything composed is ready", max(generation - 1, 1))


def _all_ready(findings: Findings) -> bool:
    """Return whether all that is composed is ready, and nothing is in progress."""
    rendered = findings.rendered
    return (
        rendered is not None
        and bool(rendered.children)
        and all(child.ready for child in rendered.children)
        and not rendered.waiting
        and findings.published
        and not any(why.reason_class is ReasonClass.PROGRESS for why in findings.causes)
    )


def _synced(findings: Findings, generation: int, *, stalled: bool) -> Condition:
    """Return Synced: whether all is as the spec says."""
    against = most_severe(tuple(why for why in findings.causes if stalled or not why.is_in_sync))
    if against is None:
        return Condition("Synced", "True", "InSync", "everything is as the spec says", generation)
    if against.reason_class is ReasonClass.NOTED:
        return Condition("Synced", "True", against.reason, against.message, generation)
    return Condition("Synced", "False", against.reason, _with_others(against, findings.causes), generation)


def _with_others(first: Cause, causes: tuple[Cause, ...]) -> str:
    """Return the message of the first cause and behind it that of every other fault, without mere consequences."""
    faults = (why.message for why in causes if why.reason_class <= ReasonClass.MISSING)
    others = [text for text in dict.fromkeys(faults) if text != first.message]
    return "; also: ".join([first.message, *others])


def report_deletion(snapshot: Snapshot, causes: tuple[Cause, ...], now: datetime) -> Object:
    """Return the status of a claim that is being deleted: all stays as it was but conditions and inventory."""
    generation = generation_of(snapshot.claim)
    first = most_severe(causes) or cause("Deleting", "being deleted")
    stalled = first.reason_class is ReasonClass.STALLED or (
        first.reason_class is not ReasonClass.HELD and is_overdue(snapshot.claim, now)
    )
    conditions = [
        Condition("Ready", "False", first.reason, first.message, generation),
        Condition("Synced", "False", first.reason, first.message, generation),
    ]
    if stalled:
        conditions.append(Condition("Stalled", "True", first.reason, first.message, generation))
    elif first.reason_class is not ReasonClass.HELD:
        conditions.append(Condition("Reconciling", "True", first.reason, first.message, generation))
    status: Object = {**snapshot.status, **_conditions_status(snapshot, conditions, now)}
    if snapshot.children:
        status["inventory"] = inventory.dump(child.entry for child in snapshot.children)
    return {**status, **_handled_request(snapshot)}


def report_pause(snapshot: Snapshot, by: Pauser, now: datetime, lost: Cause | None = None) -> Object:
    """Return the status of a paused claim: neither Reconciling nor Stalled, and Ready as last known.

    A child that is known to be unusable makes it not Ready, a connection Secret that was deleted (`lost`) too; it is
    Ready again when all can be used again.
    """
    generation = generation_of(snapshot.claim)
    text = _pause_message(snapshot, by)
    conditions = [
        Condition("Synced", "False", "Paused", text, generation),
        _paused_ready(snapshot, text, lost),
    ]
    return {**snapshot.status, **_conditions_status(snapshot, conditions, now), **_handled_request(snapshot)}


def _pause_message(snapshot: Snapshot, by: Pauser) -> str:
    why = pause_reason(snapshot.annotations)
    end = "" if snapshot.annotations.get(names.PAUSED) == "true" else f" {until(snapshot.annotations)}"
    waits = "; its deletion waits" if snapshot.deleting else ""
    return f"paused{by}{end}: {why[:200]}{waits}; remove annotation {names.PAUSED} to go on"


def _paused_ready(snapshot: Snapshot, text: str, lost: Cause | None) -> Condition:
    """Return Ready of a paused claim: False for what is unusable, else as last known."""
    generation, before = generation_of(snapshot.claim), find(snapshot.claim, "Ready")
    unusable = broken(snapshot, None)
    why = of_broken(snapshot, unusable[0]) if unusable else lost
    served = None if why else as_before(snapshot, None)
    if served:
        return served
    if before is None:
        return Condition("Ready", "False", "Paused", text, generation)
    if why:
        return Condition("Ready", "False", why.reason, why.message, generation)
    observed_generation = before.get("observedGeneration", generation)
    return Condition("Ready", before["status"], before["reason"], before["message"], observed_generation)
