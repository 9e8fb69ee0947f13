"""Shapes of objects as an API server knows them: which lists are sets or maps, what is defaulted, what is dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from runtime.objects import Object, dumps, loads

T = TypeVar("T")
Schema = Mapping[str, Any]
Path = tuple[str, ...]
"""Where a field stands, in the words of FieldsV1: `f:name` of an object, `k:{...}` of a map list, `v:...` of a set."""

ANYTHING: Final[Schema] = {}
_METADATA: Final[Schema] = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "properties": {
        "finalizers": {"type": "array", "x-kubernetes-list-type": "set"},
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "items": {"type": "object", "x-kubernetes-map-type": "atomic"},
        },
    },
}
_KEEPS_ALL: Final = {"x-kubernetes-preserve-unknown-fields": True}
BUILT_IN: Final[Schema] = {"type": "object", "properties": {"metadata": _METADATA}, **_KEEPS_ALL}


def of_crd(schema: Schema) -> Schema:
    """Return the schema of a whole object from that of its CRD."""
    named: Schema = {"apiVersion": ANYTHING, "kind": ANYTHING, "metadata": _METADATA}
    return {**schema, "properties": {**schema.get("properties", {}), **named}}


def of_field(schema: Schema, name: str) -> Schema:
    """Return the schema of an object's field."""
    properties: Schema = schema.get("properties") or {}
    if name in properties:
        below: Schema = properties[name]
        return below
    more = schema.get("additionalProperties")
    return more if isinstance(more, Mapping) else ANYTHING


def is_atomic(schema: Schema, value: object) -> bool:
    """Return whether a value is one field, whatever is in it."""
    if isinstance(value, dict):
        return bool(schema.get("x-kubernetes-map-type") == "atomic")
    if isinstance(value, list):
        return bool(schema.get("x-kubernetes-list-type", "atomic") == "atomic")
    return True


def children(schema: Schema, value: Any) -> dict[str, tuple[Any, Schema]]:
    """Return the parts of an object or of a list that is no single field, by their steps of a path."""
    if isinstance(value, dict):
        return {f"f:{name}": (part, of_field(schema, name)) for name, part in value.items()}
    items: Schema = schema.get("items") or ANYTHING
    if schema.get("x-kubernetes-list-type") == "set":
        return {f"v:{dumps(part).decode()}": (part, items) for part in value}
    names = schema["x-kubernetes-list-map-keys"]
    return {f"k:{_keys(part, names)}": (part, items) for part in value}


def _keys(part: Object, names: list[str]) -> str:
    return dumps({name: part[name] for name in sorted(names) if name in part}).decode()


def joined(like: Any, parts: Mapping[str, Any]) -> Any:
    """Return an object, or a list as `like` is, from its parts."""
    if isinstance(like, dict):
        return {step.removeprefix("f:"): part for step, part in parts.items()}
    return list(parts.values())


def completed(schema: Schema, value: Any) -> Any:
    """Return a value without what its schema does not know, and with its defaults."""
    if isinstance(value, list):
        return [completed(schema.get("items") or ANYTHING, part) for part in value]
    if not isinstance(value, dict) or not schema.get("properties"):
        return value
    keeps_all = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("additionalProperties")
    properties = schema["properties"]
    known = {
        name: completed(of_field(schema, name), part)
        for name, part in value.items()
        if (name in properties or keeps_all) and (part is not None or properties.get(name, {}).get("nullable"))
    }
    for name, below in properties.items():
        if name not in known and "default" in below:
            known[name] = completed(below, copied(below["default"]))
    return known


def copied(value: T) -> T:
    """Return a copy of JSON that shares nothing."""
    copy: T = loads(dumps({"value": value}))["value"]
    return copy


def undefaulted(schema: Schema) -> dict[str, Any]:
    """Return the fields of a schema without their defaults: an apply owns what was sent alone."""
    return {name: _bare(below) for name, below in (schema.get("properties") or {}).items()}


def _bare(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {name: _bare(part) for name, part in schema.items() if name != "default" or "type" not in schema}
    return [_bare(part) for part in schema] if isinstance(schema, list) else schema
