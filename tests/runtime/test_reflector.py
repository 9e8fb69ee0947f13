"""The reflector against a server that misbehaves in every way we know of: it converges, and it does not hammer."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from fairlead.simulation.virtual_time import VirtualLoop
from runtime.cache import Cache, Informer
from runtime.objects import Key
from runtime.reflector import Clock, Timing
from tests.support.memory_kube import WIDGETS, Fault, MemoryKube
from tests.support.waiting import in_background

LOOP = VirtualLoop
GENEROUS_S = 600.0


def timing(*, idle_s: float = 0.05) -> Timing:
    clock = Clock(monotonic=asyncio.get_running_loop().time, chance=lambda: 0.0)
    return Timing(idle=timedelta(seconds=idle_s), clock=clock)


@asynccontextmanager
async def informed(kube: MemoryKube, *, idle_s: float = 0.05) -> AsyncIterator[Informer]:
    cache = Cache(kube, timing=timing(idle_s=idle_s))
    informer = cache.informer(WIDGETS)
    async with in_background(cache.run()):
        yield informer


async def until(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(GENEROUS_S):
        while not met():  # noqa: ASYNC110  # what is awaited has no event
            await asyncio.sleep(0.05)


def held(informer: Informer) -> dict[Key, str]:
    return {record.key: record.uid for record in informer.store.records()}


def converged(kube: MemoryKube, informer: Informer) -> bool:
    return held(informer) == kube.state(WIDGETS)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(Fault.GONE, id="410 as status"),
        pytest.param(Fault.GONE_EVENT, id="410 inside the stream"),
        pytest.param(Fault.ODD_EVENT, id="an unknown error inside the stream"),
        pytest.param(Fault.CLOSED, id="a watch closed at once"),
        pytest.param(Fault.SILENT, id="a silent watch"),
        pytest.param(Fault.CUT_LINE, id="a cut line"),
        pytest.param(Fault.GARBAGE, id="a line that is not JSON"),
        pytest.param(Fault.NO_ANSWER, id="a broken connection"),
        pytest.param(Fault.UNAVAILABLE, id="503"),
    ],
)
async def test_a_reflector_converges_after_a_faulty_watch(fault: Fault) -> None:
    kube = MemoryKube(watch_faults=deque([fault] * 5))
    kube.put(WIDGETS, "stays")
    kube.put(WIDGETS, "goes")
    async with informed(kube) as informer:
        await informer.synced.wait()
        # Shown by no event: the watches so far are faulty.
        kube.remove(WIDGETS, "goes")
        kube.put(WIDGETS, "comes")
        await until(lambda: converged(kube, informer))
        kube.put(WIDGETS, "later")
        await until(lambda: converged(kube, informer))


@pytest.mark.parametrize("expired", [0, 100], ids=["in pages of 500", "in one piece, too slow for its tokens"])
async def test_a_long_list_takes_three_requests(expired: int) -> None:
    kube = MemoryKube(list_faults=deque([Fault.TOKEN_EXPIRED] * expired))
    for number in range(1_200):
        kube.put(WIDGETS, f"w{number}")
    async with informed(kube) as informer:
        await informer.synced.wait()

        assert converged(kube, informer)
    assert [dial.verb for dial in kube.dials].count("list") == 3


@pytest.mark.parametrize(
    "fault",
    [Fault.CLOSED, Fault.GONE, Fault.GONE_EVENT, Fault.GARBAGE, Fault.NO_ANSWER, Fault.UNAVAILABLE, Fault.SILENT],
)
async def test_a_reflector_backed_off_dials_at_most_twice_a_minute(fault: Fault) -> None:
    kube = MemoryKube(always=fault)
    async with informed(kube, idle_s=0.001 if fault is Fault.SILENT else 0.05):
        await asyncio.sleep(3_600)
    settled = [dial.at for dial in kube.dials if dial.at > 300]
    busiest = max(sum(begin <= at < begin + 60 for at in settled) for begin in settled)

    assert busiest <= 2
    assert len(settled) >= 50


async def test_a_few_older_lists_are_no_restored_server() -> None:
    kube = MemoryKube()
    async with informed(kube, idle_s=60) as informer:
        await informer.synced.wait()
        for _ in range(3):
            kube.list_faults.extend([Fault.OLD] * 4)
            kube.watch_faults.append(Fault.GONE)
            kube.compact()
            kube.put(WIDGETS, f"w{len(kube.objects)}")
            await until(lambda: converged(kube, informer))
            await asyncio.sleep(200)

        assert not informer.went_back


async def test_the_way_to_the_server_being_free_again_ends_a_pause_for_want_of_an_answer() -> None:
    waiting = asyncio.Event()

    async def sleep(_: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    for fault, dials in ((Fault.NO_ANSWER, 3), (Fault.GONE, 2)):
        kube = MemoryKube(watch_faults=deque([fault]))
        clock = Clock(monotonic=asyncio.get_running_loop().time, sleep=sleep, chance=lambda: 0.0)
        cache = Cache(kube, timing=Timing(clock=clock))
        cache.informer(WIDGETS)
        async with in_background(cache.run()):
            await waiting.wait()
            waiting.clear()
            cache.retry_now()
            for _ in range(20):
                await asyncio.sleep(0)

        assert len(kube.dials) == dials
