"""What waits for an API server that hangs ends before the Lease does, so that the process need not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random

from fairlead.simulation.virtual_time import VirtualLoop
from runtime import fence
from runtime.elector import Elector, ElectorHooks
from runtime.leadership import Leadership
from tests.runtime.elections import LEASE, SETTINGS, Link, Weather
from tests.support.memory_kube import MemoryKube

LOOP = VirtualLoop


@dataclass
class Passes:
    """The work of a leader: passes one after the other, which end in their own time when it is cancelled."""

    request: Callable[[], Awaitable[None]]
    begun: int = 0
    ended: list[float] = field(default_factory=list)
    cut: int = 0
    stopping: bool = False

    async def lead(self, leadership: Leadership) -> None:
        fence.bind(leadership.holds, bounds=leadership.bounded)
        self.stopping = False
        passes = asyncio.create_task(self._all())
        try:
            await asyncio.wait((passes,))
        finally:
            self.stopping = True
            await asyncio.wait((passes,))

    async def _all(self) -> None:
        while not self.stopping:
            self.begun += 1
            try:
                async with fence.bounded():
                    await self.request()
            except TimeoutError:
                self.cut += 1
            self.ended.append(asyncio.get_running_loop().time())


def _elected(passes: Passes, link: Link, exits: list[float]) -> asyncio.Task[None]:
    loop = asyncio.get_running_loop()

    def exit_hard() -> None:
        exits.append(loop.time())
        raise SystemExit(70)

    elector = Elector(link, LEASE, "a", SETTINGS, hooks=ElectorHooks(monotonic=loop.time, exit_hard=exit_hard))
    return asyncio.create_task(elector.run(passes.lead))


async def test_a_request_that_hangs_with_the_api_server_ends_before_the_lease_and_the_process_goes_on() -> None:
    exits: list[float] = []

    hangs = asyncio.Event()

    async def request() -> None:
        await (asyncio.Event().wait() if hangs.is_set() else asyncio.sleep(1))

    link, passes = Link(MemoryKube(), Random(1)), Passes(request)  # noqa: S311  # a seed
    task = _elected(passes, link, exits)
    await asyncio.sleep(20.5)
    hangs.set()
    link.weather = Weather.HUNG
    hung_at = asyncio.get_running_loop().time()
    await asyncio.sleep(60)
    cut_at, before = passes.ended[-1] - hung_at, passes.begun
    hangs.clear()
    link.weather = Weather.FAIR
    await asyncio.sleep(60)
    task.cancel()
    await asyncio.wait((task,))
    since = passes.begun - before

    assert exits == []
    assert passes.cut == 1
    assert SETTINGS.renew_deadline.total_seconds() - SETTINGS.retry.total_seconds() - 1 <= cut_at
    assert cut_at <= SETTINGS.duration.total_seconds() - 1
    assert since > 1
