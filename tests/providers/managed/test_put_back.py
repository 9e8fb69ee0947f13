"""A published login that is refused is put back, over several passes and beside a change that is refused too."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from runtime.errors import Blocked, Failure, Terminal, Transient
from runtime.objects import SECRETS, Key
from runtime.results import Result
from tests.providers.toy import Toy, ToyCloud, logins_of, provider_of
from tests.providers.world import World, settled


def _world(cloud: ToyCloud, process: str = "process-1") -> World:
    """Return a provider of a server that shows no passwords: logins are tried now and then."""
    rules = replace(
        logins_of(cloud),
        versions=lambda observed: dict.fromkeys((*cloud.toys[observed.name].passwords, "of nobody"), "1"),
        shows_passwords=False,
    )
    return World(cloud, process=process, provider=provider_of(cloud, logins=rules))


async def _settled(cloud: ToyCloud) -> tuple[World, Toy]:
    """Return a world at rest and its database."""
    world = _world(cloud)
    world.ask()
    await world.settle()
    (toy,) = cloud.toys.values()
    return world, toy


async def test_login_that_was_changed_by_hand_is_put_back_when_it_is_tried_next() -> None:
    """A pass looks a second time before it acts: what the first look learnt must not be lost."""
    cloud = ToyCloud()
    world, toy = await _settled(cloud)
    published = dict(toy.passwords)
    (name,) = published

    await world.step()
    toy.passwords[name] = "by-hand"
    await world.step_after(timedelta(minutes=6))

    assert toy.passwords == published


@pytest.mark.parametrize("failure", [Blocked("CloudBusy", "not now"), Transient("no answer")])
async def test_login_is_put_back_although_that_failed_first(failure: Failure) -> None:
    cloud = ToyCloud()
    world, toy = await _settled(cloud)
    published = dict(toy.passwords)

    (name,) = published
    toy.passwords[name] = "by-hand"
    cloud.faults.append(("set_password", failure, False))
    world.annotate(**{"reconcile-requested-at": "now"})
    await world.passes(4, timedelta(seconds=30))
    assert toy.passwords == published
    assert (world.reason("Ready"), world.reason()) == ("Available", "InSync")


async def test_login_that_was_changed_is_put_back_at_once_after_its_secret_was_lost() -> None:
    """Nobody knows whether a password that comes back from the connection Secret still counts."""
    cloud = ToyCloud()
    world = _world(cloud)
    world.ask()
    world.compose()
    await world.settle()
    (toy,) = cloud.toys.values()
    published = dict(toy.passwords)
    ((name, password),) = published.items()
    data = {"password": base64.b64encode(password.encode()).decode()}
    world.kube.store(SECRETS, {"metadata": {"name": "shop-connection", "namespace": "team"}, "data": data})

    toy.passwords[name] = "by-hand"
    del world.kube.objects[SECRETS, Key("team", "db-credentials")]
    result = await world.step()
    assert isinstance(result, Result)
    assert result.requeue_after == timedelta(seconds=2)
    assert (SECRETS, Key("team", "db-credentials")) in world.kube.objects
    await world.step()
    assert toy.passwords == published


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
