"""The entries of managedFields: read and written as the API server does; after apimachinery's `managedfields`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from devcloud.apiserver.objects.field_sets import FieldSet, of_fields, to_fields
from runtime.objects import Object


class Who(NamedTuple):
    """What distinguishes an entry of managedFields; an applier keeps its entry from version to version."""

    manager: str
    operation: str
    api_version: str
    subresource: str


@dataclass(frozen=True, slots=True)
class Owned:
    """What a manager owns."""

    fields: FieldSet
    api_version: str
    time: str


Managers = dict[Who, Owned]


def decoded(entries: Iterable[Object]) -> Managers | None:
    """Return managedFields as managers, None where they are no such thing."""
    managers: Managers = {}
    for entry in entries:
        operation, version = entry.get("operation"), entry.get("apiVersion", "")
        if operation not in ("Apply", "Update") or not version or entry.get("fieldsType") != "FieldsV1":
            return None
        who = Who(
            entry.get("manager", ""), operation, "" if operation == "Apply" else version, entry.get("subresource", "")
        )
        managers[who] = Owned(of_fields(entry.get("fieldsV1") or {}), version, entry.get("time", ""))
    return managers


def encoded(managers: Managers) -> list[Object]:
    """Return managers as managedFields, in the API server's order."""
    order = sorted(
        managers,
        key=lambda who: (who.operation, managers[who].time, who.manager, managers[who].api_version, who.subresource),
    )
    return [_entry(who, managers[who]) for who in order]


def _entry(who: Who, owned: Owned) -> Object:
    entry: Object = {"manager": who.manager, "operation": who.operation, "apiVersion": owned.api_version}
    if owned.time:
        entry["time"] = owned.time
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": to_fields(owned.fields)}
    if who.subresource:
        entry["subresource"] = who.subresource
    return entry


def bare(obj: Object) -> Object:
    """Return an object without its managedFields."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or "managedFields" not in meta:
        return obj
    return {**obj, "metadata": {name: part for name, part in meta.items() if name != "managedFields"}}
