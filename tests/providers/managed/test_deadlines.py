"""How long each state of a cloud may last before a person is asked to look; whatever changes begins it again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from providers.external.client import Target
from providers.external.observation import Absent, Phase, Present
from tests.providers.managed.test_asynchronous import LateCloud, ready, world_of
from tests.providers.toy import ToyParameters
from tests.providers.world import World

pytestmark = pytest.mark.asyncio
DEADLINES = {"making": timedelta(hours=1), "copying": timedelta(hours=24), "fine": timedelta(minutes=10)}


@dataclass
class Stateful(LateCloud):
    """A toy cloud whose databases are in a state of their own for as long as a test likes."""

    state: str = "fine"
    restart: str = ""
    refused: tuple[str, str] | None = None

    def refusal(self, spec: ToyParameters) -> tuple[str, str] | None:
        return self.refused or super().refusal(spec)

    async def observe(self, target: Target[ToyParameters]) -> Present[ToyParameters, Any] | Absent:
        seen = await super().observe(target)
        if isinstance(seen, Absent):
            return seen
        phase = Phase.READY if self.state == "fine" else Phase.BUSY
        usable = self.state != "making"
        observed = replace(seen.observed, state=self.state, phase=phase, usable=usable, deadline=DEADLINES[self.state])
        return Present(replace(observed, restart=self.restart))


async def _last(world: World, time: timedelta) -> None:
    """Let time go by in steps of a minute, or in a hundred of them where it is more than that."""
    until, step = world.now + time, max(timedelta(minutes=1), time / 100)
    while world.now < until:
        await world.step()
        world.now += min(step, until - world.now)
    await world.step()


@pytest.mark.parametrize("state", ["making", "copying"])
async def test_create_is_stalled_after_the_deadline_of_its_state_and_not_before(state: str) -> None:
    cloud = Stateful(state=state)
    world = world_of(cloud)
    world.ask()
    await world.step()
    await _last(world, DEADLINES[state] - timedelta(minutes=1))
    assert not world.reason("Stalled")
    await _last(world, timedelta(minutes=2))
    assert world.reason("Stalled")
    assert world.reason() == "Creating"
    cloud.state = "fine"
    await world.settle(most=40)
    assert (world.reason("Ready"), world.reason("Stalled")) == ("Available", "")


async def test_progress_is_another_state() -> None:
    cloud = Stateful(state="making")
    world = world_of(cloud)
    world.ask()
    await world.step()
    await _last(world, timedelta(minutes=50))
    cloud.state = "copying"
    await _last(world, timedelta(minutes=50))
    assert not world.reason("Stalled")
    cloud.state = "making"
    await _last(world, timedelta(minutes=59))
    assert not world.reason("Stalled")
    await _last(world, timedelta(minutes=3))
    assert world.reason("Stalled")
    # What moves on is stalled no more.
    cloud.state = "copying"
    await _last(world, timedelta(minutes=1))
    assert not world.reason("Stalled")


async def test_deadline_begins_after_what_was_waited_for_before() -> None:
    world = await ready(cloud := Stateful())
    world.annotate(paused="true")
    await _last(world, timedelta(hours=3))
    world.ask(size=99)
    world.annotate(paused="false")
    cloud.state = "copying"
    await _last(world, timedelta(hours=23))
    assert (world.reason(), world.reason("Stalled"), world.reason("Ready")) == ("CloudBusy", "", "Available")
    await _last(world, timedelta(hours=2))
    assert world.reason("Stalled")


async def test_work_of_the_cloud_without_a_waiting_change_is_reported_after_the_deadline_of_its_state() -> None:
    world = await ready(cloud := Stateful())
    cloud.state = "copying"
    await _last(world, timedelta(hours=23))
    assert (world.reason(), world.reason("Reconciling"), world.reason("Ready")) == ("InSync", "", "Available")
    await _last(world, timedelta(hours=2))
    assert (world.reason(), world.reason("Reconciling"), world.reason("Ready")) == (
        "CloudBusy", "CloudBusy", "Available",
    )  # fmt: skip
    cloud.state = "fine"
    await world.settle()
    assert world.reason() == "InSync"


@pytest.mark.parametrize("waiting", ["an edit", "a rotation", "a change that waits", "a restart", "a limit"])
async def test_work_of_the_cloud_is_reported_where_something_waits_for_its_end(waiting: str) -> None:
    world = await ready(cloud := Stateful())
    cloud.state = "copying"
    if waiting == "a rotation":
        world.ask(passwordRotation={"token": "2"})
    elif waiting == "an edit":
        world.ask(size=99)
    elif waiting == "a restart":
        cloud.restart = "a static parameter waits"
    elif waiting == "a limit":
        cloud.refused = ("LimitReached", "too much")
    else:
        next(iter(cloud.toys.values())).size = 99
    await _last(world, timedelta(minutes=5))
    assert (world.reason(), world.reason("Ready")) == ("CloudBusy", "Available")


async def test_final_backup_may_take_a_day() -> None:
    world = await ready(cloud := Stateful(), deletionPolicy="Snapshot")
    world.delete()
    await _last(world, timedelta(hours=20))
    assert (world.reason(), world.reason("Stalled"), cloud.toys) == ("Deleting", "", {})
    await _last(world, timedelta(hours=5))
    assert world.reason("Stalled")
    cloud.backups = ("final-1",)
    await _last(world, timedelta(minutes=2))
    assert world.get() is None
