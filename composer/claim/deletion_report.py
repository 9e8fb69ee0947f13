"""What a claim says while it is being deleted: what stands in the way, since when, and when it is tried again. Pure."""

from __future__ import annotations

from datetime import datetime

from apis import names
from composer import inventory
from composer.claim.report import echo, is_overdue
from composer.claim.snapshot import Known, View
from composer.reasons import Cause, Gravity, cause, gravest, gravity
from runtime.conditions import Condition, find, merge
from runtime.objects import Object, deleting, finalizers_of, generation_of, key_of

# Providers look at what is refused every five minutes, at what is out of reach every minute.
_TRIED_AGAIN = "tried again within 5 minutes"
# What a child that goes says of itself while all is well, and before it has seen the word.
_ON_ITS_WAY = frozenset({"AwaitingTeardown", "Creating", "Deleting", "InSync", "Updating"})
_COLLECTORS = frozenset({"foregroundDeletion", "orphan"})


def blocker(each: Known) -> Cause | None:
    """Say what keeps a deleted child from going, in its own words; None when it is merely on its way."""
    live = each.live
    if live is None or not deleting(live):
        return None
    told = _told(live)
    what = f"{live['kind']} {key_of(live).name}"
    if told is not None:
        text = f"{what}: {told['message']}; since {told['lastTransitionTime']}, {_TRIED_AGAIN}"
        weight = Gravity.STALLED if told["type"] == "Stalled" else min(gravity(str(told["reason"])), Gravity.WAITING)
        return cause(str(told["reason"]), text, resource=each.entry.resource, gravity_as=weight)
    managed = each.facts is not None and each.facts.managed
    holders = sorted(set(finalizers_of(live)) - _COLLECTORS - {names.TEARDOWN_FINALIZER})
    if holders and not managed:
        since = live["metadata"]["deletionTimestamp"]
        text = f"{what} is held by finalizer {', '.join(holders)} since {since}; whoever set it must remove it"
        return cause("DeleteBlocked", text, resource=each.entry.resource, gravity_as=Gravity.WAITING)
    return None


def _told(live: Object) -> Object | None:
    """Return the child's condition that tells of trouble, the gravest first."""
    for type_ in ("Stalled", "Reconciling", "Synced"):
        found = find(live, type_)
        unwell = "False" if type_ == "Synced" else "True"
        if found is not None and found["status"] == unwell and found["reason"] not in _ON_ITS_WAY:
            return {"lastTransitionTime": "its deletion", **found}
    return None


def teardown_status(view: View, causes: tuple[Cause, ...], now: datetime) -> Object:
    """Compute the status of a claim that is being deleted: everything stays as it was but the conditions."""
    generation = generation_of(view.claim)
    first = gravest(causes) or cause("Deleting", "being deleted")
    stalled = first.gravity is Gravity.STALLED or (first.gravity is not Gravity.HELD and is_overdue(view.claim, now))
    conditions = [
        Condition("Ready", "False", first.reason, first.message, generation),
        Condition("Synced", "False", first.reason, first.message, generation),
    ]
    if stalled:
        conditions.append(Condition("Stalled", "True", first.reason, first.message, generation))
    elif first.gravity is not Gravity.HELD:
        conditions.append(Condition("Reconciling", "True", first.reason, first.message, generation))
    before = view.status.get("conditions") or ()
    entries = [each.entry for each in view.known]
    status = {**view.status, "observedGeneration": generation, "conditions": merge(before, conditions, now)}
    if entries:
        status["inventory"] = inventory.dump(entries)
    return {**status, **echo(view)}
