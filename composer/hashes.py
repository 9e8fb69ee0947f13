"""Short, stable hashes of JSON data: the same data always give the same. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from composer.schema import Schema, project
from runtime.objects import Object

_META_SCHEMA: Schema = {
    "properties": {
        "finalizers": {"x-kubernetes-list-type": "set"},
        "ownerReferences": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"]},
        "labels": {"additionalProperties": {"type": "string"}},
        "annotations": {"additionalProperties": {"type": "string"}},
    }
}


def digest(value: Any) -> str:
    """Hash JSON data, whatever the order of its fields: 32 hexadecimal digits."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:32]


def content_hash(composition: Any) -> str:
    """Hash the content of a Composition in full: 64 hexadecimal digits."""
    return hashlib.sha256(msgspec.json.encode(composition, order="sorted")).hexdigest()


def live_hash(live: Object, desired: Object, schema: Schema | None) -> str:
    """Hash what the API server holds of the fields that we send."""
    properties = dict((schema or {}).get("properties") or {})
    whole = {**(schema or {}), "properties": properties | {"metadata": _META_SCHEMA}}
    return digest(project(live, desired, whole))
