"""A refused change leaves the password's own step to be made: no application is locked out by a change beside it."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.errors import Blocked, Failure, Terminal, Transient
from tests.providers.toy import Toy, ToyCloud
from tests.providers.world import World, settled

REFUSALS: dict[str, Failure] = {
    "a right is missing": Terminal("AccessDenied", "no right"),
    "a value is refused, and not sent again": Terminal("InvalidValue", "no such value"),
    "something is in the way": Blocked("CloudBusy", "in use"),
    "a lock is held": Transient("a lock is held"),
}


async def ready_world(**spec: Any) -> tuple[World, Toy]:
    world = await settled(ToyCloud(), size=1, **spec)
    return world, next(iter(world.cloud.toys.values()))


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
async def test_password_changed_by_hand_is_put_back_beside_a_refused_change(refusal: Failure) -> None:
    world, toy = await ready_world()
    published = dict(toy.passwords)
    world.ask(size=2)
    world.cloud.faults += [("update", refusal, False)] * 4
    await world.step()
    toy.passwords = dict.fromkeys(published, "changed-by-hand")

    await world.step()

    assert toy.passwords == published
    assert toy.size == 1
    assert world.reason("Ready") == "Available"
    assert world.reason("Synced") == getattr(refusal, "reason", "CloudUnreachable")


async def test_rotation_is_carried_out_beside_a_refused_change() -> None:
    world, toy = await ready_world()
    before = set(toy.passwords)
    world.ask(size=2, passwordRotation={"token": "another"})
    world.cloud.faults += [("update", Terminal("AccessDenied", "no right"), False)] * 3

    await world.step()

    assert len(set(toy.passwords) - before) == 1
    assert toy.size == 1


async def test_published_login_that_is_refused_and_cannot_be_put_back_is_not_ready() -> None:
    world, toy = await ready_world()
    toy.passwords = dict.fromkeys(toy.passwords, "changed-by-hand")
    world.cloud.faults += [("set_password", Terminal("AccessDenied", "no right"), False)]

    await world.step()

    assert world.reason("Ready") == "AccessDenied"
    (is_ready,) = [condition["status"] for condition in world.status["conditions"] if condition["type"] == "Ready"]
    assert is_ready == "False"

    await world.settle()

    assert world.reason("Ready") == "Available"
