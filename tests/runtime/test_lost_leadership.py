"""What becomes of passes in flight when the Lease is lost, in virtual time."""

from __future__ import annotations

import asyncio
from random import Random

from structlog.testing import capture_logs

from runtime import fence
from runtime.cache import Cache
from runtime.controller import Controller, ControllerSettings, Source
from runtime.elector import Elector, ElectorHooks
from runtime.leadership import Leadership
from runtime.manager import Manager
from runtime.objects import Key
from runtime.results import SETTLED, Reconcile, Result
from tests.runtime.elections import LEASE, SETTINGS, Link, Weather
from tests.runtime.virtual_loop import run
from tests.support.memory_kube import WIDGETS, MemoryKube

_OUTLIVED = "work outlived the lease; exiting hard"
_HUNG_AT_S = 10


async def _hung(reconcile: Reconcile, exits: list[str]) -> None:
    """Lead with one controller over one widget; the API server hangs for a minute in the middle."""
    loop = asyncio.get_running_loop()
    kube, link, manager = MemoryKube(), Link(MemoryKube(), Random(1)), Manager()  # noqa: S311  # a seed
    kube.put(WIDGETS, "w")
    cache = Cache(kube)
    controller = Controller("widget", reconcile, settings=ControllerSettings(monotonic=loop.time))
    controller.source(Source(cache.informer(WIDGETS), primary=True))
    manager.add(controller)

    async def lead(leadership: Leadership) -> None:
        fence.bind(leadership.holds, bounds=leadership.bounded)
        await manager.run()

    def exit_hard() -> None:
        exits.append("exit")
        raise SystemExit(70)

    hooks = ElectorHooks(monotonic=loop.time, exit_hard=exit_hard, under_way=manager.passes)
    elector = Elector(link, LEASE, "a", SETTINGS, hooks=hooks)

    async def campaign() -> None:
        try:
            await elector.run(lead)
        except SystemExit:
            link.dead = True

    caching, leading = asyncio.create_task(cache.run()), asyncio.create_task(campaign())
    await asyncio.sleep(_HUNG_AT_S)
    link.weather = Weather.HUNG
    await asyncio.sleep(60)
    link.weather = Weather.FAIR
    await asyncio.sleep(60)
    for task in (leading, caching):
        task.cancel()
        await asyncio.wait((task,))


def test_the_end_of_the_process_names_the_pass_that_outlived_the_lease_and_where_it_waits() -> None:
    exits: list[str] = []

    async def in_a_thread(_: Key) -> Result:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await _end_of_the_thread()
            raise
        return SETTLED

    with capture_logs() as logs:
        run(_hung(in_a_thread, exits))

    ((work,),) = [line["work"] for line in logs if line["event"] == _OUTLIVED]
    assert exits == ["exit"]
    assert work.startswith("widget ns/w at ")
    assert "_end_of_the_thread" in work


async def _end_of_the_thread() -> None:
    await asyncio.Event().wait()
