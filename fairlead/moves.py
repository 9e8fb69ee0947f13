"""Whose turn it is, by condition reason: the one thing a reason says that its message may not."""

from collections.abc import Mapping

_DEVELOPER = "the developer (edit the claim)"
_PLATFORM = "the platform team"
_NOBODY = "nobody's: Fairlead goes on by itself"

_BY_MOVE: Mapping[str, str] = {
    _DEVELOPER: (
        "CompositionNotFound ReferenceNotFound SecretNotFound AmbiguousComposition UnsupportedVersion "
        "UnsupportedPolicy ImmutableField InvalidValue InvalidPassword SecretNotOwned NameTaken LimitReached "
        "DeletionProtected"
    ),
    f"{_PLATFORM} (the Composition)": (
        "TemplateInvalid SchemaMismatch ApiIncomplete KindNotAllowed NamespaceNotAllowed NameNotAllowed "
        "DuplicateResource DependencyCycle RenderFailed RenderLimit RenderRefused NotJson YamlRefused "
        "TemplateForbidden EmptyResult RolloutHalted RevisionNotFound"
    ),
    f"{_PLATFORM} (the data; nothing is changed until then)": (
        "HeldDeletion HeldChange DatabaseLost DatabaseFailed Replaced PredecessorFound NotOwned AdoptionRefused "
        "PasswordUnknown DatabaseStopped DatabaseRenamed BackupImpossible DeleteBlocked"
    ),
    f"{_PLATFORM} (the settings)": "EnvironmentNotFound KindNotInstalled InUse",
    f"{_PLATFORM} (the account)": (
        "ProviderConfigNotFound NotAllowed CredentialsMissing AccountChanged CredentialsInvalid CredentialsForbidden "
        "EndpointNotAllowed AccessDenied Brake NewerProvider"
    ),
    "a person's, when they like": (
        "Paused FieldConflict DriftHeld WaitingForWindow PendingRestart TranslatorChanged AwaitingTakeover"
    ),
    "the composer's: is it running?": "AwaitingTeardown",
    _NOBODY: (
        "Creating Updating Restoring Deleting ResourcePending ChildNotReady ConnectionIncomplete RollingOut "
        "CloudUnreachable ServerUnreachable Throttled CloudBusy QuotaExceeded Rotating PendingChangesInTheWay "
        "InternalError RequestFailed"
    ),
}
_MOVES: Mapping[str, str] = {reason: move for move, reasons in _BY_MOVE.items() for reason in reasons.split()}


def is_a_persons(reason: str) -> bool:
    """Whether somebody must act or may, and nothing goes on by itself until then."""
    return next_move(reason) not in {"", _NOBODY}


def next_move(reason: str) -> str:
    """Return whose turn it is, empty when the reason asks for nothing."""
    return _MOVES.get(reason, "")
