"""When a claim's status may be written that only says the same in other words, and how long its first cause has held.

What one process remembers of a claim between passes; nothing depends on it being kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from composer.claim.report import only_words_differ
from runtime.objects import Key, Object

WORDS: Final = timedelta(seconds=2)


@dataclass(slots=True)
class _Recollection:
    reason: str | None = None
    since: float = 0.0
    written: float = 0.0


class Debounce:
    """The times of claims; `now` is always that of one monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._claims: dict[Key, _Recollection] = {}

    def held(self, key: Key, reason: str, now: float) -> timedelta:
        """Note the reason of a claim's first cause, empty without one; return how long it has been that."""
        memory = self._of(key)
        if memory.reason != reason:
            memory.reason, memory.since = reason, now
        return timedelta(seconds=now - memory.since)

    def wrote(self, key: Key, now: float) -> None:
        """Note that a status was written."""
        self._of(key).written = now

    def delay(self, key: Key, before: Object, after: Object, now: float) -> timedelta | None:
        """Return how long a status must wait that only says the same in other words; None when it need not."""
        pause = timedelta(seconds=self._of(key).written + WORDS.total_seconds() - now)
        if before == after or not only_words_differ(before, after) or pause <= timedelta():
            return None
        return pause

    def forget(self, key: Key) -> None:
        """Drop what is remembered of a claim that is gone."""
        self._claims.pop(key, None)

    def _of(self, key: Key) -> _Recollection:
        return self._claims.setdefault(key, _Recollection())
