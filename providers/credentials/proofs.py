"""When a published login that was proven is tried again. Memory of one process; a restart begins the times anew."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from runtime.objects import Key

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_RAREST = timedelta(hours=6)
# A server that nobody reaches costs a login's time-out: no more workers than this wait for one at once.
_MOST_AT_ONCE = 4


@dataclass(slots=True)
class Proofs:
    """The next try of each login: after `every`, twice as long after each try in a row that no server answered."""

    every: timedelta
    _next: dict[Key, tuple[datetime, timedelta]] = field(default_factory=dict)
    _trying: int = 0

    def is_due(self, key: Key, now: datetime) -> bool:
        """Tell whether a login is to be tried again; one that was never asked for is due a whole time later."""
        return now >= self._next.setdefault(key, (now + self.every, self.every))[0]

    def doubt(self, key: Key) -> None:
        """Have a login tried at the next look, and at each until it is answered."""
        self._next[key] = (_LONG_AGO, self.every)

    def note(self, key: Key, now: datetime, *, is_answered: bool) -> None:
        """Remember a try."""
        pause = self._next.get(key, (now, self.every))[1]
        pause = self.every if is_answered else min(pause * 2, _RAREST)
        self._next[key] = (now + pause, pause)

    def forget(self, key: Key) -> None:
        """Drop what is remembered of an object that is gone."""
        self._next.pop(key, None)

    @contextmanager
    def slot(self) -> Iterator[bool]:
        """Take a place for a try; yields whether there is one, else the login is tried at a later look."""
        is_free = self._trying < _MOST_AT_ONCE
        self._trying += is_free
        try:
            yield is_free
        finally:
            self._trying -= is_free
