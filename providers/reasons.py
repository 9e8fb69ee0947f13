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


CUT_OFF = "ServerUnreachable"
"""The reason under which Ready is taken away until the database is seen again, and given back then."""

_NOT_READY = frozenset({"Creating", "Updating", "Restoring", "Deleting", "ResourcePending", CUT_OFF})
_AS_KNOWN = frozenset({
    "CloudUnreachable", "Throttled", "CloudBusy", "QuotaExceeded", "Rotating", "PendingChangesInTheWay",
    "InternalError", "RequestFailed",
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

BY_STATE = frozenset({"Creating", "Updating", "Restoring", "Deleting", "CloudBusy", "Rotating"})
"""Reasons under which the cloud is at work: each state of it has its own deadline, and its next one is progress."""

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


def deadline_of(reason: str, of_state: timedelta | None = None) -> timedelta:
    """Return after how long a reason that goes on becomes Stalled; `of_state` is what the cloud's state may take."""
    if reason in BY_STATE and of_state is not None:
        return of_state
    return _DEADLINES.get(kind_of(reason), _SLOWEST)
