"""Short, stable hashes of JSON data: the same data always give the same. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from composer.render.schema import Schema, project
from runtime.objects import Object, generation_of

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


def sent_hash(body: Object) -> str:
    """Hash what is sent: its digest, and behind a dash 16 hexadecimal digits of its fields, whatever their values."""
    return f"{digest(body)}-{digest(_fields(body))[:16]}"


def is_sent(body: Object, sent: str) -> bool:
    """Return whether a body is what was sent. Its digest decides: whether the fields differ, nobody needs to know."""
    whole, dash, _fields_alone = sent.partition("-")
    return bool(dash) and whole == digest(body)


def has_fields_of(body: Object, sent: str) -> bool:
    """Tell whether a body has exactly the fields of what was sent: none is new, none is left out."""
    return sent_hash(body).partition("-")[2] == sent.partition("-")[2]


def _fields(value: Any) -> Any:
    # An item of a list may be all that is sent of it, so it counts as a field.
    if isinstance(value, dict):
        return {name: _fields(below) for name, below in value.items()}
    return value if isinstance(value, list) else None


def live_hash(live: Object, desired: Object, schema: Schema | None) -> str:
    """Hash what the API server holds of the fields that we send, in whichever version of its kind it was read."""
    properties = dict((schema or {}).get("properties") or {})
    whole = {**(schema or {}), "properties": properties | {"metadata": _META_SCHEMA}}
    return digest(project({**live, "apiVersion": desired["apiVersion"]}, desired, whole))


def stored_hash(live: Object, desired: Object, schema: Schema | None) -> str:
    """Hash what the API server holds of the fields that we send, and behind a dash name its content as a whole."""
    return f"{live_hash(live, desired, schema)}-{_content(live)}"


def is_stored(live: Object, desired: Object, schema: Schema | None, stored: str) -> bool:
    """Return whether the API server holds what it held when `stored` was recorded, beyond the fields of `desired` too.

    An apply whose record was lost may have left a field of ours that nobody wants any more: to send again takes it
    away. A record without a name of the content says nothing about it.
    """
    fields, dash, content = stored.partition("-")
    return fields == live_hash(live, desired, schema) and (not dash or content == _content(live))


def holds_fields(live: Object, desired: Object, schema: Schema | None, stored: str) -> bool:
    """Return whether the API server holds the fields that we send as it did when `stored` was recorded."""
    return stored.partition("-")[0] == live_hash(live, desired, schema)


def _content(live: Object) -> str:
    """Name the content of an object: by its generation, or where its kind has none by a hash of 8 digits."""
    generation = generation_of(live)
    apart = ("metadata", "status", "apiVersion")
    return str(generation or digest({name: part for name, part in live.items() if name not in apart})[:8])
