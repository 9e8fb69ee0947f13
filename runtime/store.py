"""The cached state of one resource: what the watch has sent, and what we wrote ourselves until the watch sends it.

Pure state, no input or output, no clock. One reflector feeds it; many read it in the same event loop.

Guarantees:
- `replace_all` swaps the whole content at once: no reader ever sees half a list.
- Nothing goes back: a list or an event older than what was seen is refused or ignored.
- Read your writes: after `remember(obj)` readers see that object until the watch has reached its resourceVersion.
- Objects that are read are fresh dictionaries, decoded on use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from runtime.changes import Change, changes_between, differences
from runtime.objects import Key, Object, Resource, dumps, metadata
from runtime.record import Head, Index, Record, head_of, newer, record_of

_LATE_ANSWERS: Final = 4


class StaleList(Exception):  # noqa: N818  # named as the fact
    """A list is older than what this store has already seen: an API server that lags, or a cluster restored."""


class _Content:
    """Records and their indexes: built beside the store by a relist, then put in its place at once."""

    __slots__ = ("_values", "records")

    def __init__(self, indexes: Iterable[str]) -> None:
        self.records: dict[Key, Record] = {}
        # One key stands alone: most values have one, and a dictionary each would cost more than the object.
        self._values: dict[str, dict[str, Key | dict[Key, None]]] = {name: {} for name in indexes}

    def put(self, record: Record) -> None:
        self.drop(record.key)
        self.records[record.key] = record
        for values, indexed in zip(self._values.values(), record.indexed, strict=True):
            for value in indexed:
                match values.get(value):
                    case None:
                        values[value] = record.key
                    case Key() as only:
                        values[value] = {only: None, record.key: None}
                    case keys:
                        keys[record.key] = None

    def drop(self, key: Key) -> None:
        old = self.records.pop(key, None)
        if old is None:
            return
        for values, indexed in zip(self._values.values(), old.indexed, strict=True):
            for value in indexed:
                match values[value]:
                    case Key():
                        del values[value]
                    case keys:
                        del keys[key]
                        if not keys:
                            del values[value]

    def find(self, index: str, value: str) -> Iterable[Key]:
        keys = self._values[index].get(value, ())
        return (keys,) if isinstance(keys, Key) else keys


class Listing:
    """A list under way, page by page; hand it to `Store.replace_all` when it is complete."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.content = _Content(store.indexes)

    def add(self, raw: bytes) -> None:
        """Take one item; raises msgspec.DecodeError when it is no object."""
        self.content.put(self._store.reusable(raw))


