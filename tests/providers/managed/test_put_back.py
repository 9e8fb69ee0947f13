"""A published login that is refused is put back; of a Secret that a tenant wrote into, what Fairlead knows."""

from __future__ import annotations

import base64
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from runtime.errors import Terminal
from runtime.objects import SECRETS, Key, Object
from tests.providers.toy import TOYS, Toy, ToyCloud, logins_of, provider_of
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


async def ready_world(**spec: Any) -> tuple[World, Toy]:
    world = await settled(ToyCloud(), size=1, **spec)
    return world, next(iter(world.cloud.toys.values()))


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


_SECRET = SECRETS, Key("team", "db-credentials")
THEIRS = "Written1by2a3tenant4of5its6own"


async def _at_rest() -> World:
    return await settled(ToyCloud())


def _kept(world: World) -> dict[str, str]:
    data = world.kube.objects[_SECRET]["data"]
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def _tamper(world: World, **texts: str | None) -> None:
    secret: Object = deepcopy(world.kube.objects[_SECRET])
    for key, text in texts.items():
        secret["data"].pop(key, None)
        if text is not None:
            secret["data"][key] = base64.b64encode(text.encode()).decode()
    world.kube.store(SECRETS, secret)


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param({"username": "another_b"}, id="another's login"),
        pytest.param({"username": None}, id="no login"),
        pytest.param({"pending": THEIRS}, id="a pending password"),
        pytest.param({"pending": "pässwörter"}, id="a pending password that no verifier takes"),
        pytest.param({"username": "another_b.login", "pending": THEIRS}, id="an attribute behind a login"),
    ],
)
async def test_secret_that_a_tenant_wrote_is_put_back_without_a_call(texts: dict[str, str | None]) -> None:
    world = await _at_rest()
    before, calls = _kept(world), list(world.cloud.calls)

    _tamper(world, **texts)
    await world.settle()

    assert _kept(world) == before
    assert world.cloud.calls == calls
    assert (world.reason(), world.reason("Ready")) == ("InSync", "Available")


async def test_password_that_a_tenant_overwrote_is_reported_and_reset_by_the_token() -> None:
    world = await _at_rest()
    _tamper(world, current=THEIRS)

    await world.step()

    conditions = str(world.status["conditions"])
    assert world.reason() == "PasswordUnknown"
    assert "holds what Fairlead did not write (current)" in conditions
    assert THEIRS not in str(world.get())
    world.ask(passwordRotation={"token": "again"})
    await world.settle()
    assert world.reason() == "InSync"
    assert _kept(world)["current"] != THEIRS


CREDENTIALS = Key("team", "db-credentials")


async def _claimed() -> World:
    """Return a world with one database of a claim, in sync."""
    world = World(ToyCloud())
    world.ask()
    world.compose()
    await world.settle()
    assert world.reason() == "InSync"
    return world


def _made_again(world: World, username: str, password: str) -> None:
    """Leave of the resource what names its database, and of its credentials what the connection Secret has."""
    del world.kube.objects[SECRETS, CREDENTIALS]
    login = {"username": username, "password": password}
    data = {key: base64.b64encode(text.encode()).decode() for key, text in login.items()}
    world.kube.store(SECRETS, {"metadata": {"name": "shop-connection", "namespace": "team"}, "data": data})
    obj: Object = world.get() or {}
    incarnation = obj["status"]["incarnation"]
    obj["metadata"]["annotations"]["fairlead.dev/incarnation"] = incarnation
    world.kube.store(TOYS, {**obj, "status": {}})


@pytest.mark.parametrize("other", ["a login of another's", "a password that is refused"])
async def test_what_no_login_of_the_resource_proves_is_not_taken(other: str) -> None:
    world = await _claimed()
    (toy,) = world.cloud.toys.values()
    ((username, password),) = toy.passwords.items()
    is_foreign = other == "a login of another's"
    if is_foreign:
        toy.passwords["somebody"] = password
    _made_again(world, "somebody" if is_foreign else username, password if is_foreign else "guessed")

    await world.settle()

    assert world.reason() == "PasswordUnknown"
    assert toy.passwords[username] == password
