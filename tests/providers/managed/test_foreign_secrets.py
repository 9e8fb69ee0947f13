"""Credentials Secrets that their tenant wrote into, or that are lost: what Fairlead knows is put back, or proven."""

from __future__ import annotations

import base64
from copy import deepcopy

import pytest

from runtime.objects import SECRETS, Key, Object
from tests.providers.toy import TOYS, ToyCloud
from tests.providers.world import World, settled

_SECRET = SECRETS, Key("team", "db-credentials")
THEIRS = "Written1by2a3tenant4of5its6own"


async def _ready() -> World:
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
    world = await _ready()
    before, calls = _kept(world), list(world.cloud.calls)

    _tamper(world, **texts)
    await world.settle()

    assert _kept(world) == before
    assert world.cloud.calls == calls
    assert (world.reason(), world.reason("Ready")) == ("InSync", "Available")


async def test_password_that_a_tenant_overwrote_is_reported_and_reset_by_the_token() -> None:
    world = await _ready()
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


@pytest.mark.parametrize("wiped", [("status",), ("annotations",), ("status", "annotations")], ids="-and-".join)
async def test_password_outlives_the_loss_of_annotations_and_status(wiped: tuple[str, ...]) -> None:
    world = await _ready()
    before, calls = _kept(world), list(world.cloud.calls)

    obj = deepcopy(world.kube.objects[TOYS, Key("team", "db")])
    if "status" in wiped:
        del obj["status"]
    if "annotations" in wiped:
        obj["metadata"]["annotations"] = {}
    world.kube.store(TOYS, obj)
    await world.settle()

    assert _kept(world) == before
    assert world.cloud.calls == calls
    assert world.reason() == "InSync"


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


async def test_password_in_the_connection_secret_is_taken_back_by_a_login() -> None:
    world = await _claimed()
    (toy,) = world.cloud.toys.values()
    ((username, password),) = toy.passwords.items()
    _made_again(world, username, password)

    await world.settle()

    assert (world.reason("Ready"), world.reason()) == ("Available", "InSync")
    assert dict(toy.passwords) == {username: password}


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
