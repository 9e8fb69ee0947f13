"""Passes over one resource that end in an error nobody reported, and what is said of them. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from providers.reasons import deadline_of
from runtime.conditions import Condition, find, instant, merge
from runtime.errors import ApiError, Conflict, Failure, NotLeading, WriteConflict
from runtime.objects import Key, Object, generation_of, status_of

REPEATED = 3
"""An error is told from this pass in a row on: single ones are over before anybody could read of them."""
REPEATED_CONFLICTS = 10
"""The same of conflicts, which are tried again at once."""
REASONS = frozenset({"InternalError", "RequestFailed"})
_TEXT_LIMIT = 400


class Failures:
    """Counts the failed passes of each resource since its last good one; nothing depends on it being kept."""

    def __init__(self) -> None:
        self._passes: dict[Key, int] = {}

    def add(self, key: Key) -> int:
        """Count a failed pass; return how many there were in a row."""
        count = self._passes[key] = self._passes.get(key, 0) + 1
        return count

    def forget(self, key: Key) -> None:
        """Forget the failed passes of a resource: one succeeded, or the resource is gone."""
        self._passes.pop(key, None)


def cause_of(error: Exception, in_a_row: int) -> tuple[str, str] | None:
    """Return reason and sentence for the error that ended a pass; None where it may be over with the next one.

    The text of a defect is left to the log: nobody knows what is in it.
    """
    if isinstance(error, NotLeading):
        return None
    if not isinstance(error, ApiError | Failure | TimeoutError):
        text = (
            f"a defect of Fairlead ended the pass over this resource ({type(error).__name__}); it is tried again, ever"
            " more rarely; report it with the line of the provider's log that says InternalError"
        )
        return "InternalError", text
    least = REPEATED_CONFLICTS if isinstance(error, Conflict | WriteConflict) else REPEATED
    if in_a_row < least:
        return None
    text = f"passes over this resource fail in a row, the last by: {str(error) or type(error).__name__}"
    return "RequestFailed", text[:_TEXT_LIMIT]


def is_told(obj: Object) -> bool:
    """Tell whether the conditions of a resource say that its passes fail."""
    synced = find(obj, "Synced")
    return synced is not None and synced["reason"] in REASONS


def status_of_failure(obj: Object, cause: tuple[str, str], now: datetime) -> Object:
    """Return the status with what ended the pass; all else in it stays, since nothing was learnt.

    Ready stays as it is known. What goes on for longer than its reason may is Stalled.
    """
    (reason, message), generation = cause, generation_of(obj)
    ready = find(obj, "Ready")
    kind: Literal["Reconciling", "Stalled"] = "Stalled" if _is_overdue(obj, reason, now) else "Reconciling"
    told = [
        Condition("Ready", "False", reason, message, generation)
        if ready is None
        else Condition(
            "Ready", ready["status"], ready["reason"], ready["message"], ready.get("observedGeneration", generation)
        ),
        Condition("Synced", "False", reason, message, generation),
        Condition(kind, "True", reason, message, generation),
    ]
    before = status_of(obj).get("conditions") or []
    known = find(obj, "Reconciling")
    if known is not None and known["reason"] != reason:
        before = [condition for condition in before if condition.get("type") != "Reconciling"]
    return {**status_of(obj), "conditions": merge(before, told, now)}


def _is_overdue(obj: Object, reason: str, now: datetime) -> bool:
    stalled, reconciling = find(obj, "Stalled"), find(obj, "Reconciling")
    if stalled is not None and stalled["reason"] == reason:
        return True
    if reconciling is None or reconciling["reason"] != reason:
        return False
    since = instant(str(reconciling.get("lastTransitionTime", "")))
    return since is not None and now - since >= deadline_of(reason)
