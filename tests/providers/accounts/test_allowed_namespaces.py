"""A ProviderConfig that a namespace may not use: neither dialled nor described, as if there were none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

from providers.external.metering import Meter
from providers.external.provider import Provider, RecordedAccount
from runtime.errors import Terminal
from runtime.objects import Key
from tests.providers.toy import CONFIGS, TOYS, ToyCloud, provider_of
from tests.providers.world import World, settled


def _counting(cloud: ToyCloud, dials: list[str]) -> Provider[Any]:
    @asynccontextmanager
    async def connect(
        _config: Any, _secrets: Mapping[str, Mapping[str, str]], _recorded: RecordedAccount, _meter: Meter
    ) -> AsyncIterator[ToyCloud]:
        dials.append("dialled")
        if cloud.calls == []:
            raise Terminal("CredentialsInvalid", "cannot log in to 10.0.0.7:5432 as hidden_admin")
        yield cloud

    return replace(provider_of(cloud), connect=connect)


def _allow(world: World, *names: str) -> None:
    world.kube.store(CONFIGS, {
        "metadata": {
            "name": "default", "generation": 2,
            "annotations": {"fairlead.dev/paused": "true", "fairlead.dev/paused-reason": "a secret reason"},
        },
        "spec": {"allowedNamespaces": {"names": list(names)}},
    })  # fmt: skip


async def _passes(world: World) -> None:
    await world.passes(4, timedelta(minutes=1))


async def test_provider_config_that_is_not_allowed_is_neither_connected_nor_described() -> None:
    cloud, dials = ToyCloud(), list[str]()
    world = World(cloud, provider=_counting(cloud, dials))
    _allow(world, "others")
    world.ask()

    await _passes(world)

    assert dials == []
    assert world.reason("Ready") == "NotAllowed"
    status = str(world.status)
    assert "there is no ProviderConfig default that this namespace may use" in status
    assert "hidden_admin" not in status
    assert "secret reason" not in status


async def test_namespace_that_lost_its_permission_keeps_its_database_without_connections() -> None:
    world = await settled(cloud := ToyCloud(), size=1)
    (toy,) = cloud.toys.values()
    before = len(cloud.calls)

    _allow(world, "others")
    world.ask(size=2)
    await _passes(world)

    assert (world.reason(), world.reason("Ready")) == ("NotAllowed", "Available")
    assert (toy.size, len(cloud.calls)) == (1, before)


async def test_namespace_that_lost_its_permission_may_orphan_its_database() -> None:
    world = await settled(cloud := ToyCloud(), deletionPolicy="Orphan")
    _allow(world, "others")

    world.delete()
    await world.settle()

    assert world.kube.objects.get((TOYS, Key("team", "db"))) is None
    assert len(cloud.toys) == 1


async def test_namespace_that_lost_its_permission_destroys_nothing() -> None:
    world = await settled(cloud := ToyCloud(), deletionPolicy="Delete")
    _allow(world, "others")

    world.delete()
    await _passes(world)

    assert world.reason() == "NotAllowed"
    assert len(cloud.toys) == 1
