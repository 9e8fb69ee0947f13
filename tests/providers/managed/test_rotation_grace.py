"""A second rotation takes no login whose former password was promised to work for a while more."""

from __future__ import annotations

import base64
from datetime import timedelta

from runtime.objects import SECRETS
from tests.providers.toy import ToyCloud
from tests.providers.world import World

GRACE = timedelta(hours=1)


async def _rotated(*, composed: bool = False) -> tuple[World, tuple[str, str], tuple[str, str]]:
    """Return a world whose database was rotated once; its former login and the present one, with their passwords."""
    world = World(ToyCloud())
    world.ask()
    if composed:
        world.compose()
    await world.settle()
    (former,) = world.toy.passwords.items()
    world.ask(passwordRotation={"token": "one"})
    await world.passes(2)
    (present,) = world.toy.passwords.items() - {former}
    return world, former, present


async def test_second_token_waits_for_the_grace_of_the_first() -> None:
    world, first, second = await _rotated()
    toy = world.toy
    retire_at = world.status["rotation"]["retireAt"]

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
    await world.passes(3)
    assert toy.passwords[second[0]] == second[1]
    assert toy.passwords[first[0]] != first[1]
    assert world.reason("Synced") == "InSync"
    assert world.status["rotation"]["token"] == "two"


def _published_to_applications(world: World, username: str, host: str = "toy.example.org") -> None:
    """Write the claim's connection Secret as the composer does."""
    data = {key: base64.b64encode(text.encode()).decode() for key, text in (("username", username), ("host", host))}
    world.kube.store(SECRETS, {"metadata": {"name": "shop-connection", "namespace": "team"}, "data": data})


async def test_second_rotation_takes_no_login_that_applications_still_read() -> None:
    world, (former, _), (present, _) = await _rotated(composed=True)
    toy = world.toy
    passwords = dict(toy.passwords)
    _published_to_applications(world, former)

    world.now += timedelta(hours=5)
    world.ask(passwordRotation={"token": "two"})
    world.compose()
    await world.step()
    assert dict(toy.passwords) == passwords
    _published_to_applications(world, present)
    await world.passes(3)
    assert toy.passwords[present] == passwords[present]
    assert toy.passwords[former] != passwords[former]
