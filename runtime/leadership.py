"""The right to act, and its end. Threads may ask it; the clock is passed in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Final

from runtime import clock
from runtime.lease import LeaseSettings

# Before the Lease ends: for passes to end after what they waited for, and for the process to do so if they do not.
_LAST: Final = timedelta(seconds=1)


class Leadership:
    """The right to act, which ends by itself: ask before each mutating call, in the thread that sends it."""

    def __init__(self, settings: LeaseSettings, epoch: int, renewed_at: float, monotonic: Callable[[], float]) -> None:
        self.epoch = epoch
        self._settings = settings
        self._monotonic = monotonic
        self._renewed_at = renewed_at
        self._revoked = False
        self._limits: dict[asyncio.Timeout, None] = {}

    def deadline(self) -> float:
        """Return the instant of the monotonic clock after which no mutating call may start."""
        return float("-inf") if self._revoked else self._renewed_at + self._settings.renew_deadline.total_seconds()

    def holds(self, budget: timedelta = timedelta()) -> bool:
        """Return whether a call that takes at most `budget` may start now."""
        return self._monotonic() + budget.total_seconds() < self.deadline()

    def ends_at(self) -> float:
        """Return the instant before which nobody else leads."""
        return self._renewed_at + self._settings.duration.total_seconds()

    def renewed(self, sent_at: float) -> None:
        """Note an acknowledged renewal that was sent at `sent_at`."""
        self._renewed_at = max(self._renewed_at, sent_at)

    def revoke(self) -> None:
        """End the right to start calls, for good; what is `bounded` ends in time."""
        self._revoked = True
        for limit in self._limits:
            self._bound(limit)

    @asynccontextmanager
    async def bounded(self) -> AsyncIterator[None]:
        """Await what may hang: once leadership is lost it ends by a TimeoutError a second before the Lease does."""
        async with asyncio.timeout(None) as limit:
            self._limits[limit] = None
            try:
                if self._revoked:
                    self._bound(limit)
                yield
            finally:
                self._limits.pop(limit, None)

    def _bound(self, limit: asyncio.Timeout) -> None:
        rest = self.ends_at() - self._monotonic() - _LAST.total_seconds()
        if not limit.expired():
            limit.reschedule(clock.loop_time() + max(0.0, rest))
