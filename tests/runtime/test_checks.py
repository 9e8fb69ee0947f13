"""When a process calls itself dead, and when merely not ready."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from fairlead.simulation.virtual_time import VirtualLoop
from runtime.cache import Cache
from runtime.checks import checks_of
from runtime.controller import Controller, ControllerSettings
from runtime.health import Health
from runtime.kube import Selection
from runtime.objects import Key
from runtime.reflector import Clock, Timing
from runtime.results import SETTLED, Result
from tests.runtime.virtual_loop import run
from tests.support.memory_kube import WIDGETS, Fault, MemoryKube
from tests.support.waiting import in_background

LOOP = VirtualLoop

OTHERS = Selection(namespace="others")


@dataclass(frozen=True)
class Probes:
    live: bool
    ready: bool


def probes(health: Health) -> Probes:
    def passed(checks: Callable[[], list[str | None]]) -> bool:
        return not any(checks())

    return Probes(
        live=passed(lambda: [check() for check in health.live.values()]),
        ready=passed(lambda: [check() for check in health.ready.values()]),
    )


def cache_of(kube: MemoryKube, *, idle: timedelta = timedelta(seconds=80)) -> Cache:
    loop = asyncio.get_running_loop()
    return Cache(kube, timing=Timing(idle=idle, clock=Clock(monotonic=loop.time, chance=lambda: 0.0)))


async def settle(_: Key) -> Result:
    return SETTLED


async def test_an_api_server_that_is_away_makes_it_not_ready_and_never_dead() -> None:
    kube = MemoryKube()
    cache = cache_of(kube)
    cache.informer(WIDGETS)
    cache.informer(WIDGETS, selection=OTHERS)
    health = checks_of(cache, [Controller("widget", settle)])
    answers = [probes(health)]
    async with in_background(cache.run()):
        await asyncio.sleep(1)
        answers.append(probes(health))
        kube.always = Fault.NO_ANSWER
        kube.list_faults.extend([Fault.NO_ANSWER] * 1_000)
        kube.compact()
        kube.put(WIDGETS, "w")
        await asyncio.sleep(3_600)
        answers.append(probes(health))
        kube.always = None
        kube.list_faults.clear()
        await asyncio.sleep(120)
        answers.append(probes(health))

    assert answers == [
        Probes(live=True, ready=False),
        Probes(live=True, ready=True),
        Probes(live=True, ready=False),
        Probes(live=True, ready=True),
    ]


def test_an_api_server_restored_from_a_backup_makes_it_dead_and_a_restart_helps() -> None:
    async def scene() -> list[Probes]:
        kube = MemoryKube(version=5_000)
        answers = []
        for _ in range(2):
            cache = cache_of(kube)
            cache.informer(WIDGETS)
            health = checks_of(cache, [Controller("widget", settle)])
            async with in_background(cache.run()):
                await asyncio.sleep(1)
                answers.append(probes(health))
                kube.server.version = 1_000
                kube.compact()
                kube.put(WIDGETS, "new")
                await asyncio.sleep(600)
                answers.append(probes(health))
        return answers

    well, dead = Probes(live=True, ready=True), Probes(live=False, ready=False)

    assert run(scene()) == [well, dead, well, well]


async def test_one_watch_that_stays_silent_beside_another_that_speaks_is_death() -> None:
    silent, speaking = MemoryKube(always=Fault.SILENT), MemoryKube()
    # Two servers stand for one that has forgotten one of two watches; without the idle limit it would stay so.
    cache = cache_of(silent, idle=timedelta(days=1))
    other = cache_of(speaking, idle=timedelta(days=1))
    cache.informer(WIDGETS)
    cache._informers[WIDGETS, OTHERS] = other.informer(WIDGETS, selection=OTHERS)
    tasks = [asyncio.create_task(informer.run()) for informer in (other, cache)]
    # A bookmark comes every minute.
    await asyncio.sleep(601)
    answered = probes(checks_of(cache, [Controller("widget", settle)]))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)

    assert answered == Probes(live=False, ready=False)


async def test_work_that_no_worker_takes_is_death() -> None:
    loop = asyncio.get_running_loop()

    async def stuck(_: Key) -> Result:
        await asyncio.sleep(1_000)
        return SETTLED

    settings = ControllerSettings(workers=1, pass_timeout=timedelta(days=1), monotonic=loop.time)
    controller = Controller("widget", stuck, settings=settings)
    health = checks_of(cache_of(MemoryKube()), [controller])
    for name in ("a", "b"):
        controller.enqueue(Key("ns", name))
    await asyncio.sleep(700)
    # A standby's queue has no workers and is no trouble.
    answers = [probes(health)]
    async with in_background(controller.run()):
        await asyncio.sleep(700)
        answers.append(probes(health))

    assert answers == [Probes(live=True, ready=True), Probes(live=False, ready=False)]
