"""How long an event loop was kept from its other work, and how much of that was its own doing.

As a program it measures a loop that does nothing, until its standard input ends: what the machine itself does to any
loop at that time.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

_TICK_SECONDS = 0.001


@dataclass(slots=True)
class Stalls:
    """Lateness of a one-millisecond timer, and processor time of the thread between two ticks, in seconds."""

    late: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)

    @property
    def longest_ms(self) -> float:
        """The longest stall in milliseconds."""
        return max(self.late, default=0.0) * 1000

    @property
    def busiest_ms(self) -> float:
        """The longest that the loop computed without a turn of others, in milliseconds."""
        return max(self.busy, default=0.0) * 1000


@asynccontextmanager
async def measured() -> AsyncIterator[Stalls]:
    """Measure while the body runs."""
    stalls = Stalls()

    async def tick() -> None:
        while True:
            began, computed = time.perf_counter(), time.thread_time()
            await asyncio.sleep(_TICK_SECONDS)
            stalls.late.append(time.perf_counter() - began - _TICK_SECONDS)
            stalls.busy.append(time.thread_time() - computed)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    try:
        yield stalls
    finally:
        # One more turn, so that a stall at the very end is seen too.
        await asyncio.sleep(2 * _TICK_SECONDS)
        ticking.cancel()


@asynccontextmanager
async def measured_beside() -> AsyncIterator[tuple[Stalls, Stalls]]:
    """Measure while the body runs: this loop, and at the same time an idle one in a process of its own."""
    program = (sys.executable, "-m", "benchmarks.loop_stall")
    pipe = asyncio.subprocess.PIPE
    idle = await asyncio.create_subprocess_exec(*program, stdin=pipe, stdout=pipe)
    if idle.stdin is None or idle.stdout is None:
        raise ChildProcessError("the idle loop has no pipes")
    await idle.stdout.readline()
    machine = Stalls()
    async with measured() as own:
        yield own, machine
    idle.stdin.close()
    machine.late.append(float(await idle.stdout.readline()))
    await idle.wait()


async def _idle() -> None:
    async with measured() as stalls:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
    print(max(stalls.late), flush=True)


if __name__ == "__main__":
    asyncio.run(_idle())
