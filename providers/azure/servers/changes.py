"""What each field of a server does to its users when it changes, and the PATCH that makes it. Pure.

"Servers - Update" of the REST reference 2025-08-01; "Scale operations", "Major version upgrade", "Data encryption" and
"Microsoft Entra authentication" of Azure Database for PostgreSQL. A PATCH holds what changed and nothing else, but for
groups that ARM takes as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from providers.azure.models import FlexibleServerParameters
from providers.azure.servers.facts import Facts, at_least_tier
from providers.azure.servers.roles import is_of_logins
from providers.external.cloud_api.tags import FIELD, Tags, tag_changes
from providers.external.observation import RESTART, Change, Class, Observed, Path, Value

Seen = Observed[FlexibleServerParameters, Facts]


@dataclass(frozen=True, slots=True)
class Rule:
    """How one field goes into the PATCH: where its leaf is, what it does, and with which others it goes together."""

    path: tuple[str, ...]
    kind: Class = Class.ONLINE
    group: tuple[str, ...] = ()


_SKU = ("skuName", "skuTier")
_HA = ("highAvailabilityMode", "standbyAvailabilityZone")
_AUTH = ("passwordAuth", "activeDirectoryAuth", "tenantId")
_KEY = ("primaryKeyURI", "primaryUserAssignedIdentityId")
_WINDOW = ("customWindow", "dayOfWeek", "startHour", "startMinute")


def _rule(*path: str, kind: Class = Class.ONLINE, group: tuple[str, ...] = ()) -> Rule:
    return Rule(("properties", *path), kind, group)


RULES: Mapping[str, Rule] = {
    "skuName": Rule(("sku", "name"), Class.RESTART, _SKU),
    "skuTier": Rule(("sku", "tier"), Class.RESTART, _SKU),
    "version": _rule("version", kind=Class.LOSS),
    "storageSizeGB": _rule("storage", "storageSizeGB"),
    "autoGrow": _rule("storage", "autoGrow"),
    "storageTier": _rule("storage", "tier"),
    "iops": _rule("storage", "iops"),
    "throughput": _rule("storage", "throughput"),
    "backupRetentionDays": _rule("backup", "backupRetentionDays"),
    "highAvailabilityMode": _rule("highAvailability", "mode", group=_HA),
    "standbyAvailabilityZone": _rule("highAvailability", "standbyAvailabilityZone", group=_HA),
    "publicNetworkAccess": _rule("network", "publicNetworkAccess", kind=Class.LOCKOUT),
    "passwordAuth": _rule("authConfig", "passwordAuth", kind=Class.LOCKOUT, group=_AUTH),
    "activeDirectoryAuth": _rule("authConfig", "activeDirectoryAuth", kind=Class.LOCKOUT, group=_AUTH),
    "tenantId": _rule("authConfig", "tenantId", kind=Class.LOCKOUT, group=_AUTH),
    "primaryKeyURI": _rule("dataEncryption", "primaryKeyURI", kind=Class.LOSS, group=_KEY),
    "primaryUserAssignedIdentityId": _rule(
        "dataEncryption", "primaryUserAssignedIdentityId", kind=Class.LOSS, group=_KEY
    ),
    "customWindow": _rule("maintenanceWindow", "customWindow", group=_WINDOW),
    "dayOfWeek": _rule("maintenanceWindow", "dayOfWeek", group=_WINDOW),
    "startHour": _rule("maintenanceWindow", "startHour", group=_WINDOW),
    "startMinute": _rule("maintenanceWindow", "startMinute", group=_WINDOW),
}
_BY_KEY = "AzureKeyVault"
_BURSTABLE = "Burstable"


def classify(change: Change, observed: Seen) -> Change:
    """Return a change with its class, and why it cannot be sent as things are."""
    if change.path[0] == FIELD or change.path == RESTART or is_of_logins(change):
        return change
    veto, kind = _veto(change, observed.facts), _kind(change)
    # An upgrade is refused beside any other change ("Major version upgrade", considerations).
    return replace(change, kind=kind, veto=veto, alone=change.path[0] == "version", along=_along(change, observed))


def outage(change: Change, observed: Seen) -> str:
    """Return for how long a change that interrupts does so.

    "Scaling resources": a restart takes a minute or less, minutes on a server that is at work. "Major version upgrade":
    the server is away meanwhile.
    """
    del observed
    return "until the upgrade has ended" if change.path[0] == "version" else "a minute, or some on a busy server"


def _along(change: Change, observed: Seen) -> Path:
    """Return the change without which ARM refuses one: a burstable server gets no standby, but with another tier."""
    is_standby = change.path == ("highAvailabilityMode",) and change.want != "Disabled"
    return ("skuTier",) if is_standby and observed.spec.sku_tier == _BURSTABLE else ()


def _kind(change: Change) -> Class:
    """Return the class of a change: to open what is closed locks nobody out."""
    match change.path[0], change.want:
        case "publicNetworkAccess", "Enabled":
            return Class.ONLINE
        case (("passwordAuth" | "activeDirectoryAuth"), "Enabled"):
            # The server restarts when a way to log in is added.
            return Class.RESTART
        case name, _:
            return RULES[name].kind


def _veto(change: Change, facts: Facts) -> tuple[str, str] | None:
    match change.path[0], change.want:
        case "version", str(want) if _number(want) < _number(facts.version):
            return "InvalidValue", f"version {want} is older than {facts.version}, which runs; Azure makes no downgrade"
        case "publicNetworkAccess", _ if facts.injected:
            text = "a server in a delegated subnet has no public network access; make a new one and move the data"
            return "InvalidValue", text
        case (("primaryKeyURI" | "primaryUserAssignedIdentityId"), _) if not facts.encrypted_by_key:
            text = "whether a key of one's own encrypts a server is fixed at creation; make a new one and move the data"
            return "InvalidValue", text
        case _:
            return None


def _number(version: str) -> int:
    major = version.partition(".")[0]
    return int(major) if major.isdigit() else 0


def request(spec: FlexibleServerParameters, observed: Seen, changes: Iterable[Change]) -> dict[str, Any] | None:
    """Return the body of the PATCH that makes the changes, but for those about logins; None for none.

    Of a group that ARM takes as a whole the members go along that the spec has, else as they are.
    """
    body: dict[str, Any] = {}
    changes = tuple(change for change in changes if not is_of_logins(change))
    tags = tag_changes(changes)
    if tags.put or tags.removed:
        body["tags"] = merged_tags(observed.facts.tags, tags.put, tags.removed)
    wanted = {change.path[0]: change.want for change in changes if change.path[0] != FIELD}
    for name in tuple(wanted):
        for other in RULES[name].group:
            wanted.setdefault(other, _value(spec, observed, other))
    if wanted.get("storageTier"):
        size = wanted.get("storageSizeGB") or observed.facts.storage_gib
        wanted["storageTier"] = at_least_tier(str(wanted["storageTier"]), int(str(size)))
    for name, value in wanted.items():
        if value is not None:
            _set(body, RULES[name].path, value)
    if any(name in wanted for name in _KEY):
        _set(body, ("properties", "dataEncryption", "type"), _BY_KEY)
    identity = wanted.get("primaryUserAssignedIdentityId")
    if identity is not None:
        body["identity"] = {"type": "UserAssigned", "userAssignedIdentities": {str(identity): {}}}
    return body or None


def with_password(body: dict[str, Any], password: str) -> dict[str, Any]:
    """Return the body of a PATCH that sets the administrator's password as well."""
    return {**body, "properties": {**body.get("properties", {}), "administratorLoginPassword": password}}


def _set(body: dict[str, Any], path: tuple[str, ...], value: Value) -> None:
    for part in path[:-1]:
        body = body.setdefault(part, {})
    body[path[-1]] = value


def _value(spec: FlexibleServerParameters, observed: Seen, name: str) -> Value:
    field = next(ours for ours, theirs in _FIELDS.items() if theirs == name)
    wanted: Value = getattr(spec, field)
    present: Value = getattr(observed.spec, field)
    return wanted if wanted is not None else present


_FIELDS = dict(
    zip(FlexibleServerParameters.__struct_fields__, FlexibleServerParameters.__struct_encode_fields__, strict=True)
)


def merged_tags(present: Tags, put: Tags, removed: Collection[str] = ()) -> dict[str, str]:
    """Return all tags with some written and the `removed` keys taken away.

    ARM replaces the whole set by the one of a PATCH, and does not distinguish the letter case of keys.
    """
    changed = {key.lower() for key in (*put, *removed)}
    return {key: value for key, value in present.items() if key.lower() not in changed} | dict(put)
