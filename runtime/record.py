"""What a store keeps of one object: a slotted record beside compact bytes. Pure.

managedFields are dropped here, as objects enter, without decoding the rest of the object: they are half of its size.
Where a store keeps them, the entries of managers other than our own stay: nearly no object has one.

Texts that many records have (namespaces, uids of owners, values of indexes) are interned: one copy for all records, all
stores and all indexes, gone with the last that has it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from runtime.objects import Key, Object, Resource, dumps, loads

Index: TypeAlias = Callable[[Object], Iterable[str]]
"""Computes the values under which an object is found; pure."""

_TREE = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Meta(msgspec.Struct, rename="camel"):
    # Empty in bookmarks only.
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None


class _Head(msgspec.Struct):
    metadata: _Meta


_HEAD = msgspec.json.Decoder(_Head)


class Head(msgspec.Struct, frozen=True, gc=False):
    """The few facts of an object that are read without decoding it."""

    key: Key
    uid: str
    version: str
    generation: int
    deleting: bool


class Record(msgspec.Struct, frozen=True, gc=False):
    """One stored object. `raw` is compact JSON with apiVersion and kind, of managedFields what the store keeps.

    Outside the garbage collector's sight, since it holds nothing that could refer back: else a collection would walk
    through every record and stop the event loop meanwhile.
    """

    key: Key
    uid: str
    version: str
    generation: int
    deleting: bool
    raw: bytes
    indexed: tuple[tuple[str, ...], ...]

    def __repr__(self) -> str:
        # Never the content: it may be a Secret's, and a record may end in a log line.
        return f"Record({self.key}, uid={self.uid}, version={self.version})"

    def decode(self) -> Object:
        """Return a fresh dictionary."""
        return loads(self.raw)


def head_of(raw: bytes) -> Head:
    """Read the facts of `raw`; raises msgspec.DecodeError (ValidationError included) when it is no object."""
    meta = _HEAD.decode(raw).metadata
    return Head(
        key=Key(sys.intern(meta.namespace), meta.name),
        uid=sys.intern(meta.uid),
        version=meta.resource_version,
        generation=meta.generation,
        deleting=meta.deletion_timestamp is not None,
    )


class _Metadata(msgspec.Struct):
    labels: msgspec.Raw = msgspec.Raw(b"{}")
    annotations: msgspec.Raw = msgspec.Raw(b"{}")


class _Marked(msgspec.Struct):
    metadata: _Metadata


_MARKED = msgspec.json.Decoder(_Marked)


def same_marks(before: bytes, after: bytes) -> bool:
    """Return whether two objects carry the same labels and annotations (the API server writes maps in one order)."""
    ours, theirs = (_MARKED.decode(raw).metadata for raw in (before, after))
    return ours.labels == theirs.labels and ours.annotations == theirs.annotations


class _ManagedFields(msgspec.Struct, rename="camel", omit_defaults=True):
    """One entry of managedFields (metav1.ManagedFieldsEntry) without its time."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    subresource: str = ""
    fields_v1: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"{}"), name="fieldsV1")


_MANAGED_FIELDS = msgspec.json.Decoder(list[_ManagedFields])


def _of_others(managed_fields: msgspec.Raw, others_than: str) -> msgspec.Raw:
    """Return the entries of managedFields of other managers, but for those of a status."""
    entries = _MANAGED_FIELDS.decode(managed_fields)
    others = [entry for entry in entries if not entry.subresource and not entry.manager.startswith(others_than)]
    return msgspec.Raw(msgspec.json.encode(others))


def record_of(
    raw: bytes,
    resource: Resource,
    indexes: Mapping[str, Index],
    head: Head | None = None,
    *,
    others_than: str = "",
) -> Record:
    """Build the record of one object as it came from the API server; raises msgspec.DecodeError.

    Items of a list carry no apiVersion and kind for built-in kinds, and PartialObjectMetadata another kind: both are
    replaced by the resource's own.
    """
    tree = _TREE.decode(raw)
    meta = _TREE.decode(tree["metadata"])
    managed_fields = meta.pop("managedFields", None)
    if others_than:
        meta["managedFields"] = _of_others(managed_fields or msgspec.Raw(b"[]"), others_than)
    rest = {name: value for name, value in tree.items() if name not in ("apiVersion", "kind", "metadata")}
    encoded = dumps({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta} | rest)
    # A copy is right-sized; the encoder's own buffer keeps its slack.
    compact = bytes(memoryview(encoded))
    obj = loads(compact) if indexes else {}
    indexed = tuple(_values(index, obj) for index in indexes.values())
    head = head or head_of(raw)
    return Record(head.key, head.uid, head.version, head.generation, head.deleting, compact, indexed)


def _values(index: Index, obj: Object) -> tuple[str, ...]:
    try:
        return tuple(sorted({sys.intern(value) for value in index(obj)}))
    except (AttributeError, LookupError, TypeError, ValueError):
        # An object of odd shape, let in by an older schema: found by its key alone, and no harm to the others.
        return ()


def newer(version: str, than: str) -> bool:
    """Return whether a resourceVersion is newer; they are decimal numbers that may be compared (KEP-5504).

    A version that is no number (no API server of today sends one) counts as newer when it differs.
    """
    if version.isdigit() and than.isdigit():
        return int(version) > int(than)
    return version != than
