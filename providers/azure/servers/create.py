"""The body of the PUT that makes a server: from nothing, from a point in time, from a backup in another region. Pure.

"Servers - Create Or Update" of the REST reference 2025-08-01. `createMode` and the source are sent here alone; never is
it `Default`, which is an update of a server that is there.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from providers.azure.models import DISABLED, FlexibleServerParameters
from providers.azure.servers.changes import RULES
from providers.external.client import Target
from providers.external.cloud_api.tags import with_owner
from providers.external.credential import Credential

# What only a create sets, by the model's names.
_ONCE = {
    "storage_type": ("storage", "type"),
    "geo_redundant_backup": ("backup", "geoRedundantBackup"),
    "availability_zone": ("availabilityZone",),
    "delegated_subnet_resource_id": ("network", "delegatedSubnetResourceId"),
    "private_dns_zone_arm_resource_id": ("network", "privateDnsZoneArmResourceId"),
    "point_in_time_utc": ("pointInTimeUTC",),
}
# A restore has these from its source.
_OF_THE_SOURCE = frozenset({"version", "storageSizeGB"})


def body_of(
    target: Target[FlexibleServerParameters], credential: Credential, *, source: str, now: datetime
) -> dict[str, Any]:
    """Return the body of the PUT, with its owner's tags and, where it begins with nothing, the login's password.

    `source` is the id of the server that is restored, empty for none; without an instant of the spec it is `now`.
    """
    spec = target.spec
    restored = spec.create_mode != "Create"
    body: dict[str, Any] = {
        "location": spec.location,
        "tags": with_owner(spec.tags, target.owner),
        "properties": {"createMode": spec.create_mode},
    }
    fields = zip(type(spec).__struct_fields__, type(spec).__struct_encode_fields__, strict=True)
    for ours, theirs in fields:
        value, rule = getattr(spec, ours), RULES.get(theirs)
        if rule is not None and value is not None and not (restored and theirs in _OF_THE_SOURCE):
            _set(body, rule.path, value)
    for ours, path in _ONCE.items():
        if getattr(spec, ours) is not None:
            _set(body, ("properties", *path), getattr(spec, ours))
    if restored:
        body["properties"]["sourceServerResourceId"] = source
        body["properties"].setdefault("pointInTimeUTC", now.strftime("%Y-%m-%dT%H:%M:%SZ"))
    if spec.primary_key_uri is not None:
        _by_key(body, spec)
    if not restored and spec.password_auth != DISABLED:
        body["properties"] |= {
            "administratorLogin": spec.administrator_login,
            "administratorLoginPassword": credential.password,
        }
    return body


def _set(body: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    for part in path[:-1]:
        body = body.setdefault(part, {})
    body[path[-1]] = value


def _by_key(body: dict[str, Any], spec: FlexibleServerParameters) -> None:
    """Have a key of one's own encrypt the server, which needs the identity that may use it."""
    _set(body, ("properties", "dataEncryption", "type"), "AzureKeyVault")
    if spec.primary_user_assigned_identity_id is not None:
        identities: dict[str, object] = {spec.primary_user_assigned_identity_id: {}}
        body["identity"] = {"type": "UserAssigned", "userAssignedIdentities": identities}
