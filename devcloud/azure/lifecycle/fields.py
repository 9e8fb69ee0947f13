"""A request's properties as Azure understands them: letter case of enums, types, what an api-version ignores. Pure.

Enums come in any letter case ("enabled" is answered as "Enabled", recorded). What an api-version does not have yet is
ignored without a word; what no version has is refused by name, as it would be a mistake of whoever sends it.
"""

from collections.abc import Mapping
from typing import Any

from devcloud.azure.refusals import bad_request, invalid_value
from devcloud.azure.state.api_versions import WRITABLE
from devcloud.azure.state.catalog import DISK_TIERS

_SWITCH = ("Enabled", "Disabled")
CREATE_MODES = ("Default", "Create", "Update", "PointInTimeRestore", "GeoRestore", "Replica", "ReviveDropped")
# A path and what may stand there: text, a number, or one of several words.
FIELDS: dict[str, type[str] | type[int] | tuple[str, ...]] = {
    "administratorLogin": str,
    "administratorLoginPassword": str,
    "authConfig.activeDirectoryAuth": _SWITCH,
    "authConfig.passwordAuth": _SWITCH,
    "authConfig.tenantId": str,
    "availabilityZone": str,
    "backup.backupRetentionDays": int,
    "backup.geoRedundantBackup": _SWITCH,
    "createMode": CREATE_MODES,
    "dataEncryption.primaryKeyURI": str,
    "dataEncryption.primaryUserAssignedIdentityId": str,
    "dataEncryption.type": ("SystemManaged", "AzureKeyVault"),
    "highAvailability.mode": ("Disabled", "ZoneRedundant", "SameZone"),
    "highAvailability.standbyAvailabilityZone": str,
    "maintenanceWindow.customWindow": _SWITCH,
    "maintenanceWindow.dayOfWeek": int,
    "maintenanceWindow.startHour": int,
    "maintenanceWindow.startMinute": int,
    "network.delegatedSubnetResourceId": str,
    "network.privateDnsZoneArmResourceId": str,
    "network.publicNetworkAccess": _SWITCH,
    "pointInTimeUTC": str,
    "sourceServerResourceId": str,
    "storage.autoGrow": _SWITCH,
    "storage.iops": int,
    "storage.storageSizeGB": int,
    "storage.throughput": int,
    "storage.tier": DISK_TIERS,
    "storage.type": ("", "Premium_LRS", "PremiumV2_LRS", "UltraSSD_LRS"),
    "version": str,
}
# What a server shows and nobody chooses; who sends it back is not refused.
READ_ONLY = frozenset(
    {
        "backup.earliestRestoreDate",
        "fullyQualifiedDomainName",
        "highAvailability.state",
        "minorVersion",
        "privateEndpointConnections",
        "replica",
        "replicaCapacity",
        "replicationRole",
        "state",
    }
)


def canonical(properties: Mapping[str, Any], api_version: str, *, prefix: str = "") -> dict[str, Any]:
    """Return the properties of a request as Azure keeps them, without those that an api-version does not take.

    Raises:
        Refusal: `InvalidRequestContent` for a property that there is none of, `InvalidParameterValue` for a value.
    """
    kept: dict[str, Any] = {}
    for name, value in properties.items():
        path = f"{prefix}{name}"
        if value is None or path in READ_ONLY or WRITABLE.get(path, "") > api_version:
            continue
        if isinstance(value, dict) and any(field.startswith(f"{path}.") for field in FIELDS):
            kept[name] = canonical(value, api_version, prefix=f"{path}.")
        elif path in FIELDS:
            kept[name] = _value(path, value)
        else:
            raise bad_request(
                "InvalidRequestContent",
                "The request content was invalid and could not be deserialized: "
                f"'Could not find member '{name}' on object of type 'Server'. Path 'properties.{path}'.'",
            )
    return kept


def _value(path: str, value: object) -> str | int:
    kind = FIELDS[path]
    if isinstance(kind, tuple):
        word = next((word for word in kind if isinstance(value, str) and word.lower() == value.lower()), None)
        if word is not None:
            return word
    elif isinstance(value, kind) and not isinstance(value, bool):
        return value
    raise invalid_value(path.rpartition(".")[2])


def merged(present: dict[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tree with another one laid over it."""
    result = dict(present)
    for name, value in changes.items():
        below = result.get(name)
        result[name] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result
