"""A controller over a fake cluster, in virtual time."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from runtime.cache import Cache, Informer
from runtime.controller import Controller, ControllerSettings, Source
from runtime.errors import (
    ApiError,
    Failure,
)
from runtime.objects import Key
from runtime.reflector import Clock, Timing
from runtime.results import SETTLED, Reconcile, Result
from tests.support.memory_kube import WIDGETS, MemoryKube


@dataclass
class Stage:
    """A running controller over a fake cluster."""

    kube: MemoryKube
    informer: Informer
    controller: Controller
    passes: list[tuple[float, Key]]

    def times(self, name: str) -> list[float]:
        return [at for at, key in self.passes if key.name == name]

    def counts(self) -> Counter[str]:
        return Counter(key.name for _, key in self.passes)


@asynccontextmanager
async def staged(
    reconcile: Reconcile,
    kube: MemoryKube | None = None,
    *,
    workers: int = 4,
    pass_timeout_s: float = 120,
    patience: timedelta | None = None,
) -> AsyncIterator[Stage]:
    loop = asyncio.get_running_loop()
    kube = kube or MemoryKube()
    cache = Cache(kube, timing=Timing(idle=timedelta(days=9), clock=Clock(monotonic=loop.time, chance=lambda: 0.0)))
    informer = cache.informer(WIDGETS)
    passes: list[tuple[float, Key]] = []

    async def noted(key: Key) -> Result:
        passes.append((loop.time(), key))
        return await reconcile(key)

    settings = ControllerSettings(workers=workers, pass_timeout=timedelta(seconds=pass_timeout_s), monotonic=loop.time)
    controller = Controller("widget", noted, settings=settings)
    controller.source(Source(informer, primary=True, patience=patience))
    tasks = [asyncio.create_task(cache.run()), asyncio.create_task(controller.run())]
    try:
        yield Stage(kube, informer, controller, passes)
    finally:
        for task in reversed(tasks):
            task.cancel()
            await asyncio.wait((task,))


async def times_of(reconcile: Reconcile, seconds: float, **settings: Any) -> list[float]:
    """Return when the only object there is was looked at, within so many seconds."""
    kube = MemoryKube()
    kube.put(WIDGETS, "w")
    async with staged(reconcile, kube, **settings) as stage:
        await asyncio.sleep(seconds)
        return stage.times("w")


async def settle(_: Key) -> Result:
    return SETTLED


def raising(error: Failure | ApiError | Exception) -> Reconcile:
    async def reconcile(_: Key) -> Result:
        raise error

    return reconcile
