"""Operations by their names on the wire, how long they take, how often to ask. Pure.

Recorded are the names and pauses of creations, updates, deletions, databases, rules and parameters, and how long each
took (2026-01): 380 s, 70 s, 70 s, 2 s, 60 s, 12 s. The names of start, stop, restart, PATCH and backups are ours.
"""

import msgspec

from devcloud.azure.lifecycle import effects
from devcloud.azure.lifecycle.effects import Effect


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of operation.

    Attributes:
        name: On the wire.
        seconds: How long it takes.
        retry_after_s: After how long to ask again.
    """

    name: str
    seconds: float
    retry_after_s: int = 60


_KINDS: dict[type, Kind] = {
    effects.CreateServer: Kind(name="UpsertServerManagementOperationV2", seconds=380),
    effects.UpdateServer: Kind(name="UpsertServerManagementOperationV2", seconds=70),
    effects.DropServer: Kind(name="DropServerManagementOperation", seconds=70, retry_after_s=15),
    effects.StartServer: Kind(name="StartServerManagementOperation", seconds=120, retry_after_s=15),
    effects.StopServer: Kind(name="StopServerManagementOperation", seconds=60, retry_after_s=15),
    effects.RestartServer: Kind(name="RestartServerManagementOperation", seconds=60, retry_after_s=15),
    effects.PutDatabase: Kind(name="UpsertServerDatabaseManagementOperation", seconds=2, retry_after_s=10),
    effects.DropDatabase: Kind(name="DropServerDatabaseManagementOperation", seconds=10, retry_after_s=10),
    effects.PutRule: Kind(name="UpsertServerFirewallRulesManagementOperation", seconds=60),
    effects.DropRule: Kind(name="DropServerFirewallRulesManagementOperation", seconds=60),
    effects.SetConfiguration: Kind(name="UpdateOrcasServerParameterManagementOperation", seconds=12, retry_after_s=10),
    effects.TakeBackup: Kind(name="CreateBackupManagementOperation", seconds=60, retry_after_s=10),
    effects.DropGroup: Kind(name="DropResourceGroup", seconds=60, retry_after_s=15),
}
_EARLIER_CONFIGURATION = "UpdateConfigurationManagementOperation"
_RETRY_AFTER_S = {kind.name: kind.retry_after_s for kind in _KINDS.values()}


def kind_of(effect: Effect, api_version: str) -> Kind:
    """Return the kind of an operation; that of parameters has another name in 2021-06-01."""
    kind = _KINDS[type(effect)]
    if isinstance(effect, effects.SetConfiguration) and api_version < "2022":
        return msgspec.structs.replace(kind, name=_EARLIER_CONFIGURATION)
    return kind


def retry_after_s(name: str) -> int:
    """Return after how long to ask for an operation again, by the name of its kind."""
    return _RETRY_AFTER_S.get(name, 10)
