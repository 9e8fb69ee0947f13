"""What each reason means for the four conditions. Pure; one table, so that no two places judge a reason differently."""

from __future__ import annotations

from datetime import timedelta
from enum import Enum


class Kind(Enum):
    """Who has the move, and what the conditions say."""

    FINE = "fine"
    NOT_READY = "reconciling, not ready"
    AS_KNOWN = "reconciling, ready as last known"
    MISSING = "reconciling for a minute, then stalled"
    RESTING = "neither"
    TEARDOWN = "neither, stalled after ten minutes"
    STALLED = "stalled"


_NOT_READY = frozenset({"Creating", "Updating", "Restoring", "Deleting", "ResourcePending"})
_AS_KNOWN = frozenset({
    "CloudUnreachable", "Throttled", "CloudBusy", "QuotaExceeded", "Rotating", "PendingChangesInTheWay",
    "InternalError",
})  # fmt: skip
_MISSING = frozenset(
    {"SecretNotFound", "ReferenceNotFound", "ProviderConfigNotFound", "NotAllowed", "CredentialsMissing"}
)
_RESTING = frozenset({
    "Paused", "FieldConflict", "DriftHeld", "WaitingForWindow", "PendingRestart", "TranslatorChanged",
    "AwaitingTakeover", "ObserveOnly",
})  # fmt: skip
UNUSABLE = frozenset({"DatabaseLost", "DatabaseStopped", "DatabaseFailed", "DatabaseRenamed", "Replaced"})
"""Stalled reasons under which there is no usable database."""

_DEADLINES = {Kind.MISSING: timedelta(seconds=60), Kind.TEARDOWN: timedelta(minutes=10)}
_SLOWEST = timedelta(minutes=10)


def kind_of(reason: str) -> Kind:
    """Return what a reason means; one that is in no other list needs a person."""
    if reason in _NOT_READY:
        return Kind.NOT_READY
    if reason in _AS_KNOWN:
        return Kind.AS_KNOWN
    if reason in _MISSING:
        return Kind.MISSING
    if reason in _RESTING:
        return Kind.RESTING
    if reason == "AwaitingTeardown":
        return Kind.TEARDOWN
    return Kind.FINE if reason in {"", "Available", "InSync", "KeptLarger"} else Kind.STALLED


def deadline_of(kind: Kind) -> timedelta:
    """Return after how long a state that goes on becomes Stalled."""
    return _DEADLINES.get(kind, _SLOWEST)
