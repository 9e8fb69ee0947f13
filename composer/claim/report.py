"""The status of a claim: from what was read and done to conditions in words. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from apis import names
from apis.pause import pause_reason
from apis.reasons import MISSING_PATIENCE, ReasonClass
from composer import inventory
from composer.causes import Cause, cause, gravest
from composer.claim.pause import Pauser
from composer.claim.readiness import broken, is_served, of_broken
from composer.claim.snapshot import Snapshot
from composer.composition.rollout import choice_after
from composer.inventory import Entry
from composer.models import CompositionChoice
from composer.render.render import Rendered
from runtime.conditions import Condition, find, merge, timestamp
from runtime.objects import Object, annotations_of, generation_of

PROGRESS_DEADLINE = timedelta(hours=1)
LOST_SECRET = frozenset({"SecretNotFound", "SecretNotOwned"})
"""Why the connection Secret that a claim names cannot be used."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a pass found. `rendered` is None when nothing could be; `waited`: how long the first cause has held.

    `is_early`: the cause is about to pass by itself (a Composition that is being checked), and not worth a write yet.
    `has_rollout`: the revision goes to its claims by waves. `judged`: the resources with a `readyWhen`.
    `published`: the connection Secret is there, or there is to be none.
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
    is_early: bool = False
    has_rollout: bool = False
    judged: frozenset[str] = frozenset()


def report(snapshot: Snapshot, found: Findings, now: datetime) -> Object:
    """Compute the whole status of a claim."""
    generation = generation_of(snapshot.claim)
    stalled = _is_stalled(snapshot, found, now)
    status: Object = {
        "observedGeneration": generation,
        "conditions": merge(
            snapshot.status.get("conditions") or (), _conditions(snapshot, found, stalled=stalled), now
        ),
        "identity": str(snapshot.identity),
        "deletionPolicy": found.deletion_policy,
        **_extras(snapshot, found),
    }
    if found.composition:
        since = timestamp(now) if found.has_rollout else ""
        choice = CompositionChoice(found.composition, found.revision, since)
        status["composition"] = choice_after(snapshot.status.get("composition") or {}, choice, snapshot.claim)
    if found.secret:
        status["binding"] = {"name": found.secret}
        status["connectionHash"] = found.connection_hash
    if found.entries:
        entries = inventory.proven(found.entries) if _all_ready(found) else found.entries
        status["inventory"] = inventory.dump(entries)
    return {**status, **echo(snapshot)}


