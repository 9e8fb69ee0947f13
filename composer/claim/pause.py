"""What a paused claim says: who paused it, when, why and until when. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from apis import names
from apis.pause import pause_reason
from composer.causes import Cause
from composer.claim.outcomes import of_broken
from composer.claim.readiness import broken
from composer.claim.report import as_before, echo
from composer.claim.snapshot import View
from runtime.conditions import Condition, find, merge
from runtime.objects import Object, annotations_of, generation_of


@dataclass(frozen=True, slots=True)
class Pauser:
    """Who set the pause, as the API server recorded it: a field manager, and when (RFC 3339)."""

    manager: str
    at: str

    def __str__(self) -> str:
        return f" by {self.manager} at {self.at}" if self.manager else ""


NOBODY = Pauser("", "")


def pauser(claim: Object) -> Pauser:
    """Find who set the pause in a claim that was read with its managedFields; the last of several.

    Source: "Server-Side Apply", field management: an annotation's owner is the manager that set its value last.
    """
    return max(_setters(claim), key=lambda each: each.at, default=NOBODY)


def _setters(claim: Object) -> Iterator[Pauser]:
    for each in claim["metadata"].get("managedFields") or ():
        fields = (each.get("fieldsV1") or {}).get("f:metadata") or {}
        if f"f:{names.PAUSED}" in (fields.get("f:annotations") or {}):
            yield Pauser(str(each.get("manager", ""))[:64], str(each.get("time", "")))


def paused_status(view: View, by: Pauser, now: datetime, lost: Cause | None = None) -> Object:
    """Compute the status of a paused claim: neither Reconciling nor Stalled, and Ready as last known.

    What is known to be unusable takes Ready away, a connection Secret that was deleted (`lost`) too; it is given back
    when all can be used again.
    """
    generation = generation_of(view.claim)
    why = pause_reason(annotations_of(view.claim))
    until = annotations_of(view.claim).get(names.PAUSED, "")
    end = "" if until == "true" else f" until {until[:64]}"
    waits = "; its deletion waits" if view.deleting else ""
    text = f"paused{by}{end}: {why[:200]}{waits}; remove annotation {names.PAUSED} to go on"
    before = view.status.get("conditions") or ()
    ready = find(view.claim, "Ready")
    conditions = [Condition("Synced", "False", "Paused", text, generation)]
    unusable = broken(view, None)
    said = of_broken(view, unusable[0]) if unusable else lost
    known = None if said else as_before(view, None)
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
        **view.status,
        "observedGeneration": generation,
        "conditions": merge(before, conditions, now),
        **echo(view),
    }
