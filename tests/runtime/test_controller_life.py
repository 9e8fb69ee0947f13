"""The controller's life in virtual time: starts, stops, late sources, and work that stands still."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from fairlead.simulation.virtual_time import VirtualLoop
from runtime.cache import Cache
from runtime.changes import Change
from runtime.controller import Controller, ControllerSettings, Source
from runtime.objects import Key
from runtime.queue_state import Priority
from runtime.results import SETTLED, Result
from tests.runtime.stage import settle, staged, times_of
from tests.runtime.virtual_loop import run
from tests.support.memory_kube import WIDGETS, MemoryKube
from tests.support.waiting import in_background

LOOP = VirtualLoop


async def test_a_stop_lets_passes_in_flight_end_and_begins_no_other() -> None:
    ended: list[str] = []

    async def slow(key: Key) -> Result:
        await asyncio.sleep(5)
        ended.append(key.name)
        return SETTLED

    kube = MemoryKube()
    for number in range(10):
        kube.put(WIDGETS, f"w{number}")
    async with staged(slow, kube, workers=3) as stage:
        await asyncio.sleep(2)
        begun = [key.name for _, key in stage.passes]
    total = len(stage.passes)

    assert total == len(begun) == 3
    assert sorted(ended) == sorted(begun)


async def test_a_pass_that_outlives_the_drain_is_cut_off() -> None:
    async def endless(_: Key) -> Result:
        await asyncio.sleep(10_000)
        return SETTLED

    loop = asyncio.get_running_loop()
    kube = MemoryKube()
    kube.put(WIDGETS, "w")
    async with staged(endless, kube, pass_timeout_s=100_000):
        await asyncio.sleep(1)
        stopped = loop.time()

    assert loop.time() - stopped == pytest.approx(25, abs=1)


async def test_a_controller_runs_again_after_a_stop_with_all_objects() -> None:
    loop = asyncio.get_running_loop()
    kube = MemoryKube()
    kube.put(WIDGETS, "one")
    cache = Cache(kube)
    passes: list[str] = []

    async def noted(key: Key) -> Result:
        passes.append(key.name)
        return SETTLED

    controller = Controller("widget", noted, settings=ControllerSettings(monotonic=loop.time))
    controller.source(Source(cache.informer(WIDGETS), primary=True))
    async with in_background(cache.run()):
        counts = []
        for name in ("two", "three"):
            async with in_background(controller.run()):
                await asyncio.sleep(1)
            counts.append(len(passes))
            kube.put(WIDGETS, name)
            await asyncio.sleep(1)
            counts.append(len(passes))

    assert counts == [1, 1, 3, 3]


async def test_a_controller_reconciles_nothing_before_every_source_is_complete() -> None:
    loop = asyncio.get_running_loop()
    kube = MemoryKube()
    kube.put(WIDGETS, "w")
    cache = Cache(kube)
    first = cache.informer(WIDGETS)
    passes = 0

    async def noted(_: Key) -> Result:
        nonlocal passes
        passes += 1
        return SETTLED

    controller = Controller("widget", noted, settings=ControllerSettings(monotonic=loop.time))
    controller.source(Source(first, primary=True))
    controller.enqueue(Key("ns", "w"), priority=Priority.URGENT)
    running = asyncio.create_task(controller.run())
    await asyncio.sleep(10)
    before = passes
    caching = asyncio.create_task(cache.run())
    await asyncio.sleep(10)
    for task in (running, caching):
        task.cancel()
        await asyncio.wait((task,))

    assert (before, passes) == (0, 1)


async def test_a_source_added_while_running_brings_what_it_holds() -> None:
    kube = MemoryKube()
    async with staged(settle, kube) as stage:
        await asyncio.sleep(1)
        kube.put(WIDGETS, "child", spec={"of": "owner"})
        await asyncio.sleep(1)

        def owner(_: object) -> tuple[Key, ...]:
            return (Key("ns", "owner"),)

        stage.controller.source(Source(stage.informer, keys=owner))
        await asyncio.sleep(1)
        kube.put(WIDGETS, "child", spec={"of": "owner", "n": 2})
        await asyncio.sleep(1)

        assert stage.counts() == Counter(child=2, owner=2)


def test_a_cancellation_inside_a_pass_is_a_defect_and_not_the_end_of_a_worker() -> None:
    async def waits_for_the_cancelled(_: Key) -> Result:
        task = asyncio.create_task(asyncio.sleep(1))
        task.cancel()
        await task
        return SETTLED

    assert len(run(times_of(waits_for_the_cancelled, 60, workers=1))) in range(5, 10)


async def test_a_mapping_that_fails_on_one_object_stops_nothing() -> None:
    kube = MemoryKube()
    async with staged(settle, kube) as stage:

        def odd(change: Change) -> tuple[Key, ...]:
            return (Key("ns", (change.new() or {})["spec"]["owner"]),)

        stage.controller.source(Source(stage.informer, keys=odd))
        await asyncio.sleep(1)
        kube.put(WIDGETS, "poison")
        kube.put(WIDGETS, "good", spec={"owner": "someone"})
        await asyncio.sleep(1)

        assert stage.counts() == Counter(poison=1, good=1, someone=1)


async def test_work_that_stands_still_is_reported() -> None:
    loop = asyncio.get_running_loop()

    async def stuck(_: Key) -> Result:
        await asyncio.sleep(100)
        return SETTLED

    controller = Controller("widget", stuck, settings=ControllerSettings(workers=1, monotonic=loop.time))
    still = [controller.stalled_for()]
    async with in_background(controller.run()):
        for name in ("a", "b"):
            controller.enqueue(Key("ns", name))
        await asyncio.sleep(90)
        still.append(controller.stalled_for())
        await asyncio.sleep(20)
        still.append(controller.stalled_for())
    idle, waiting, moved = still

    assert idle == timedelta()
    assert waiting >= timedelta(seconds=89)
    assert moved <= timedelta(seconds=11)
