"""The controller's life in virtual time: starts, stops, late sources, and work that stands still."""

import asyncio
from collections import Counter

from fairlead.simulation.virtual_time import VirtualLoop
from runtime.changes import Change
from runtime.controller import Source
from runtime.objects import Key
from runtime.results import SETTLED, Result
from tests.runtime.stage import settle, staged, times_of
from tests.runtime.virtual_loop import run
from tests.support.memory_kube import WIDGETS, MemoryKube

LOOP = VirtualLoop


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
