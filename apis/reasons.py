"""The reasons of conditions: how each shows, who acts next, what follows from it. Pure.

One table, one row a reason, so that no two places judge a reason differently; docs/names.md and docs/troubleshooting.md
hold the same rows for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum, StrEnum
from typing import Final


class ReasonClass(IntEnum):
    """How a reason shows in the conditions, the most severe first."""

    STALLED = 0
    """Stalled=True: only a person's change can help."""
    MISSING = 1
    """Reconciling=True for a minute, then Stalled=True; tried again when the missing thing appears."""
    WAITING = 2
    """Reconciling=True, Synced=False; Ready stays as last known."""
    PROGRESS = 3
    """Reconciling=True, on its way; of a managed resource Ready=False."""
    HELD = 4
    """Neither; Synced=False; a person may look at it when they like."""
    TEARDOWN = 5
    """Neither; Stalled=True after ten minutes."""
    NOTED = 6
    """Neither; Synced=True all the same; nobody acts."""
    NORMAL = 7
    """Nothing is left to do."""


class NextActor(StrEnum):
    """Who acts next, as people read it."""

    DEVELOPER = "the developer (edit the claim)"
    COMPOSITION = "the platform team (the Composition)"
    DATA = "the platform team (the data; nothing is changed until then)"
    SETTINGS = "the platform team (the settings)"
    ACCOUNT = "the platform team (the account)"
    PERSON = "a person's, when they like"
    COMPOSER = "the composer's: is it running?"
    NOBODY = "nobody's: Fairlead goes on by itself"


@dataclass(frozen=True, slots=True)
class Reason:
    """One row: how the reason shows on claims and their Compositions, and who acts next (None: nobody has to).

    `of_managed`: how it shows on managed resources and ProviderConfigs, where that differs. `is_shared`: a tenant can
    bring it about without an edit of the claim, by Secrets, or by what others share with him. `is_in_sync`: all that
    could be applied is applied all the same. `is_unusable`: there is no usable database. `is_by_state`: the cloud is at
    work; each state of it has its own deadline, and its next one is progress.
    """

    name: str
    of_claim: ReasonClass
    next_actor: NextActor | None
    of_managed: ReasonClass | None = None
    is_shared: bool = False
    is_in_sync: bool = False
    is_unusable: bool = False
    is_by_state: bool = False


CUT_OFF: Final = "ServerUnreachable"
"""The reason under which Ready is taken away until the database is seen again, and given back then."""
MISSING_PATIENCE: Final = timedelta(seconds=60)
"""For how long what is missing may appear by itself."""
_TEARDOWN_PATIENCE = timedelta(minutes=10)
_SLOWEST = timedelta(minutes=10)

_STALLED, _MISSING, _WAITING = ReasonClass.STALLED, ReasonClass.MISSING, ReasonClass.WAITING
_PROGRESS, _HELD, _NOTED, _NORMAL = ReasonClass.PROGRESS, ReasonClass.HELD, ReasonClass.NOTED, ReasonClass.NORMAL
_DEVELOPER, _COMPOSITION, _DATA = NextActor.DEVELOPER, NextActor.COMPOSITION, NextActor.DATA
_SETTINGS, _ACCOUNT, _PERSON, _NOBODY = NextActor.SETTINGS, NextActor.ACCOUNT, NextActor.PERSON, NextActor.NOBODY

