"""When a published login that was proven is tried again. Memory of one process; a restart begins the times again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from runtime.objects import Key

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_LONGEST_PAUSE = timedelta(hours=6)
# A server that nobody reaches costs a login's time-out: no more workers than this wait for one at once.
_MOST_AT_ONCE = 4
# For so long a pass waits for a place: logins that are answered take turns, and none waits long for those that are not.
_PLACE_SECONDS = 1.0


@dataclass(slots=True)
class Proofs:
    """The next try of each login: after `every`, twice as long after each try in a row that no server answered."""

    every: timedelta
    _next: dict[Key, tuple[datetime, timedelta]] = field(default_factory=dict)
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MOST_AT_ONCE))

    def is_due(self, key: Key, now: datetime) -> bool:
        """Return whether a login is to be tried again; one that was never queried is due a whole period later."""
        return now >= self._next.setdefault(key, (now + self.every, self.every))[0]

    def doubt(self, key: Key) -> None:
        """Have a login tried at the next pass, and at each until it is answered."""
        self._next[key] = (_LONG_AGO, self.every)

    def record(self, key: Key, now: datetime, *, is_answered: bool) -> None:
        """Record a try."""
        pause = self._next.get(key, (now, self.every))[1]
        pause = self.every if is_answered else min(pause * 2, _LONGEST_PAUSE)
        self._next[key] = (now + pause, pause)

    def forget(self, key: Key) -> None:
        """Forget an object that is gone."""
        self._next.pop(key, None)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[bool]:
        """Take a place for a try; yields whether there is one soon, else the login is tried in a later pass."""
        try:
            async with asyncio.timeout(_PLACE_SECONDS):
                await self._places.acquire()
        except TimeoutError:
            yield False
            return
        try:
            yield True
        finally:
            self._places.release()
