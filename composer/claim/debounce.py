"""Debounces the status of a claim: one that differs in its messages alone is written every two seconds at most.

It also has how long the first cause of a claim has held, how long a status was held back, and what a status that was
not written would have recorded. One process remembers all of it between passes; nothing depends on it being kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from composer.claim.snapshot import Snapshot
from composer.inventory import Entry
from runtime.objects import Key, Object

INTERVAL: Final = timedelta(seconds=2)


@dataclass(slots=True)
class _Recollection:
    """The reason of a claim's first cause, since when, and when a status was written; seconds of a monotonic clock.

    `early`: since when a status is held back that will soon be another one; None where none is.
    """

    reason: str | None = None
    since: float = 0.0
    written: float = 0.0
    early: float | None = None


class Debounce:
    """The times of claims; `now` is always that of one monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._claims: dict[Key, _Recollection] = {}

    def held(self, key: Key, reason: str, now: float) -> timedelta:
        """Note the reason of a claim's first cause, empty without one; return how long it has held."""
        memory = self._of(key)
        if memory.reason != reason:
            memory.reason, memory.since = reason, now
        return timedelta(seconds=now - memory.since)

    def hold_back(self, key: Key, limit: timedelta, now: float) -> timedelta | None:
        """Return for how much longer to hold back a status that soon will be another one; None once it is due.

        `limit` is how long it may be held back in all; zero for a status that is not to wait.
        """
        memory = self._of(key)
        if not limit:
            memory.early = None
            return None
        memory.early = now if memory.early is None else memory.early
        left = limit - timedelta(seconds=now - memory.early)
        return left if left > timedelta() else None

    def wrote(self, key: Key, now: float) -> None:
        """Note that a status was written."""
        self._of(key).written = now

    def delay(self, key: Key, before: Object, after: Object, now: float) -> timedelta | None:
        """Return how long a status must wait that differs in messages alone; None when it need not wait."""
        pause = timedelta(seconds=self._of(key).written + INTERVAL.total_seconds() - now)
        if before == after or not only_messages_differ(before, after) or pause <= timedelta():
            return None
        return pause

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a claim that is gone."""
        self._claims.pop(key, None)

    def _of(self, key: Key) -> _Recollection:
        return self._claims.setdefault(key, _Recollection())


def only_messages_differ(before: Object, after: Object) -> bool:
    """Return whether two statuses differ in messages or external references alone, which may wait for a moment."""
    return _without_messages(before) == _without_messages(after)


def _without_messages(status: Object) -> Object:
    conditions = [{**condition, "message": ""} for condition in status.get("conditions") or ()]
    entries = [{**entry, "marks": {}} for entry in status.get("inventory") or ()]
    return {**status, "conditions": conditions, "inventory": entries}


class UnwrittenEntries:
    """Entries of inventories that may not be in their claim's status yet, by claim."""

    def __init__(self) -> None:
        self._entries: dict[Key, tuple[Entry, ...]] = {}

    def note(self, key: Key, entries: Iterable[Entry]) -> None:
        """Note the entries that a claim's status does not have yet, in place of those that were noted before."""
        self._entries[key] = tuple(entry for entry in entries if entry.uid)

    def added_to(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the noted entries of the same objects, by uid."""
        noted = {entry.uid: entry for entry in self._entries.get(snapshot.key, ())}
        children = (replace(child, entry=noted.get(child.entry.uid, child.entry)) for child in snapshot.children)
        return replace(snapshot, children=tuple(children)) if noted else snapshot

    def forget(self, key: Key) -> None:
        """Drop what is noted of a claim: its status has it, or the claim is gone."""
        self._entries.pop(key, None)