_TABLE: Final = (
    # No cause: whoever says them of what is not so is not understood.
    Reason("Available", _STALLED, None, of_managed=_NORMAL),
    Reason("InSync", _STALLED, None, of_managed=_NORMAL),
    Reason("KeptLarger", _NOTED, None, of_managed=_NORMAL),
    Reason("ObserveOnly", _NOTED, None, of_managed=_HELD),
    Reason("Creating", _PROGRESS, _NOBODY, is_in_sync=True, is_by_state=True),
    Reason("Updating", _PROGRESS, _NOBODY, is_in_sync=True, is_by_state=True),
    Reason("Restoring", _PROGRESS, _NOBODY, is_in_sync=True, is_by_state=True),
    Reason("Deleting", _PROGRESS, _NOBODY, is_by_state=True),
    Reason("ResourcePending", _PROGRESS, _NOBODY),
    Reason(CUT_OFF, _PROGRESS, _NOBODY),
    Reason("ChildNotReady", _PROGRESS, _NOBODY, is_in_sync=True),
    Reason("ConnectionIncomplete", _PROGRESS, _NOBODY, is_shared=True, is_in_sync=True),
    Reason("RollingOut", _PROGRESS, _NOBODY),
    Reason("CloudUnreachable", _WAITING, _NOBODY),
    Reason("Throttled", _WAITING, _NOBODY, is_shared=True),
    Reason("CloudBusy", _WAITING, _NOBODY, is_by_state=True),
    Reason("QuotaExceeded", _WAITING, _NOBODY, is_shared=True),
    Reason("Rotating", _WAITING, _NOBODY, is_by_state=True),
    Reason("PendingChangesInTheWay", _WAITING, _NOBODY),
    Reason("InternalError", _WAITING, _NOBODY),
    Reason("RequestFailed", _WAITING, _NOBODY),
    Reason("CompositionNotFound", _MISSING, _DEVELOPER),
    Reason("ReferenceNotFound", _MISSING, _DEVELOPER),
    Reason("SecretNotFound", _MISSING, _DEVELOPER, is_shared=True),
    Reason("ProviderConfigNotFound", _MISSING, _ACCOUNT),
    Reason("NotAllowed", _MISSING, _ACCOUNT),
    Reason("CredentialsMissing", _MISSING, _ACCOUNT),
    Reason("EnvironmentNotFound", _MISSING, _SETTINGS),
    Reason("RevisionNotFound", _MISSING, _COMPOSITION),
    Reason("KindNotInstalled", _MISSING, _SETTINGS),
    Reason("Paused", _HELD, _PERSON),
    Reason("FieldConflict", _HELD, _PERSON),
    Reason("DriftHeld", _HELD, _PERSON),
    Reason("WaitingForWindow", _HELD, _PERSON),
    Reason("PendingRestart", _HELD, _PERSON),
    Reason("TranslatorChanged", _HELD, _PERSON),
    Reason("AwaitingTakeover", _HELD, _PERSON),
    Reason("AwaitingTeardown", _HELD, NextActor.COMPOSER, of_managed=ReasonClass.TEARDOWN),
    Reason("AmbiguousComposition", _STALLED, _DEVELOPER),
    Reason("UnsupportedVersion", _STALLED, _DEVELOPER),
    Reason("UnsupportedPolicy", _STALLED, _DEVELOPER),
    Reason("UnsupportedValue", _STALLED, _DEVELOPER),
    Reason("ImmutableField", _STALLED, _DEVELOPER),
    Reason("InvalidValue", _STALLED, _DEVELOPER),
    Reason("InvalidPassword", _STALLED, _DEVELOPER, is_shared=True),
    Reason("SecretNotOwned", _STALLED, _DEVELOPER, is_shared=True),
    Reason("NameTaken", _STALLED, _DEVELOPER),
    Reason("LimitReached", _STALLED, _DEVELOPER, is_shared=True),
    Reason("DeletionProtected", _STALLED, _DEVELOPER),
    Reason("TemplateInvalid", _STALLED, _COMPOSITION),
    Reason("SchemaMismatch", _STALLED, _COMPOSITION),
    Reason("ApiIncomplete", _STALLED, _COMPOSITION),
    Reason("KindNotAllowed", _STALLED, _COMPOSITION),
    Reason("NamespaceNotAllowed", _STALLED, _COMPOSITION),
    Reason("NameNotAllowed", _STALLED, _COMPOSITION),
    Reason("DuplicateResource", _STALLED, _COMPOSITION),
    Reason("DependencyCycle", _STALLED, _COMPOSITION),
    Reason("RenderFailed", _STALLED, _COMPOSITION),
    Reason("RenderLimit", _STALLED, _COMPOSITION),
    Reason("RenderRefused", _STALLED, _COMPOSITION),
    Reason("NotJson", _STALLED, _COMPOSITION),
    Reason("YamlRefused", _STALLED, _COMPOSITION),
    Reason("TemplateForbidden", _STALLED, _COMPOSITION),
    Reason("EmptyResult", _STALLED, _COMPOSITION),
    Reason("RolloutHalted", _STALLED, _COMPOSITION),
    Reason("ChildFailed", _STALLED, _SETTINGS, is_in_sync=True),
    Reason("HeldDeletion", _STALLED, _DATA),
    Reason("HeldChange", _STALLED, _DATA),
    Reason("DatabaseLost", _STALLED, _DATA, is_unusable=True),
    Reason("Replaced", _STALLED, _DATA, is_unusable=True),
    Reason("PredecessorFound", _STALLED, _DATA),
    Reason("NotOwned", _STALLED, _DATA),
    Reason("AdoptionRefused", _STALLED, _DATA),
    Reason("PasswordUnknown", _STALLED, _DATA, is_shared=True),
    Reason("DatabaseStopped", _STALLED, _DATA, is_unusable=True),
    Reason("DatabaseFailed", _STALLED, _DATA, is_unusable=True),
    Reason("DatabaseRenamed", _STALLED, _DATA, is_unusable=True),
    Reason("BackupImpossible", _STALLED, _DATA),
    Reason("DeleteBlocked", _STALLED, _DATA),
    Reason("AccountChanged", _STALLED, _ACCOUNT),
    Reason("CredentialsInvalid", _STALLED, _ACCOUNT),
    Reason("CredentialsForbidden", _STALLED, _ACCOUNT),
    Reason("EndpointNotAllowed", _STALLED, _ACCOUNT),
    Reason("AccessDenied", _STALLED, _ACCOUNT, is_shared=True),
    Reason("Brake", _STALLED, _ACCOUNT, is_shared=True),
    Reason("NewerProvider", _STALLED, _ACCOUNT),
    Reason("InUse", _STALLED, _SETTINGS),
)
REASONS: Final[Mapping[str, Reason]] = {row.name: row for row in _TABLE}
SHARED: Final = frozenset(row.name for row in _TABLE if row.is_shared)
IN_SYNC: Final = frozenset(row.name for row in _TABLE if row.is_in_sync)
UNUSABLE: Final = frozenset(row.name for row in _TABLE if row.is_unusable)
BY_STATE: Final = frozenset(row.name for row in _TABLE if row.is_by_state)


