"""A list is made where it could wake something, and nowhere else."""

from __future__ import annotations

from datetime import timedelta

from providers.accounts.lister import Sweeper
from runtime.objects import Key
from tests.providers.toy import TOYS, ToyCloud
from tests.providers.world import World


async def test_an_account_without_a_resource_of_the_kind_is_not_listed() -> None:
    cloud, woken = ToyCloud(), list[Key]()
    world = World(cloud)
    sweeper = Sweeper(world.accounts, world.cache.informer(TOYS), woken.append, timedelta(seconds=30))
    world.feed()
    await world.accounts.connect("default")
    assert (await sweeper(Key("", "default"))).requeue_after == timedelta(seconds=30)
    assert cloud.lists == 0

    world.ask()
    await world.settle()
    await sweeper(Key("", "default"))
    await sweeper(Key("", "default"))
    assert (cloud.lists, woken) == (2, [Key("team", "db")])
