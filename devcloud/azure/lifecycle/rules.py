"""What may stand in a server, and what of it may change. Pure.

Sources: the REST reference of Microsoft.DBforPostgreSQL (models of azure-mgmt-rdbms 10.1.1 and
azure-mgmt-postgresqlflexibleservers 3.0.0, whose fields say `create` or `update`), and the pages "Storage options",
"High availability", "Backup and restore", "Networking overview" and "Major version upgrades" of Azure Database for
PostgreSQL flexible server.
"""

import re
from collections.abc import Mapping
from typing import Any

from devcloud.azure.refusals import bad_request, invalid_value, missing_value, unchangeable
from devcloud.azure.state import catalog
from devcloud.azure.state.api_versions import ENGINES
from devcloud.azure.state.configurations import EXTENSIONS
from devcloud.azure.state.extensions import offered_in
from devcloud.azure.state.model import Server, Sku

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{1,61})[a-z0-9]")
_RESERVED = frozenset(
    {"admin", "administrator", "azure_pg_admin", "azure_superuser", "azuresu", "guest", "public", "root"}
)
_PASSWORD_LENGTH = range(8, 129)
_CLASSES_OF_CHARACTERS = 3
_HOURS, _MINUTES, _DAYS = range(24), range(60), range(7)


def is_name(name: str) -> bool:
    """Return whether a server may have a name: 3 to 63 small letters, digits and hyphens, as in DNS."""
    return _NAME.fullmatch(name) is not None


def refuse_name(name: str) -> None:
    """Refuse a name that no server may have.

    Raises:
        Refusal: `InvalidServerName`.
    """
    if not is_name(name):
        raise bad_request("InvalidServerName", f"Specified server name '{name}' is invalid.")


def sku_of(requested: Mapping[str, Any] | None, present: Sku | None) -> Sku:
    """Return the size that a request means, in Azure's letter case.

    Raises:
        Refusal: It is missing at a creation, or the tier does not have it.
    """
    if not requested:
        if present is None:
            raise missing_value("sku")
        return present
    tier = str(requested.get("tier") or (present.tier if present else ""))
    known_tier = next((known for known in catalog.TIERS if known.lower() == tier.lower()), None)
    if known_tier is None:
        raise invalid_value("tier")
    name = catalog.sku_name(known_tier, str(requested.get("name", "")))
    if name is None:
        raise invalid_value("sku")
    return Sku(name=name, tier=known_tier)


def refuse_password(password: str, login: str) -> None:
    """Refuse a password that Azure finds too simple: 8 to 128 characters of three classes, without the login.

    Raises:
        Refusal: `PasswordTooShort`, `PasswordTooLong` or `PasswordNotComplex`; never with the password.
    """
    if len(password) not in _PASSWORD_LENGTH:
        code = "PasswordTooLong" if len(password) >= _PASSWORD_LENGTH.stop else "PasswordTooShort"
        raise bad_request(code, "The password must have at least 8 and at most 128 characters.")
    classes = (r"[a-z]", r"[A-Z]", r"[0-9]", r"[^a-zA-Z0-9]")
    is_simple = sum(re.search(pattern, password) is not None for pattern in classes) < _CLASSES_OF_CHARACTERS
    if is_simple or (login and login.lower() in password.lower()):
        raise bad_request("PasswordNotComplex", "The password does not meet the complexity requirements.")


def refuse_login(login: str) -> None:
    """Refuse an administrator's name that is reserved.

    Raises:
        Refusal: `InvalidParameterValue`.
    """
    is_plain = re.fullmatch(r"[A-Za-z0-9_]{1,63}", login) is not None
    if not is_plain or login.lower() in _RESERVED or login.lower().startswith("pg_"):
        raise invalid_value("administratorLogin")


def refuse_values(properties: Mapping[str, Any], sku: Sku) -> None:
    """Refuse what no server may have, at its creation and later.

    Raises:
        Refusal: `InvalidParameterValue`, or what a combination is refused with.
    """
    storage = properties.get("storage", {})
    size = storage.get("storageSizeGB")
    if size is not None and storage.get("type") in {None, "", "Premium_LRS"} and size not in catalog.DISKS:
        raise invalid_value("storageSizeGB")
    if properties.get("backup", {}).get("backupRetentionDays", 7) not in catalog.RETENTION_DAYS:
        raise invalid_value("backupRetentionDays")
    if properties.get("availabilityZone", "") not in {"", *catalog.ZONES}:
        raise invalid_value("availabilityZone")
    window = properties.get("maintenanceWindow", {})
    for name, values in (("dayOfWeek", _DAYS), ("startHour", _HOURS), ("startMinute", _MINUTES)):
        if window.get(name, 0) not in values:
            raise invalid_value(name)
    if properties.get("highAvailability", {}).get("mode", "Disabled") != "Disabled" and sku.tier == "Burstable":
        raise bad_request("HAForBurstableNotSupported", "High availability is not supported for the Burstable tier.")
    network = properties.get("network", {})
    if network.get("delegatedSubnetResourceId") and not network.get("privateDnsZoneArmResourceId"):
        raise missing_value("privateDnsZoneArmResourceId")


def refuse_engine(version: str, api_version: str) -> None:
    """Refuse a PostgreSQL version that an api-version does not have.

    Raises:
        Refusal: `InvalidParameterValue`.
    """
    if version not in ENGINES[api_version]:
        raise invalid_value("version")


def refuse_edits(server: Server, changes: Mapping[str, Any]) -> None:
    """Refuse the edits of what is chosen at creation, and what goes one way only.

    Raises:
        Refusal: `PropertyChangeNotAllowed`, or `InvalidParameterValue` for less storage or an older version.
    """
    present = server.properties
    chosen_once = (
        ("administratorLogin", present.administrator_login),
        ("backup.geoRedundantBackup", present.backup.geo_redundant_backup),
        ("network.delegatedSubnetResourceId", present.network.delegated_subnet_resource_id),
        ("dataEncryption.type", present.data_encryption.type),
    )
    for path, value in chosen_once:
        wanted = at_path(changes, path)
        if wanted is not None and wanted.lower() != (value or "").lower():
            raise unchangeable(f"properties.{path}")
    zone = changes.get("availabilityZone", "")
    if zone not in {"", present.availability_zone, present.high_availability.standby_availability_zone}:
        raise unchangeable("properties.availabilityZone")
    if changes.get("storage", {}).get("storageSizeGB", 1 << 20) < present.storage.storage_size_gb:
        raise invalid_value("storageSizeGB")
    if int(changes.get("version", present.version)) < int(present.version):
        raise invalid_value("version")
    refuse_lost_extensions(server, str(changes.get("version", present.version)))


def refuse_lost_extensions(server: Server, version: str) -> None:
    """Refuse an upgrade to a version without an extension that is allowed ("Major version upgrades", limitations).

    Raises:
        Refusal: `MajorVersionUpgradeNotSupported`; code and sentence are ours.
    """
    allowed = (part.strip().lower() for part in server.overrides.get(EXTENSIONS, "").split(",") if part.strip())
    lost = sorted(set(allowed) - set(offered_in(version)))
    if version != server.properties.version and lost:
        message = f"Version {version} does not support the extensions {', '.join(lost)} of {EXTENSIONS}."
        raise bad_request("MajorVersionUpgradeNotSupported", message)


def at_path(tree: Mapping[str, Any], path: str) -> Any:
    """Return what stands at a path, None for nothing."""
    value: Any = tree
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value