def class_of_claim(reason: str) -> ReasonClass:
    """Return how a reason shows on a claim; one that is not in the table needs a person."""
    row = REASONS.get(reason)
    return ReasonClass.STALLED if row is None else row.of_claim


def class_of_managed(reason: str) -> ReasonClass:
    """Return how a reason shows on a managed resource; one that is not in the table needs a person."""
    if not reason:
        return ReasonClass.NORMAL
    row = REASONS.get(reason)
    if row is None:
        return ReasonClass.STALLED
    return row.of_claim if row.of_managed is None else row.of_managed


def deadline_of(reason: str, of_state: timedelta | None = None) -> timedelta:
    """Return how long a reason may stay on a managed resource before Stalled; `of_state` is what the cloud may take."""
    if reason in BY_STATE and of_state is not None:
        return of_state
    match class_of_managed(reason):
        case ReasonClass.MISSING:
            return MISSING_PATIENCE
        case ReasonClass.TEARDOWN:
            return _TEARDOWN_PATIENCE
        case _:
            return _SLOWEST


def next_actor(reason: str) -> str:
    """Return who acts next, empty when the reason asks for nothing."""
    row = REASONS.get(reason)
    return "" if row is None or row.next_actor is None else row.next_actor.value


def needs_a_person(reason: str) -> bool:
    """Return whether somebody must act or may, and nothing goes on by itself until then."""
    return next_actor(reason) not in ("", NextActor.NOBODY)
