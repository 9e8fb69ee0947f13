"""An account that hangs delays its own resources: a connect takes one worker, and all its passes half at most."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from providers.accounts.limits import BY_CONFIG, config_of
from providers.external.client import Target
from providers.external.metering import Meter
from providers.external.observation import Absent, Present
from providers.external.provider import RecordedAccount
from providers.process import controller_settings
from runtime.controller import Controller
from runtime.errors import Transient
from runtime.objects import Key
from tests.providers.toy import CONFIGS, ToyCloud, ToyParameters, dialled, provider_of
from tests.providers.world import World
from tests.support.waiting import eventually


async def test_connect_does_not_wait_for_the_second_try_of_another_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("providers.accounts.connections._AFTER_FAILURE", timedelta(0))
    dials, hangs = 0, asyncio.Event()

    async def dial(_recorded: RecordedAccount, _meter: Meter) -> ToyCloud:
        nonlocal dials
        dials += 1
        if dials > 1:
            await hangs.wait()
        if dials < 100:
            raise Transient("no answer")
        return ToyCloud()

    world = World(ToyCloud(), provider=dialled(provider_of(ToyCloud()), dial))
    world.feed()
    with pytest.raises(Transient):
        await world.accounts.connect("default")
    dialling = asyncio.create_task(world.accounts.connect("default"))
    for _ in range(5):
        await asyncio.sleep(0)

    with pytest.raises(Transient, match="no answer"):
        await asyncio.wait_for(world.accounts.connect("default"), timeout=1)

    assert dials == 2
    hangs.set()
    with pytest.raises(Transient):
        await dialling


HUNG_SIZE = 13


@dataclass
class HungCloud(ToyCloud):
    """Never answers about toys of one size."""

    observations: int = 0
    hangs: asyncio.Event = field(default_factory=asyncio.Event)

    async def observe(self, target: Target[ToyParameters]) -> Present[ToyParameters, Any] | Absent:
        if target.spec.size == HUNG_SIZE:
            self.observations += 1
            await self.hangs.wait()
        return await super().observe(target)


async def test_server_that_hangs_leaves_half_of_the_workers_to_others() -> None:
    world = World(cloud := HungCloud())
    world.kube.store(CONFIGS, {"metadata": {"name": "hung"}, "spec": {"allowedNamespaces": {"selector": {}}}})
    hung = [f"hung-{number}" for number in range(50)]
    for name in hung:
        world.ask(name, size=HUNG_SIZE, providerConfigRef={"name": "hung"})
    world.ask("healthy")
    world.store.add_index(BY_CONFIG, config_of)
    world.feed()
    settings = controller_settings(world.store, timedelta(minutes=10))
    controller = Controller("toys", world.reconcile, settings=settings)
    working = asyncio.create_task(controller.run())
    try:
        for name in (*hung, "healthy"):
            controller.enqueue(Key("team", name))

        async def is_ready() -> bool:
            await asyncio.sleep(0)
            return world.reason("Ready", name="healthy") == "Available"

        await eventually(is_ready, "the resource on the other server is Ready", limit_s=10)

        assert cloud.observations <= settings.workers // 2
        assert [name for name in hung if world.reason(name=name)] == []
    finally:
        cloud.hangs.set()
        working.cancel()
        await asyncio.wait((working,))
