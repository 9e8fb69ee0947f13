"""Whether a database can be used although something is left to do, an outage of its server included. Pure."""

from __future__ import annotations

from typing import Any

from apis.reasons import CUT_OFF, UNUSABLE, ReasonClass, class_of_managed
from providers.external.observation import Phase, Present
from providers.managed.outcome import Outcome
from providers.managed.snapshot import Snapshot
from runtime.conditions import Condition, find
from runtime.objects import Object

# What waits for a window, a person or a restart leaves the database usable.
_ASIDE = frozenset({"WaitingForWindow", "DriftHeld", "PendingRestart", "TranslatorChanged", "HeldChange"})


def is_usable(snapshot: Snapshot[Any], outcome: Outcome[Any], reason: str) -> bool:
    """Return whether the database can be used although something is left to do.

    What an outage of the server took away is given back with the first look that finds the database usable.
    """
    if reason in UNUSABLE or not works(snapshot, outcome):
        return False
    return reason in _ASIDE or (_was_cut_off(outcome.obj) and bool(snapshot.scene.marks.incarnation))


def still_cut_off(snapshot: Snapshot[Any], ready: Condition, reason: str) -> Condition:
    """Keep what is said of an outage until the database is seen again, so that the next look can take it back."""
    known = find(snapshot.obj, "Ready")
    is_unseen = snapshot.observed is None and class_of_managed(reason) is ReasonClass.WAITING
    if known is None or not is_unseen or not _was_cut_off(snapshot.obj):
        return ready
    return Condition("Ready", "False", CUT_OFF, known["message"], ready.observed_generation)


def works(snapshot: Snapshot[Any], outcome: Outcome[Any]) -> bool:
    """Return whether the database was seen, usable, with a password that is published."""
    observed = outcome.fresh.observed if isinstance(outcome.fresh, Present) else snapshot.observed
    published = outcome.stored is not None and bool(outcome.stored.kept.current)
    return observed is not None and observed.phase is Phase.READY and observed.usable and published


def _was_cut_off(obj: Object) -> bool:
    ready = find(obj, "Ready")
    return ready is not None and ready["status"] == "False" and ready["reason"] == CUT_OFF
