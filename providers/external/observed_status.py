"""`status.observed`: what was observed last of a resource, in the fields of its spec and as its cloud answered. Pure.

By it whoever reads the object alone can decide as the provider does (`fairlead plan`), without the cloud's credentials.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from datetime import datetime
from typing import Any, Final

import msgspec

from providers.external.client import Target
from providers.external.diff import missing
from providers.external.observation import Observed, Phase, SpecT, digest
from providers.external.provider import Kind
from runtime.conditions import timestamp
from runtime.objects import Object, status_of

FIELD: Final = "observed"
MOST_BYTES: Final = 16_384
"""What the answer, and what the fields, may take at most in a status; more than that is left out."""


def written(observed: Observed[Any, Any], now: datetime, old: Object | None) -> Object | None:
    """Return `status.observed` for what a pass observed; `old` is what the status has.

    It stays as it is until something changes that decisions read, or where a part could not be read this time.
    """
    if observed.incomplete and old is not None and old.get("incarnation") == observed.incarnation:
        return old
    seen = digest([observed.spec, observed.facts, observed.phase.value, observed.pending, observed.restart])
    if old is not None and (old.get("hash"), old.get("incarnation")) == (seen, observed.incarnation):
        return old
    fields = {
        "at": timestamp(now),
        "hash": seen,
        "incarnation": observed.incarnation[:256],
        "state": observed.state[:256],
        "forProvider": _fields_of(observed.spec),
        "answer": _packed(observed.answer),
    }
    return {name: value for name, value in fields.items() if value}


def read(kind: Kind[SpecT, Any], obj: Object, target: Target[SpecT]) -> Observed[SpecT, Any] | None:
    """Return what was observed last as the target's spec has it read, None where the status does not say enough."""
    entry = status_of(obj).get(FIELD) or {}
    answer = _unpacked(str(entry.get("answer", "")))
    if kind.read_answer is not None:
        return kind.read_answer(answer, target) if answer else None
    try:
        spec = msgspec.convert(entry.get("forProvider") or {}, type(target.spec))
    except msgspec.ValidationError:
        return None
    return (
        Observed(
            name=target.name,
            incarnation=str(entry.get("incarnation", "")),
            owner=target.owner,
            phase=Phase.READY,
            spec=spec,
            facts=None,
            at_provider={},
            state=str(entry.get("state", "")),
        )
        if entry
        else None
    )


def _fields_of(spec: msgspec.Struct) -> Object:
    """Return the fields of a projected spec that the cloud knows, none where they take too much."""
    unknown = missing(spec)
    fields = {
        name: value for name, value in msgspec.to_builtins(spec).items() if value is not None and name not in unknown
    }
    return fields if len(msgspec.json.encode(fields)) <= MOST_BYTES else {}


def _packed(answer: bytes) -> str:
    packed = base64.b64encode(zlib.compress(answer, 9)).decode() if answer else ""
    return packed if len(packed) <= MOST_BYTES else ""


def _unpacked(packed: str) -> bytes:
    """Return the answer of a status; empty where there is none, or where it is none."""
    try:
        # Whoever may write statuses could write what unpacks to gigabytes.
        return zlib.decompressobj().decompress(base64.b64decode(packed), 64 * MOST_BYTES) if packed else b""
    except (binascii.Error, zlib.error):
        return b""
