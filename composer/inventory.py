"""The inventory of a claim, kept in its status: what it composed, to find, compare and delete it. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from apis import names
from composer.quantities import Amount
from runtime.objects import Object, annotations_of

NEVER_READY = "Creating"
"""Outcome of an object that has not been ready since it was composed."""


class YieldedField(msgspec.Struct, frozen=True):
    """A field that is left to another manager until `until` (RFC 3339), for the `tries`th time in a row.

    It is remembered for a while after that: a manager that goes on taking the field has it longer each time.
    """

    field: str
    manager: str
    until: str
    tries: int = 1


class Entry(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One composed object. `desired` and `live` are hashes of what was sent and of what the API server made of it.

    `origin` is the earlier resource name that its object keeps, `floors` the largest values ever applied, by path.
    `outcome` is NEVER_READY until all of the claim was ready with it, then empty; once its provider is instructed to
    delete it, the teardown instruction (`<uid>/Delete` or `<uid>/Snapshot`). `adopted`: its object was made for another
    claim, and keeps that name.
    """

    resource: str
    api_version: str
    kind: str
    name: str
    key: str = ""
    uid: str = ""
    depends_on: tuple[str, ...] = ()
    stateful: bool = False
    desired: str = ""
    live: str = ""
    applied: bool = False
    external_reference: Mapping[str, str] = msgspec.field(name="marks", default_factory=dict)
    yielded: tuple[YieldedField, ...] = msgspec.field(name="resting", default=())
    origin: str = ""
    floors: Mapping[str, Amount] = {}
    outcome: str = ""
    adopted: bool = False

    @property
    def group(self) -> str:
        """API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def group_kind(self) -> str:
        """`Kind.group`."""
        return _group_kind(self.api_version, self.kind)

    @property
    def slot(self) -> tuple[str, str]:
        """The place in the composition: resource name and forEach key."""
        return self.resource, self.key

    @property
    def place(self) -> tuple[str, str, str]:
        """Slot and kind: after a change of its kind a slot has two objects for a while."""
        return self.resource, self.key, self.group_kind


@functools.lru_cache(maxsize=1_024)
def _group_kind(api_version: str, kind: str) -> str:
    group = api_version.rpartition("/")[0]
    return f"{kind}.{group}" if group else kind


def load(status: Mapping[str, Any]) -> tuple[Entry, ...]:
    """Return the inventory of a status; an entry that cannot be read is left out (its object is found by label)."""
    entries: list[Entry] = []
    for item in status.get("inventory") or ():
        try:
            entries.append(msgspec.convert(item, Entry))
        except msgspec.ValidationError:
            continue
    return tuple(entries)


def dump(entries: Iterable[Entry]) -> list[Object]:
    """Return the inventory as it goes into a status."""
    # By way of JSON, so that it equals what is read back: lists, no tuples.
    dumped: list[Object] = msgspec.json.decode(msgspec.json.encode(tuple(entries)))
    return dumped


def proven(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Return the entries of a claim of which everything is ready: none of them is NEVER_READY any more."""
    return tuple(
        msgspec.structs.replace(entry, outcome="") if entry.outcome == NEVER_READY else entry for entry in entries
    )


def kinds(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the kinds of all entries, as `Kind.group`."""
    return frozenset(entry.group_kind for entry in entries)


def external_reference_of(child: Object) -> dict[str, str]:
    """Return the external reference that a provider left on a child, without the prefix of its annotations."""
    annotations = annotations_of(child)
    return {
        name.removeprefix(names.PREFIX): annotations[name] for name in names.EXTERNAL_REFERENCE if annotations.get(name)
    }


def recorded_kinds(claim: Object) -> frozenset[str]:
    """Return every kind (`Kind.group`) in which children of a claim may be found."""
    listed = annotations_of(claim).get(names.KINDS, "")
    return frozenset(filter(None, listed.split(","))) | kinds(load(claim.get("status") or {}))
