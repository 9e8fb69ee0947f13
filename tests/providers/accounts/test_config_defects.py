"""ProviderConfigs: a defect of ours is reported on them, and renewed Secrets reach their users at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from providers.external.client import Clients
from providers.external.metering import Meter
from providers.external.provider import RecordedAccount
from runtime.conditions import find
from runtime.objects import SECRETS, Key, Object
from tests.providers.toy import CONFIGS, ToyCloud, dialled, provider_of
from tests.providers.world import World

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
