"""A list that is refused, for want of a right or of the kind: it is tried rarely, and at once when that has changed."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from fairlead.simulation.virtual_time import VirtualLoop
from runtime.cache import Cache
from runtime.reflector import Clock, Timing
from tests.runtime.test_reflector import timing, until
from tests.support.memory_kube import WIDGETS, Fault, MemoryKube
from tests.support.waiting import in_background

LOOP = VirtualLoop
HOUR_S = 3_600


@asynccontextmanager
async def working(cache: Cache) -> AsyncIterator[None]:
    """Keep the informers of a cache going for the length of a block."""
    async with in_background(cache.run()):
        yield


async def test_a_first_list_that_is_refused_is_tried_rarer_until_once_in_ten_minutes() -> None:
    kube = MemoryKube(forbidden={"list widgets"})
    cache = Cache(kube, timing=timing())
    informer = cache.informer(WIDGETS, required=False)
    async with working(cache):
        await asyncio.sleep(4 * HOUR_S)
        refused, stalest = informer.is_refused, cache.stalest()
        lists = [dial.at for dial in kube.dials]
        kube.forbidden.clear()
        await informer.synced.wait()

    pauses = [later - earlier for earlier, later in itertools.pairwise(lists)]
    assert refused
    # Nothing is missed while there is no watch, so that no restart helps.
    assert stalest == timedelta()
    assert pauses[:10] == pytest.approx([0.8 * 2**number for number in range(10)])
    assert pauses[10:] == pytest.approx([600.0] * len(pauses[10:]))
    assert len(pauses) > 25


async def test_a_refused_list_without_which_nothing_works_is_tried_every_half_minute() -> None:
    kube = MemoryKube(forbidden={"list widgets"})
    cache = Cache(kube, timing=timing())
    cache.informer(WIDGETS)
    async with working(cache):
        await asyncio.sleep(HOUR_S)

    assert len([dial for dial in kube.dials if 600 <= dial.at < HOUR_S]) == 100


async def test_a_list_that_is_refused_after_it_was_allowed_is_tried_every_half_minute() -> None:
    kube = MemoryKube()
    cache = Cache(kube, timing=timing(idle_s=60))
    informer = cache.informer(WIDGETS, required=False)
    async with working(cache):
        await informer.synced.wait()
        kube.forbidden.update(("list widgets", "watch widgets"))
        kube.compact()
        kube.put(WIDGETS, "w")
        begun = asyncio.get_running_loop().time()
        await asyncio.sleep(HOUR_S)

    assert not informer.is_refused
    assert len([dial for dial in kube.dials if begun + 600 <= dial.at < begun + HOUR_S]) == 100


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


async def test_a_refusal_after_failures_of_another_kind_begins_with_short_pauses() -> None:
    kube = MemoryKube()
    kube.list_faults.extend([Fault.UNAVAILABLE] * 12)
    cache = Cache(kube, timing=timing())
    cache.informer(WIDGETS, required=False)
    async with working(cache):
        await until(lambda: not kube.list_faults)
        kube.forbidden.add("list widgets")
        refused_at = len(kube.dials)
        await until(lambda: len(kube.dials) > refused_at + 3)

    at = [dial.at for dial in kube.dials[refused_at:]]
    assert [later - earlier for earlier, later in itertools.pairwise(at)][:2] == pytest.approx([0.8, 1.6])
