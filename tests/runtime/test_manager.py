"""A manager of controllers in virtual time: who comes and goes while the process leads, in which order they work."""

import asyncio
from datetime import timedelta

from fairlead.simulation.virtual_time import VirtualLoop
from runtime.cache import Cache
from runtime.controller import Controller, ControllerSettings, Source
from runtime.kube import Selection
from runtime.manager import Manager
from runtime.objects import Key
from runtime.reflector import Clock, Timing
from runtime.results import SETTLED, Result
from tests.support.memory_kube import WIDGETS, MemoryKube

LOOP = VirtualLoop

ELSEWHERE = Selection(namespace="elsewhere")


class Noted:
    """A controller over a whole kind; `passes` holds the names it looked at, each pass takes a second."""

    def __init__(self, cache: Cache, name: str, *, workers: int = 1) -> None:
        loop = asyncio.get_running_loop()
        self.passes: list[str] = []
        self.informer = cache.informer(WIDGETS)
        settings = ControllerSettings(workers=workers, monotonic=loop.time)
        self.controller = Controller(name, self._look, settings=settings)
        self.controller.source(Source(self.informer, primary=True))

    async def _look(self, key: Key) -> Result:
        await asyncio.sleep(1)
        self.passes.append(key.name)
        return SETTLED


def cache_of(kube: MemoryKube) -> Cache:
    loop = asyncio.get_running_loop()
    return Cache(kube, timing=Timing(idle=timedelta(days=9), clock=Clock(monotonic=loop.time, chance=lambda: 0.0)))


async def _stop(*tasks: "asyncio.Task[None]") -> None:
    for task in tasks:
        task.cancel()
        await asyncio.wait((task,))


async def test_a_controller_that_joins_works_at_once_and_one_that_leaves_begins_no_other_pass() -> None:
    kube = MemoryKube()
    kube.put(WIDGETS, "w")
    cache, manager = cache_of(kube), Manager()
    first = Noted(cache, "first")
    manager.add(first.controller)
    caching, leading = asyncio.create_task(cache.run()), asyncio.create_task(manager.run())
    await asyncio.sleep(5)
    second = Noted(cache, "second")
    manager.add(second.controller)
    await asyncio.sleep(5)
    kube.put(WIDGETS, "x")
    # Both have begun their pass.
    await asyncio.sleep(0.5)
    await manager.remove(first.controller)
    kube.put(WIDGETS, "y")
    await asyncio.sleep(5)
    await _stop(leading, caching)

    assert (first.passes, second.passes, len(manager)) == (["w", "x"], ["w", "x", "y"], 1)


async def test_a_manager_leads_again_with_all_controllers_of_then() -> None:
    kube = MemoryKube()
    kube.put(WIDGETS, "w")
    cache, manager = cache_of(kube), Manager()
    stays, leaves = Noted(cache, "stays"), Noted(cache, "leaves")
    manager.add(stays.controller)
    manager.add(leaves.controller)
    caching = asyncio.create_task(cache.run())
    leading = asyncio.create_task(manager.run())
    await asyncio.sleep(5)
    await _stop(leading)
    await manager.remove(leaves.controller)
    leading = asyncio.create_task(manager.run())
    await asyncio.sleep(5)
    await _stop(leading, caching)

    assert (stays.passes, leaves.passes) == (["w", "w"], ["w"])


async def test_an_informer_on_demand_holds_up_nobody_and_a_source_taken_away_wakes_nobody() -> None:
    kube = MemoryKube()
    kube.put(WIDGETS, "w")
    kube.put(WIDGETS, "other", namespace="elsewhere")
    cache, manager = cache_of(kube), Manager()
    noted = Noted(cache, "one")
    extra = cache.informer(WIDGETS, selection=ELSEWHERE, required=False)
    without_lists = cache.synced()
    noted.controller.source(Source(extra, keys=lambda change: (Key("ns", f"by-{change.key.name}"),)))
    manager.add(noted.controller)
    caching, leading = asyncio.create_task(cache.run()), asyncio.create_task(manager.run())
    await asyncio.sleep(5)
    noted.controller.unsource(extra)
    cache.drop(WIDGETS, ELSEWHERE)
    kube.put(WIDGETS, "other", namespace="elsewhere", spec={"n": 2})
    await asyncio.sleep(5)
    await _stop(leading, caching)
    with_required, after, passes = without_lists, cache.synced(), noted.passes

    assert not with_required
    assert after
    assert passes.count("by-other") == 1
