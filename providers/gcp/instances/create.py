"""The body of the call that makes an instance: from nothing, or as the settings of a restored backup. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from providers.external.client import Target
from providers.gcp.instances.bodies import put, written
from providers.gcp.instances.changes import RULES
from providers.gcp.models import CloudSQLInstanceParameters
from providers.gcp.names import owner_labels

# What an instance is made with and that no patch changes, by the model's names.
_FIXED = {
    "region": "region",
    "data_disk_type": "settings.dataDiskType",
    "psc_enabled": "settings.ipConfiguration.pscConfig.pscEnabled",
    "collation": "settings.collation",
    "kms_key_name": "diskEncryptionConfiguration.kmsKeyName",
}
# instances.insert refuses it: a new instance begins with the newest.
_NOT_AT_CREATION = frozenset({"maintenanceVersion"})


def body_for(target: Target[CloudSQLInstanceParameters]) -> dict[str, Any]:
    """Return the DatabaseInstance to insert, its owner's labels among what it is made with."""
    spec = target.spec
    body: dict[str, Any] = {"name": target.name, "instanceType": "CLOUD_SQL_INSTANCE"}
    for field in msgspec.structs.fields(spec):
        value, place = getattr(spec, field.name), _place(field.name, field.encode_name)
        if value is not None and place:
            put(body, place, written(field.encode_name, value))
    settings = body.setdefault("settings", {})
    settings["userLabels"] = {**(spec.user_labels or {}), **owner_labels(target.owner)}
    return body


def with_disk_of(target: Target[CloudSQLInstanceParameters], disk_gb: int) -> Target[CloudSQLInstanceParameters]:
    """Return the target with a disk that is at least as large as that of what it is restored from."""
    spec = msgspec.structs.replace(target.spec, data_disk_size_gb=max(target.spec.data_disk_size_gb or 0, disk_gb))
    return replace(target, spec=spec) if disk_gb else target


def clone_context(name: str, point_in_time: str, deleted_at: str) -> dict[str, str]:
    """Return the CloneContext of a new instance: its source at a time, or as it is; one that is gone has both times."""
    context = {"kind": "sql#cloneContext", "destinationInstanceName": name}
    times = {"pointInTime": point_in_time, "sourceInstanceDeletionTime": deleted_at}
    return context | {field: time for field, time in times.items() if time}


def _place(name: str, encoded: str) -> str:
    if encoded in _NOT_AT_CREATION:
        return ""
    rule = RULES.get(encoded)
    return _FIXED.get(name, "") if rule is None else rule.place
