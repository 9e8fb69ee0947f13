"""How often the generic reconciler looks, and repeats what failed: failures alone are counted, and no count is kept."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runtime.errors import Transient
from runtime.results import Result
from tests.providers.test_slow import LateCloud, ready, world_of
from tests.providers.toy import ToyCloud
from tests.providers.world import World

pytestmark = pytest.mark.asyncio
UNREACHABLE = Transient("no answer")


async def _pass(world: World) -> timedelta:
    """Make one pass as its result asks for, the clock moved on; return how long that was."""
    result = await world.step()
    after = result.requeue_after if isinstance(result, Result) else timedelta(minutes=5)
    world.now += after or timedelta(minutes=10)
    return after or timedelta(minutes=10)


@pytest.mark.parametrize("slow", [0, 2])
async def test_an_outage_of_three_hours_is_looked_at_once_a_minute_and_ends(slow: int) -> None:
    cloud = ToyCloud(slow=slow)
    world = World(cloud)
    world.ask()
    await world.settle()
    until, passes = world.now + timedelta(hours=3), 0
    while world.now < until:
        cloud.faults = [("observe", UNREACHABLE, False)]
        await _pass(world)
        passes += 1
    assert world.reason() == "CloudUnreachable"
    assert 180 <= passes <= 200

    cloud.faults.clear()
    await world.settle()
    assert (world.reason("Ready"), world.reason()) == ("Available", "InSync")


async def test_a_change_of_three_hours_is_looked_at_at_its_own_pace() -> None:
    cloud = LateCloud(slow=1)
    world = world_of(cloud)
    await ready(world)
    (toy,) = cloud.toys.values()
    paces = []
    for _ in range(2000):
        toy.busy = 10
        paces.append(await _pass(world))
    assert set(paces) <= {timedelta(seconds=2), timedelta(seconds=4), timedelta(seconds=5)}
    assert paces[10:] == [timedelta(seconds=5)] * 1990
    toy.busy = 0
    await world.settle()
    assert world.reason() == "InSync"


async def test_single_failed_looks_with_health_between_them_are_never_told() -> None:
    cloud = ToyCloud()
    world = World(cloud)
    world.ask()
    await world.settle()
    writes = len(world.kube.writes)
    for _ in range(60):
        cloud.faults = [("observe", UNREACHABLE, False)]
        await _pass(world)
        await _pass(world)
        world.now += timedelta(hours=1)
    assert len(world.kube.writes) == writes


async def test_what_a_busy_cloud_said_is_not_counted_as_a_failure() -> None:
    cloud = LateCloud(slow=1)
    world = world_of(cloud)
    await ready(world)
    (toy,) = cloud.toys.values()
    for _ in range(20):
        toy.busy = 10
        await _pass(world)
    assert world.reason() == "CloudBusy"
    for expected in ("CloudBusy", "CloudBusy", "CloudUnreachable"):
        cloud.faults = [("observe", UNREACHABLE, False)]
        await _pass(world)
        assert world.reason() == expected
