"""How long an event loop was kept from its other work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

_TICK_SECONDS = 0.001


@dataclass(slots=True)
class Stalls:
    """Lateness of a one-millisecond timer, in seconds."""

    late: list[float] = field(default_factory=list)

    @property
    def longest_ms(self) -> float:
        """The longest stall in milliseconds."""
        return max(self.late, default=0.0) * 1000


@asynccontextmanager
async def measured() -> AsyncIterator[Stalls]:
    """Measure while the body runs."""
    stalls = Stalls()

    async def tick() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(_TICK_SECONDS)
            stalls.late.append(time.perf_counter() - began - _TICK_SECONDS)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    try:
        yield stalls
    finally:
        # One more turn, so that a stall at the very end is seen too.
        await asyncio.sleep(2 * _TICK_SECONDS)
        ticking.cancel()