def echo(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the field that repeats the token by which a person asked for this pass; nothing without one."""
    token = snapshot.annotations.get(names.RECONCILE_REQUESTED_AT, "")
    return {"lastHandledReconcileAt": token[:256]} if token else {}


_OWN_FIELDS = frozenset({
    "binding", "composition", "conditions", "connectionHash", "deletionPolicy", "identity", "inventory",
    "lastHandledReconcileAt", "observedGeneration",
})  # fmt: skip


def _extras(snapshot: Snapshot, found: Findings) -> Mapping[str, Any]:
    """Return the fields that the composition adds; without a render those of before stay."""
    if found.rendered is None:
        return {name: value for name, value in snapshot.status.items() if name not in _OWN_FIELDS}
    return {name: value for name, value in found.rendered.status.items() if name not in _OWN_FIELDS}


def _is_stalled(snapshot: Snapshot, found: Findings, now: datetime) -> bool:
    first = gravest(found.causes)
    if first is None or first.reason_class in (ReasonClass.HELD, ReasonClass.NOTED):
        return False
    if first.reason_class is ReasonClass.STALLED or _was_stalled(snapshot.claim, first):
        return True
    if first.reason_class is ReasonClass.MISSING:
        return found.waited >= MISSING_PATIENCE
    return is_overdue(snapshot.claim, now)


def is_overdue(claim: Object, now: datetime) -> bool:
    """Return whether a claim has been on its way for longer than anything takes that ends by itself."""
    return now - _reconciling_since(claim, now) >= PROGRESS_DEADLINE


def _was_stalled(claim: Object, first: Cause) -> bool:
    """Return whether the same cause stalled this generation before: it does not begin anew with every process."""
    before = find(claim, "Stalled") or {}
    stalled = before.get("status"), before.get("reason"), before.get("observedGeneration")
    return stalled == ("True", first.reason, generation_of(claim))


def _reconciling_since(claim: Object, now: datetime) -> datetime:
    before = find(claim, "Reconciling")
    if before is None or before.get("status") != "True":
        return now
    try:
        return datetime.fromisoformat(str(before.get("lastTransitionTime")))
    except ValueError:
        return now


def _conditions(snapshot: Snapshot, found: Findings, *, stalled: bool) -> list[Condition]:
    generation = generation_of(snapshot.claim)
    first = gravest(found.causes)
    conditions = [_ready(snapshot, found), _synced(found, generation, stalled=stalled)]
    if first and stalled:
        conditions.append(Condition("Stalled", "True", first.reason, first.message, generation))
    elif first and first.reason_class in (ReasonClass.MISSING, ReasonClass.WAITING, ReasonClass.PROGRESS):
        conditions.append(Condition("Reconciling", "True", first.reason, first.message, generation))
    return conditions


def _ready(snapshot: Snapshot, found: Findings) -> Condition:
    """Ready=True speaks of the newest generation that was ready, so that a wait after an edit does not end early."""
    generation = generation_of(snapshot.claim)
    first = gravest(found.causes)
    if found.rendered is not None and _all_ready(found):
        return Condition("Ready", "True", "Available", "everything composed is ready", generation)
    unusable = broken(snapshot, found.rendered, found.judged)
    # A Secret that was published once and is not there any more.
    is_secret_lost = bool(found.secret) and not found.published
    if not unusable and not is_secret_lost:
        known = as_before(snapshot, found.rendered, found.judged)
        if known:
            return known
    resources = {each.entry.resource for each in unusable}
    lost = tuple(each for each in found.causes if is_secret_lost and each.reason in LOST_SECRET)
    first = gravest(tuple(each for each in found.causes if each.resource in resources) or lost) or first
    if first is None:
        return Condition("Ready", "False", "Creating", "not everything is there yet", generation)
    return Condition("Ready", "False", first.reason, first.message, generation)


def as_before(snapshot: Snapshot, rendered: Rendered | None, judged: Collection[str] = ()) -> Condition | None:
    """Return Ready=True of a claim that waits for something and can be used meanwhile, by what it had before.

    What an outage took away is given back, to the generation before: whether this one was carried out is not known.
    """
    before, generation = find(snapshot.claim, "Ready"), generation_of(snapshot.claim)
    if before is None:
        return None
    if before["status"] == "True":
        known = before.get("observedGeneration", generation)
        return Condition("Ready", "True", before["reason"], before["message"], known)
    if not is_served(snapshot, rendered, judged):
        return None
    return Condition("Ready", "True", "Available", "everything composed is ready", max(generation - 1, 1))


def _all_ready(found: Findings) -> bool:
    rendered = found.rendered
    return (
        rendered is not None
        and bool(rendered.children)
        and all(child.ready for child in rendered.children)
        and not rendered.waiting
        and found.published
        and not any(each.reason_class is ReasonClass.PROGRESS for each in found.causes)
    )


def _synced(found: Findings, generation: int, *, stalled: bool) -> Condition:
    against = gravest(tuple(each for each in found.causes if stalled or not each.is_in_sync))
    if against is None:
        return Condition("Synced", "True", "InSync", "everything is as the spec says", generation)
    if against.reason_class is ReasonClass.NOTED:
        return Condition("Synced", "True", against.reason, against.message, generation)
    return Condition("Synced", "False", against.reason, _with_others(against, found.causes), generation)


def _with_others(first: Cause, causes: tuple[Cause, ...]) -> str:
    """Tell the first cause in full, and behind it every other fault: consequences follow by themselves."""
    faults = (each.message for each in causes if each.reason_class <= ReasonClass.MISSING)
    others = [text for text in dict.fromkeys(faults) if text != first.message]
    return "; also: ".join([first.message, *others])


def only_words_differ(before: Object, after: Object) -> bool:
    """Return whether two statuses differ in messages or marks alone, which may wait for a moment."""
    return _wordless(before) == _wordless(after)


def _wordless(status: Object) -> Object:
    conditions = [{**each, "message": ""} for each in status.get("conditions") or ()]
    entries = [{**each, "marks": {}} for each in status.get("inventory") or ()]
    return {**status, "conditions": conditions, "inventory": entries}


def teardown_status(snapshot: Snapshot, causes: tuple[Cause, ...], now: datetime) -> Object:
    """Compute the status of a claim that is being deleted: everything stays as it was but the conditions."""
    generation = generation_of(snapshot.claim)
    first = gravest(causes) or cause("Deleting", "being deleted")
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
    before = snapshot.status.get("conditions") or ()
    entries = [each.entry for each in snapshot.known]
    status = {**snapshot.status, "observedGeneration": generation, "conditions": merge(before, conditions, now)}
    if entries:
        status["inventory"] = inventory.dump(entries)
    return {**status, **echo(snapshot)}


def paused_status(snapshot: Snapshot, by: Pauser, now: datetime, lost: Cause | None = None) -> Object:
    """Compute the status of a paused claim: neither Reconciling nor Stalled, and Ready as last known.

    What is known to be unusable takes Ready away, a connection Secret that was deleted (`lost`) too; it is given back
    when all can be used again.
    """
    generation = generation_of(snapshot.claim)
    why = pause_reason(annotations_of(snapshot.claim))
    until = annotations_of(snapshot.claim).get(names.PAUSED, "")
    end = "" if until == "true" else f" until {until[:64]}"
    waits = "; its deletion waits" if snapshot.deleting else ""
    text = f"paused{by}{end}: {why[:200]}{waits}; remove annotation {names.PAUSED} to go on"
    before = snapshot.status.get("conditions") or ()
    ready = find(snapshot.claim, "Ready")
    conditions = [Condition("Synced", "False", "Paused", text, generation)]
    unusable = broken(snapshot, None)
    said = of_broken(snapshot, unusable[0]) if unusable else lost
    known = None if said else as_before(snapshot, None)
    if known:
        conditions.append(known)
    elif said and ready:
        conditions.append(Condition("Ready", "False", said.reason, said.message, generation))
    elif ready:
        known = ready.get("observedGeneration", generation)
        conditions.append(Condition("Ready", ready["status"], ready["reason"], ready["message"], known))
    else:
        conditions.append(Condition("Ready", "False", "Paused", text, generation))
    return {
        **snapshot.status,
        "observedGeneration": generation,
        "conditions": merge(before, conditions, now),
        **echo(snapshot),
    }
