"""A second rotation takes no login whose former password was promised to work for a while more."""

from __future__ import annotations

from datetime import timedelta

from tests.providers.toy import ToyCloud
from tests.providers.world import World

GRACE = timedelta(hours=1)


async def test_second_token_waits_for_the_grace_of_the_first() -> None:
    world = World(ToyCloud())
    world.ask()
    await world.settle()
    toy = next(iter(world.cloud.toys.values()))
    (first,) = toy.passwords.items()
    world.ask(passwordRotation={"token": "one"})
    await world.step()
    await world.step()
    (second,) = [item for item in toy.passwords.items() if item != first]
    retire_at = (world.get() or {})["status"]["rotation"]["retireAt"]

    world.ask(passwordRotation={"token": "two"})
    for _ in range(3):
        await world.step()
        assert dict(toy.passwords) == dict([first, second])
        world.now += timedelta(minutes=10)

    assert world.reason("Ready") == "Available"
    assert world.reason("Synced") == "WaitingForWindow"
    assert world.reason("Stalled") == ""
    message = world.condition()["message"]
    assert retire_at in message
    assert first[0] in message

    world.now += GRACE
    for _ in range(3):
        await world.step()
    assert toy.passwords[second[0]] == second[1]
    assert toy.passwords[first[0]] != first[1]
    assert world.reason("Synced") == "InSync"
    assert (world.get() or {})["status"]["rotation"]["token"] == "two"


async def test_forced_rotation_waits_for_no_grace_and_leaves_the_former_login_a_minute() -> None:
    world = World(ToyCloud())
    world.ask()
    await world.settle()
    toy = next(iter(world.cloud.toys.values()))
    (first,) = toy.passwords.items()
    world.ask(passwordRotation={"token": "one"})
    await world.step()
    await world.step()
    (second,) = [item for item in toy.passwords.items() if item != first]

    world.ask(passwordRotation={"token": "two", "force": True})
    await world.step()
    await world.step()
    assert toy.passwords[first[0]] != first[1], "the login in its grace has the new password at once"
    assert toy.passwords[second[0]] == second[1]
    assert world.reason("Synced") == "InSync"
    rotation = (world.get() or {})["status"]["rotation"]
    assert rotation["token"] == "two"
    assert rotation["retiring"] == second[0]

    world.now += timedelta(seconds=61)
    await world.step()
    assert second[0] not in toy.passwords


async def test_rotation_that_waits_goes_on_once_it_is_forced() -> None:
    world = World(ToyCloud())
    world.ask()
    await world.settle()
    toy = next(iter(world.cloud.toys.values()))
    (first,) = toy.passwords.items()
    for rotation in ({"token": "one"}, {"token": "two"}):
        world.ask(passwordRotation=rotation)
        await world.step()
        await world.step()
    assert toy.passwords[first[0]] == first[1]
    assert world.reason("Synced") == "WaitingForWindow"

    world.ask(passwordRotation={"token": "two", "force": True})
    await world.step()
    await world.step()
    assert toy.passwords[first[0]] != first[1]
    assert world.reason("Synced") == "InSync"
