"""Passes that nobody waits for are known as such to whatever meters their requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from providers.external.client import Target
from providers.external.metering import is_routine
from providers.external.observation import Absent, Present
from tests.providers.toy import ToyCloud, ToyParameters
from tests.providers.world import World, settled


@dataclass
class WatchedCloud(ToyCloud):
    """Notes of each look whether it was routine."""

    are_routine: list[bool] = field(default_factory=list)

    async def observe(self, target: Target[ToyParameters]) -> Present[ToyParameters, Any] | Absent:
        self.are_routine.append(is_routine())
        return await super().observe(target)


async def _at_rest() -> tuple[World, WatchedCloud]:
    world = await settled(cloud := WatchedCloud())
    assert cloud.are_routine
    assert not any(cloud.are_routine)
    cloud.are_routine.clear()
    return world, cloud


async def test_resync_is_routine_and_an_edit_is_not() -> None:
    world, cloud = await _at_rest()

    await world.step()
    assert cloud.are_routine == [True]

    cloud.are_routine.clear()
    world.ask(size=20)
    await world.step()
    assert cloud.are_routine
    assert not any(cloud.are_routine)


async def test_reconcile_request_and_a_deletion_are_not_routine() -> None:
    world, cloud = await _at_rest()

    world.annotate(**{"reconcile-requested-at": "1"})
    await world.step()
    assert cloud.are_routine == [False]

    cloud.are_routine.clear()
    world.delete()
    await world.step()
    assert cloud.are_routine
    assert not any(cloud.are_routine)


async def test_routine_ends_where_a_pass_changes_something() -> None:
    world, cloud = await _at_rest()
    next(iter(cloud.toys.values())).size = 5
    world.now += timedelta(minutes=10)

    await world.step()

    assert cloud.are_routine[0]
    assert not any(cloud.are_routine[1:])
    assert len(cloud.are_routine) > 1
    assert "update ['size']" in cloud.calls
