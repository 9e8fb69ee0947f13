"""Time that passes only when somebody sleeps."""

import asyncio
from dataclasses import dataclass


@dataclass(slots=True)
class VirtualClock:
    seconds: float = 0.0

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        await asyncio.sleep(0)
