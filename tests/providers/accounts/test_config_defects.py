"""A defect of ours that keeps a ProviderConfig from being connected is reported on it and on what uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from providers.accounts.reconciler import ConfigReconciler, Dependencies
from providers.external.metering import Meter
from providers.external.provider import RecordedAccount
from providers.settings import Settings
from runtime import clock
from runtime.conditions import find
from runtime.objects import Key, Object
from tests.providers.toy import CONFIGS, ToyCloud, ToyConfig, provider_of
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

    @asynccontextmanager
    async def connect(
        self, _config: ToyConfig, _secrets: Mapping[str, Mapping[str, str]], _recorded: RecordedAccount, _meter: Meter
    ) -> AsyncIterator[ToyCloud]:
        if self.connecting is not None:
            raise self.connecting
        yield self.cloud

    async def probe(self, _connected: Any) -> None:
        if self.probing is not None:
            raise self.probing


def _reconciler(world: World) -> ConfigReconciler:
    port: Any = world.kube
    settings = Settings(
        "home", "process-1", "fairlead-toy", "fairlead.dev/provider-toy", b"key",
        now=lambda: world.now, monotonic=clock.monotonic,
    )  # fmt: skip
    enqueued: list[str] = []
    dependencies = Dependencies((), world.events, enqueued.append)
    return ConfigReconciler(world.provider, port, world.accounts, settings, dependencies)


def _conditions(obj: Object) -> dict[str, tuple[str, str]]:
    conditions = (find(obj, type_) for type_ in ("Ready", "Synced", "Reconciling", "Stalled"))
    return {shown["type"]: (shown["status"], shown["reason"]) for shown in conditions if shown is not None}


@pytest.mark.parametrize("phase", ["connecting", "probing"])
async def test_defect_of_a_config_is_a_condition_on_it_logged_once_until_it_is_over(phase: str) -> None:
    cloud, defect = ToyCloud(), KeyError("a secret value")
    broken = Broken(cloud, defect if phase == "connecting" else None, defect if phase == "probing" else None)
    world = World(cloud, provider=replace(provider_of(cloud), connect=broken.connect, probe=broken.probe))
    reconcile = _reconciler(world)
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
    world = World(cloud, provider=replace(provider_of(cloud), connect=broken.connect))
    world.ask()
    for _ in range(5):
        await world.step()
    assert (world.reason("Ready"), world.reason("Reconciling")) == ("InternalError", "InternalError")
    assert world.condition("Ready")["message"].startswith("ProviderConfig default: a defect of Fairlead")
    assert cloud.toys == {}

    broken.connecting = None
    await world.settle()
    assert world.reason("Ready") == "Available"
