"""A clock of rates that stands still but for the waits of those who wait by it."""

from __future__ import annotations

import asyncio

from providers.accounts.rate_limit import Clock


class SteppedClock:
    """Moves on by what is waited for; `waits` are all waits, in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Let the time pass at once, and everybody else have a turn."""
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    @property
    def clock(self) -> Clock:
        """Return it as budgets take it."""
        return Clock(lambda: self.now, self.sleep)
