"""Short, stable hashes of JSON data: the same data always give the same. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from runtime.objects import Object


def digest(value: Any) -> str:
    """Return the hash of JSON data, whatever the order of its fields: 32 hexadecimal digits."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:32]


def content_hash(composition: Any) -> str:
    """Return the full hash of a Composition's content: 64 hexadecimal digits."""
    return hashlib.sha256(msgspec.json.encode(composition, order="sorted")).hexdigest()


def sent_hash(body: Object) -> str:
    """Return the hash of what is sent: its digest, a dash, and 16 digits of the hash of its fields without values."""
    return f"{digest(body)}-{digest(_fields(body))[:16]}"


def is_sent(body: Object, sent: str) -> bool:
    """Return whether a body is what was sent, by its digest alone."""
    whole, dash, _fields_alone = sent.partition("-")
    return bool(dash) and whole == digest(body)


def has_fields_of(body: Object, sent: str) -> bool:
    """Return whether a body has exactly the fields of what was sent, none more and none less."""
    return sent_hash(body).partition("-")[2] == sent.partition("-")[2]


def _fields(value: Any) -> Any:
    # An item of a list may be all that is sent of it, so it counts as a field.
    if isinstance(value, dict):
        return {name: _fields(below) for name, below in value.items()}
    return value if isinstance(value, list) else None
