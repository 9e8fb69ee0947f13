"""The reasons of conditions and what each means for a reader: whose turn it is, how it shows. Pure."""

from __future__ import annotations

import enum

import msgspec

from runtime.conditions import MESSAGE_LIMIT
from runtime.text import readable


class Gravity(enum.IntEnum):
    """How a cause shows in the conditions, the gravest first."""

    STALLED = 0
    """Stalled=True: only a person's change can help."""
    MISSING = 1
    """Reconciling=True for a minute, then Stalled=True; tried again when the missing thing appears."""
    WAITING = 2
    """Reconciling=True, Synced=False; Ready stays as last known."""
    PROGRESS = 3
    """Reconciling=True; on its way."""
    HELD = 4
    """Neither; Synced=False; a person may look at it when they like."""
    NOTED = 5
    """Neither; Synced=True all the same; nobody's move."""


_MISSING = frozenset(
    {
        "CompositionNotFound",
        "CredentialsMissing",
        "EnvironmentNotFound",
        "KindNotInstalled",
        "NotAllowed",
        "ProviderConfigNotFound",
        "ReferenceNotFound",
        "RevisionNotFound",
        "SecretNotFound",
    }
)
OTHERS_DOING = frozenset(
    {
        "AccessDenied",
        "Brake",
        "ConnectionIncomplete",
        "InvalidPassword",
        "LimitReached",
        "PasswordUnknown",
        "QuotaExceeded",
        "SecretNotFound",
        "SecretNotOwned",
        "Throttled",
    }
)
"""Reasons that a tenant can bring about without an edit of the claim: by Secrets, or by what others share with him."""
_WAITING = frozenset(
    {
        "CloudBusy",
        "CloudUnreachable",
        "InternalError",
        "PendingChangesInTheWay",
        "QuotaExceeded",
        "RequestFailed",
        "Rotating",
        "Throttled",
    }
)
_PROGRESS = frozenset(
    {
        "ChildNotReady",
        "ConnectionIncomplete",
        "Creating",
        "Deleting",
        "ResourcePending",
        "Restoring",
        "RollingOut",
        "ServerUnreachable",
        "Updating",
    }
)
_HELD = frozenset(
    {
        "AwaitingTakeover",
        "AwaitingTeardown",
        "DriftHeld",
        "FieldConflict",
        "Paused",
        "PendingRestart",
        "TranslatorChanged",
        "WaitingForWindow",
    }
)
_NOTED = frozenset({"KeptLarger", "ObserveOnly"})
# Applied as far as can be: what is missing is the other side's turn.
_IN_SYNC = frozenset({"ChildNotReady", "ConnectionIncomplete", "Creating", "Restoring", "Updating"})


def gravity(reason: str) -> Gravity:
    """Tell how a reason shows; one that is not listed needs a person."""
    for known, found in (
        (_MISSING, Gravity.MISSING),
        (_WAITING, Gravity.WAITING),
        (_PROGRESS, Gravity.PROGRESS),
        (_HELD, Gravity.HELD),
        (_NOTED, Gravity.NOTED),
    ):
        if reason in known:
            return found
    return Gravity.STALLED


class Cause(msgspec.Struct, frozen=True):
    """One reason why a claim is not ready or not in sync; `resource` is the composed resource it is about."""

    reason: str
    message: str
    resource: str = ""
    gravity: Gravity = Gravity.STALLED

    @property
    def is_in_sync(self) -> bool:
        """Whether all that could be applied is applied all the same."""
        return self.gravity is Gravity.PROGRESS and self.reason in _IN_SYNC


def cause(reason: str, message: str, *, resource: str = "", gravity_as: Gravity | None = None) -> Cause:
    """Make a cause of a reason with the gravity that the reason has, unless its teller says otherwise.

    The message is made readable and cut: it may repeat anybody's words.
    """
    return Cause(
        reason, readable(message, MESSAGE_LIMIT), resource, gravity(reason) if gravity_as is None else gravity_as
    )


def gravest(causes: tuple[Cause, ...]) -> Cause | None:
    """Return the first cause: the gravest, among equals the one that comes first in the composition."""
    return min(causes, key=lambda each: each.gravity, default=None)