class Store:
    """The objects of one resource, by key and by index.

    `others_than`: objects keep the entries of managedFields of managers whose names do not begin so; empty keeps none.
    """

    def __init__(
        self, resource: Resource, indexes: Mapping[str, Index] | None = None, *, others_than: str = ""
    ) -> None:
        self.resource = resource
        self._others_than = others_than
        self.indexes: dict[str, Index] = dict(indexes or {})
        self._content = _Content(self.indexes)
        self._seen = ""
        # What we wrote and the watch has not reached; and the last record of what we deleted.
        self._written = _Content(self.indexes)
        self._dead: dict[Key, Record] = {}
        self._own_versions: dict[Key, tuple[str, ...]] = {}
        # Versions of our own writes whose events came before their answers: of the status, and of bound writes.
        self._answered_late: dict[Key, tuple[str, ...]] = {}
        self._bound_late: dict[Key, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return sum(1 for _ in self.keys())

    def __contains__(self, key: Key) -> bool:
        return self._record(key) is not None

    def get(self, key: Key) -> Object | None:
        """Return a fresh copy of the object, or None when it is absent as far as we know."""
        record = self._record(key)
        return record.decode() if record else None

    def uid(self, key: Key) -> str | None:
        """Return the uid without decoding the object."""
        record = self._record(key)
        return record.uid if record else None

    def version(self, key: Key) -> str | None:
        """Return the resourceVersion without decoding the object."""
        record = self._record(key)
        return record.version if record else None

    def generation(self, key: Key) -> int | None:
        """Return the generation without decoding the object."""
        record = self._record(key)
        return record.generation if record else None

    def is_deleting(self, key: Key) -> bool:
        """Return whether an object is being deleted, without decoding it; True for one that is gone."""
        record = self._record(key)
        return record is None or record.deleting

    def indexed(self, name: str, key: Key) -> tuple[str, ...]:
        """Return the values under which index `name` has the key, without decoding the object; none when it is absent.

        Raises ValueError for an index that was never asked for.
        """
        record = self._record(key)
        return record.indexed[tuple(self.indexes).index(name)] if record else ()

    def keys(self) -> Iterator[Key]:
        """Walk all keys; the store must not change meanwhile."""
        yield from (key for key in self._content.records if key not in self._dead or self._record(key))
        yield from (key for key in self._written.records if key not in self._content.records)

    def records(self) -> tuple[Record, ...]:
        """Return all records as of now, for a walk that yields to the event loop in between."""
        return tuple(record for key in self.keys() if (record := self._record(key)))

    def by_index(self, name: str, value: str) -> tuple[Key, ...]:
        """Return the keys whose index `name` has `value`, sorted; KeyError for an index that was never asked for."""
        return tuple(sorted(self._having(name, value)))

    def count(self, name: str, value: str) -> int:
        """Return how many keys `by_index` returns."""
        return len(self._having(name, value))

    def _having(self, name: str, value: str) -> set[Key]:
        written = self._written.records
        stored = {key for key in self._content.find(name, value) if key not in written and self._record(key)}
        return stored.union(self._written.find(name, value))

    def add_index(self, name: str, index: Index) -> None:
        """Add an index to a store that may be filled already; ValueError when the name means another function."""
        if name in self.indexes:
            if self.indexes[name] is not index:
                raise ValueError(f"index {name!r} of {self.resource.plural} is another function already")
            return
        self.indexes[name] = index
        self._content, self._written = self._indexed(self._content), self._indexed(self._written)

    @property
    def seen(self) -> str:
        """The newest resourceVersion that the API server has sent, empty before the first list."""
        return self._seen

    def remember(self, obj: Object, *, is_status: bool = False, over: str = "") -> None:
        """Let a written object stand until the watch has reached its resourceVersion. `obj` is the API's answer.

        `is_status`: it answers a write of the status, which nobody else writes, so that its version is our own.
        `over`: it answers a write that was bound to this resourceVersion, which the object had in this store: any
        other version in the answer is that write's alone.
        """
        raw = dumps(obj)
        head = head_of(raw)
        key = head.key
        current = self._record(key)
        is_bound_write = over not in ("", head.version)
        if (current and not newer(head.version, current.version)) or (
            self._seen and not newer(head.version, self._seen)
        ):
            # The watch is already past it: what it sent is at least as new as our answer.
            if is_status:
                self._answered_late[key] = (*self._answered_late.get(key, ()), head.version)[-_LATE_ANSWERS:]
            if is_bound_write:
                self._bound_late[key] = (*self._bound_late.get(key, ()), head.version)[-_LATE_ANSWERS:]
            return
        record = self._record_of(raw, head)
        if is_bound_write or current is None or _same_metadata(current, record):
            # An apply that changed nothing answers with the version of a stranger's write, which must still wake us:
            # only what can have been our status or our creation counts as an echo.
            self._own_versions[key] = (*self._own_versions.get(key, ()), head.version)
        self._written.put(record)

    def is_echo(self, change: Change) -> bool:
        """Return whether a change was our own write, also when it came before the answer to that."""
        if change.own:
            return True
        if change.before is None or change.after is None:
            return False
        if change.after.version in self._bound_late.get(change.key, ()):
            return True
        versions = self._answered_late.get(change.key, ())
        return change.after.version in versions and _same_metadata(change.before, change.after)

    def forget(self, key: Key, uid: str) -> None:
        """Let a deleted object be absent until the watch says otherwise. Only for objects without finalizers."""
        current = self._record(key)
        if current is None or current.uid != uid:
            return
        self._dead[key] = current
        self._written.drop(key)

    def reusable(self, raw: bytes) -> Record:
        """Return the stored record when `raw` is the same object at the same version, else a new one."""
        head = head_of(raw)
        stored = self._content.records.get(head.key)
        if (
            stored
            and stored.uid == head.uid
            and (stored.version == head.version or newer(stored.version, head.version))
        ):
            return stored
        return self._record_of(raw, head)

    def replace_all(self, listing: Listing, version: str) -> Iterator[Change]:
        """Swap in a complete list at once, then give what changed, lazily. Raises StaleList and changes nothing."""
        if self._seen and newer(self._seen, version):
            raise StaleList(f"list of {self.resource.plural} at {version} is older than {self._seen}")
        before, first = self._content.records, not self._seen
        self._content = listing.content
        self._seen = version
        self._settle_all()
        return differences(before, listing.content.records, initial=first)

    def apply_event(self, kind: str, raw: bytes) -> tuple[Change, ...]:
        """Take one ADDED, MODIFIED, DELETED or BOOKMARK event; raises msgspec.DecodeError when it is unreadable."""
        head = head_of(raw)
        if self._seen and newer(self._seen, head.version):
            return ()
        stored = self._content.records.get(head.key)
        self._seen = head.version
        if kind == "BOOKMARK":
            self._settle_all()
            return ()
        own = head.version in self._own_versions.get(head.key, ())
        record = None if kind == "DELETED" else self._record_of(raw, head)
        if record:
            self._content.put(record)
        else:
            self._content.drop(head.key)
            self._answered_late.pop(head.key, None)
            self._bound_late.pop(head.key, None)
        self._settle(head.key)
        return changes_between(head.key, stored, record, own=own)

    def _indexed(self, content: _Content) -> _Content:
        """Return a content under the indexes that there are now."""
        fresh = _Content(self.indexes)
        for record in content.records.values():
            fresh.put(self._record_of(record.raw))
        return fresh

    def _record_of(self, raw: bytes, head: Head | None = None) -> Record:
        return record_of(raw, self.resource, self.indexes, head, others_than=self._others_than)

    def _record(self, key: Key) -> Record | None:
        written = self._written.records.get(key)
        if written:
            return written
        stored = self._content.records.get(key)
        dead = self._dead.get(key)
        return None if stored and dead and _outlived(stored, dead) else stored

    def _settle_all(self) -> None:
        for key in {*self._own_versions, *self._dead, *self._written.records}:
            self._settle(key)

    def _settle(self, key: Key) -> None:
        written = self._written.records.get(key)
        if written and not newer(written.version, self._seen):
            self._written.drop(key)
        pending = tuple(version for version in self._own_versions.get(key, ()) if newer(version, self._seen))
        if pending:
            self._own_versions[key] = pending
        else:
            self._own_versions.pop(key, None)
        stored = self._content.records.get(key)
        dead = self._dead.get(key)
        if dead and not newer(dead.version, self._seen) and not (stored and _outlived(stored, dead)):
            del self._dead[key]


def _outlived(stored: Record, dead: Record) -> bool:
    """Return whether `stored` is older than an object of that name that we deleted later.

    The deleted object itself lives on only when it carries a deletionTimestamp.
    """
    return not newer(stored.version, dead.version) or (stored.uid == dead.uid and not stored.deleting)


def _same_metadata(before: Record, after: Record) -> bool:
    ours, theirs = (metadata(record.decode()) for record in (before, after))
    return {**ours, "resourceVersion": ""} == {**theirs, "resourceVersion": ""}
