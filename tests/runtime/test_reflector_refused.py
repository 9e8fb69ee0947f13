"""A list that is refused, for want of a right or of the kind: it is tried rarely, and at once when that has changed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fairlead.simulation.virtual_time import VirtualLoop
from runtime.cache import Cache
from runtime.reflector import Clock, Timing
from tests.support.memory_kube import WIDGETS, MemoryKube
from tests.support.waiting import in_background

LOOP = VirtualLoop


@asynccontextmanager
async def working(cache: Cache) -> AsyncIterator[None]:
    """Keep the informers of a cache going for the length of a block."""
    async with in_background(cache.run()):
        yield


async def test_a_right_that_is_granted_ends_the_pause_after_a_refusal_and_an_answer_alone_does_not() -> None:
    paused = asyncio.Event()

    async def sleep(_: float) -> None:
        paused.set()
        await asyncio.Event().wait()

    kube = MemoryKube(forbidden={"list widgets"})
    cache = Cache(kube, timing=Timing(clock=Clock(monotonic=lambda: 0.0, sleep=sleep)))
    informer = cache.informer(WIDGETS, required=False)
    async with working(cache):
        await paused.wait()
        cache.retry_now()
        for _ in range(20):
            await asyncio.sleep(0)
        before = len(kube.dials)
        kube.forbidden.clear()
        informer.retry_now(granted=True)
        await informer.synced.wait()

    assert before == 1
    assert not informer.is_refused
