"""A resource that was made again loses its credentials Secret before its status records anything of it."""

from __future__ import annotations

import base64

import pytest

from runtime.objects import SECRETS, Key, Object
from tests.providers.toy import TOYS, ToyCloud
from tests.providers.world import World

CREDENTIALS = Key("team", "db-credentials")


async def _ready() -> World:
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


async def test_password_in_the_connection_secret_is_taken_back_by_a_login() -> None:
    world = await _ready()
    (toy,) = world.cloud.toys.values()
    ((username, password),) = toy.passwords.items()
    _made_again(world, username, password)

    await world.settle()

    assert (world.reason("Ready"), world.reason()) == ("Available", "InSync")
    assert dict(toy.passwords) == {username: password}


@pytest.mark.parametrize("other", ["a login of another's", "a password that is refused"])
async def test_what_no_login_of_the_resource_proves_is_not_taken(other: str) -> None:
    world = await _ready()
    (toy,) = world.cloud.toys.values()
    ((username, password),) = toy.passwords.items()
    is_foreign = other == "a login of another's"
    if is_foreign:
        toy.passwords["somebody"] = password
    _made_again(world, "somebody" if is_foreign else username, password if is_foreign else "guessed")

    await world.settle()

    assert world.reason() == "PasswordUnknown"
    assert toy.passwords[username] == password
