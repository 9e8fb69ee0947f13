"""ProviderConfigs with a defect of ours, with renewed Secrets, or whose account hangs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from providers.accounts.limits import BY_CONFIG, config_of
from providers.external.client import Clients, Target
from providers.external.metering import Meter
from providers.external.provider import RecordedAccount
from providers.process import controller_settings
from runtime.conditions import find
from runtime.controller import Controller
from runtime.errors import Transient
from runtime.objects import SECRETS, Key, Object
from tests.providers.toy import CONFIGS, ToyCloud, ToyParameters, dialled, provider_of
from tests.providers.world import World
from tests.support.waiting import eventually

CONFIG = Key("", "default")


@pytest.fixture(autouse=True)
def no_pause_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("providers.accounts.connections._AFTER_FAILURE", timedelta(0))


@dataclass
class Broken:
    """A cloud whose `connect` or `probe` has a defect."""

    cloud: ToyCloud
    connecting: Exception | None = None
    probing: Exception | None = None

    async def dial(self, _recorded: RecordedAccount, _meter: Meter) -> ToyCloud:
        if self.connecting is not None:
            raise self.connecting
        return self.cloud

    async def probe(self, _connected: Any) -> None:
        if self.probing is not None:
            raise self.probing


def _conditions(obj: Object) -> dict[str, tuple[str, str]]:
    conditions = (find(obj, type_) for type_ in ("Ready", "Synced", "Reconciling", "Stalled"))
    return {shown["type"]: (shown["status"], shown["reason"]) for shown in conditions if shown is not None}


@pytest.mark.parametrize("phase", ["connecting", "probing"])
async def test_defect_of_a_config_is_a_condition_on_it_logged_once_until_it_is_over(phase: str) -> None:
    cloud, defect = ToyCloud(), KeyError("a secret value")
    broken = Broken(cloud, defect if phase == "connecting" else None, defect if phase == "probing" else None)
    world = World(cloud, provider=replace(dialled(provider_of(cloud), broken.dial), probe=broken.probe))
    reconcile = world.config_reconciler(list[str]().append)
    with capture_logs() as logs:
        for _ in range(3):
            world.feed()
            await reconcile(CONFIG)

    config = world.kube.objects[CONFIGS, CONFIG]
    assert _conditions(config) == {
        "Ready": ("False", "InternalError"),
        "Synced": ("False", "InternalError"),
        "Reconciling": ("True", "InternalError"),
    }
    message = (find(config, "Ready") or {})["message"]
    assert "ProviderConfig default" in message
    assert "KeyError" in message
    assert "secret value" not in message
    assert [line["config"] for line in logs if line["event"].startswith("InternalError")] == ["default"]

    broken.connecting = broken.probing = None
    world.feed()
    await reconcile(CONFIG)
    assert _conditions(world.kube.objects[CONFIGS, CONFIG]) == {
        "Ready": ("True", "Connected"),
        "Synced": ("True", "InSync"),
    }


async def test_defect_of_a_config_is_the_cause_on_its_resources_until_it_is_over() -> None:
    cloud = ToyCloud()
    broken = Broken(cloud, connecting=KeyError("a secret value"))
    world = World(cloud, provider=dialled(provider_of(cloud), broken.dial))
    world.ask()
    await world.passes(5)
    assert (world.reason("Ready"), world.reason("Reconciling")) == ("InternalError", "InternalError")
    assert world.condition("Ready")["message"].startswith("ProviderConfig default: a defect of Fairlead")
    assert cloud.toys == {}

    broken.connecting = None
    await world.settle()
    assert world.reason("Ready") == "Available"


def fresh_clients(cloud: ToyCloud) -> Clients[Any, Any]:
    toys = replace(cloud)
    return Clients(toys, toys, toys, toys, toys)


async def test_users_are_enqueued_by_a_renewed_connection_and_not_otherwise() -> None:
    cloud = ToyCloud()
    # Each connection has a cloud of its own, as those of real providers have.
    provider = replace(provider_of(cloud, clients=fresh_clients), secrets=lambda _config: ("ca",))
    world = World(cloud, provider=provider)
    enqueued: list[str] = []
    reconcile = world.config_reconciler(enqueued.append)

    def write(text: str) -> None:
        secret = {"metadata": {"name": "ca", "namespace": "fairlead-toy"}, "data": {"ca.crt": text}}
        world.kube.store(SECRETS, secret)
        world.feed()

    async def passed() -> list[str]:
        enqueued.clear()
        await reconcile(Key("", "default"))
        return list(enqueued)

    write("b2xk")
    assert await passed() == ["default"]
    assert await passed() == []
    write("bmV3")
    assert await passed() == ["default"]
    assert await passed() == []


async def test_connect_does_not_wait_for_the_second_try_of_another_worker() -> None:
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

    async def looked(self, target: Target[ToyParameters]) -> None:
        if target.spec.size == HUNG_SIZE:
            self.observations += 1
            await self.hangs.wait()


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
