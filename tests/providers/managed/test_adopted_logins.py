"""An adopted database without a login of ours gets one at once; one whose password is lost waits for a person."""

from __future__ import annotations

import pytest

from tests.providers.toy import Toy, ToyCloud
from tests.providers.world import World


async def adopted(passwords: dict[str, str]) -> World:
    world = World(cloud := ToyCloud())
    world.configure(allowAdoption=True)
    cloud.toys["legacy"] = Toy("incarnation-9", None, 10, passwords=dict(passwords))
    world.ask(size=10)
    world.annotate(**{"external-name": "legacy"})
    await world.step()
    conditions = world.status["conditions"]
    messages = [condition["message"] for condition in conditions if condition["reason"] == "NotOwned"]
    assert "fairlead.dev/adopt=incarnation-9" in messages[0]
    world.annotate(adopt="incarnation-9")
    await world.passes(5)
    return world


@pytest.mark.parametrize("passwords", [{}, {"legacy_app": "theirs"}])
async def test_adoption_creates_a_login_where_none_of_ours_is(passwords: dict[str, str]) -> None:
    world = await adopted(passwords)

    assert world.reason("Ready") == "Available"
    assert world.reason("Synced") == "InSync"
    toy = world.cloud.toys["legacy"]
    assert {name: toy.passwords[name] for name in passwords} == passwords
    assert len(toy.passwords) == len(passwords) + 1


async def test_adoption_leaves_a_login_of_ours_whose_password_is_lost() -> None:
    first = await adopted({})
    (login,) = first.cloud.toys["legacy"].passwords
    former = {login: "somebody-uses-it"}

    world = await adopted(former)

    assert world.reason("Synced") == "PasswordUnknown"
    message = world.condition("Synced")["message"]
    assert "does not know the password of the login" in message
    assert "passwordSecretRef" in message
    assert "passwordRotation.token" in message
    assert world.cloud.toys["legacy"].passwords == former
