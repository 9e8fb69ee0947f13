"""The finalizer of an orphan is removed although its account stays out of reach: its tags are tried, not waited for."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtime.errors import Transient
from tests.providers.toy import ToyCloud
from tests.providers.world import World, settled


async def deleted(policy: str) -> World:
    world = await settled(ToyCloud(), deletionPolicy=policy)
    world.delete()
    return world


async def passes(world: World, *, minutes: int) -> None:
    for _ in range(minutes):
        await world.step()
        if world.get() is None:
            return
        world.now += timedelta(minutes=1)


def unreachable(world: World) -> None:
    world.cloud.faults += [("observe", Transient("no answer"), False)] * 100


async def test_orphan_of_a_dead_server_loses_its_finalizer_after_minutes_and_not_before() -> None:
    world = await deleted("Orphan")
    unreachable(world)

    await passes(world, minutes=4)
    assert world.get() is not None

    await passes(world, minutes=4)
    assert world.get() is None
    assert len(world.cloud.toys) == 1
    assert not next(iter(world.cloud.toys.values())).released


async def test_orphan_in_another_account_loses_its_finalizer_likewise() -> None:
    world = await deleted("Orphan")
    world.cloud.account = "account-2"
    world.accounts.forget("default")
    obj = world.get()
    assert obj is not None

    await passes(world, minutes=8)

    assert world.get() is None
    assert "release" not in world.cloud.calls


@pytest.mark.parametrize("policy", ["Snapshot", "Delete"])
async def test_deletion_waits_for_an_unreachable_server(policy: str) -> None:
    world = await deleted(policy)
    unreachable(world)

    await passes(world, minutes=40)

    assert world.get() is not None
    assert len(world.cloud.toys) == 1
