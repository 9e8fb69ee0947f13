"""A server and its children: the cloud carries out one operation at a time for all of them, over restarts too."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import pytest

from providers.accounts.turns import Holder, Turns
from providers.external.client import Operation
from runtime.objects import Key
from runtime.results import Result
from tests.providers.managed.test_operations import OperatedToys
from tests.providers.toy import provider_of
from tests.providers.world import World

pytestmark = pytest.mark.asyncio
NAMES = tuple(f"db{number}" for number in range(5))


@dataclass
class OneServer(OperatedToys):
    """All toys are on one server, which refuses a second operation."""

    def _changed(self, kind: str, name: str) -> Operation:
        assert not self.opened, f"{kind} of {name} beside {list(self.opened)}"
        return super()._changed(kind, name)


def _world(cloud: OneServer, earlier: World | None = None) -> World:
    provider = provider_of(cloud, server_of=lambda _target: "server-1")
    if earlier is None:
        return World(cloud, provider=provider)
    world = World(cloud, provider=provider, process="process-2", kube=earlier.kube)
    world.now = earlier.now + timedelta(minutes=2)
    return world


async def _pass_of_all(world: World) -> None:
    """Make one pass of each side by side, and move the clock on."""
    world.feed()
    await asyncio.gather(*(world.reconcile(Key("team", name)) for name in NAMES))
    world.now += timedelta(seconds=5)


async def _until_all_say(world: World, reason: str) -> None:
    for _ in range(200):
        await _pass_of_all(world)
        if all(world.reason(name=name) == reason for name in NAMES):
            return
    raise AssertionError({name: world.reason(name=name) for name in NAMES})


async def test_turn_is_free_for_the_next_after_a_refused_call() -> None:
    turns, first, second = Turns(), Holder("Toy", Key("team", "a")), Holder("Toy", Key("team", "b"))

    def refused() -> None:
        with turns.turn("account", "server", first) as holder:
            assert holder is None
            with turns.turn("account", "server", second) as other:
                assert other == first
            assert turns.holder("account", "server", second) == first
            assert turns.holder("another", "server", second) is None
            raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        refused()
    with turns.turn("account", "server", second) as holder:
        assert holder is None


async def test_turn_of_what_changes_nothing_is_not_waited_for() -> None:
    cloud = OneServer()
    world = _world(cloud)
    for name in NAMES:
        world.ask(name)
    await _until_all_say(world, "InSync")
    world.ask(NAMES[0], size=20)
    await world.step(NAMES[0])

    result = await world.step(NAMES[1])
    assert isinstance(result, Result)
    assert world.reason(name=NAMES[1]) == "InSync"
