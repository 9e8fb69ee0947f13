"""Debounces the status of a claim: one that differs in its messages alone is written every two seconds at most.

It also has how long the first cause of a claim has held. One process remembers both between passes; nothing depends on
it being kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from runtime.objects import Key, Object

INTERVAL: Final = timedelta(seconds=2)


@dataclass(slots=True)
class _Recollection:
    """The reason of a claim's first cause, since when, and when a status was written; seconds of a monotonic clock."""

    reason: str | None = None
    since: float = 0.0
    written: float = 0.0


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
