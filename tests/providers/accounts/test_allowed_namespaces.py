"""A ProviderConfig that a namespace may not use: neither dialled nor described, as if there were none."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from providers.external.metering import Meter
from providers.external.provider import Provider, RecordedAccount
from runtime.errors import Terminal
from runtime.objects import Key
from tests.providers.toy import CONFIGS, TOYS, ToyCloud, dialled, provider_of
from tests.providers.world import World, settled


def _counting(cloud: ToyCloud, dials: list[str]) -> Provider[Any]:
    async def dial(_recorded: RecordedAccount, _meter: Meter) -> ToyCloud:
        dials.append("dialled")
        if cloud.calls == []:
            raise Terminal("CredentialsInvalid", "cannot log in to 10.0.0.7:5432 as hidden_admin")
        return cloud

    return dialled(provider_of(cloud), dial)


def _allow(world: World, *names: str) -> None:
    world.kube.store(CONFIGS, {
        "metadata": {
            "name": "default", "generation": 2,
            "annotations": {"fairlead.dev/paused": "true", "fairlead.dev/paused-reason": "a secret reason"},
        },
        "spec": {"allowedNamespaces": {"names": list(names)}},
    })  # fmt: skip


async def test_provider_config_that_is_not_allowed_is_neither_connected_nor_described() -> None:
    cloud, dials = ToyCloud(), list[str]()
    world = World(cloud, provider=_counting(cloud, dials))
    _allow(world, "others")
    world.ask()

    await world.passes(4, timedelta(minutes=1))

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
    await world.passes(4, timedelta(minutes=1))

    assert (world.reason(), world.reason("Ready")) == ("NotAllowed", "Available")
    assert (toy.size, len(cloud.calls)) == (1, before)


@pytest.mark.parametrize(("policy", "is_gone"), [("Orphan", True), ("Delete", False)])
async def test_namespace_that_lost_its_permission_may_orphan_its_database_and_destroys_nothing(
    policy: str, *, is_gone: bool
) -> None:
    world = await settled(cloud := ToyCloud(), deletionPolicy=policy)
    _allow(world, "others")

    world.delete()
    await world.passes(4, timedelta(minutes=1))

    assert (world.kube.objects.get((TOYS, Key("team", "db"))) is None) is is_gone
    assert is_gone or world.reason() == "NotAllowed"
    assert len(cloud.toys) == 1
