"""Passes that run side by side write to the ProviderConfig that they share in turn."""

from __future__ import annotations

import asyncio

from runtime.objects import Key, Object, Resource
from tests.providers.toy import CONFIGS, ToyCloud
from tests.providers.world import World
from tests.support.fake_kube import FakeKube


class _Slow(FakeKube):
    """An API server that takes its time over an apply."""

    async def apply(
        self, resource: Resource, obj: Object, *, manager: str, force: bool = False, subresource: str = ""
    ) -> Object:
        await asyncio.sleep(0)
        return await super().apply(resource, obj, manager=manager, force=force, subresource=subresource)


async def test_in_use_finalizer_is_written_once_for_databases_that_are_created_side_by_side() -> None:
    before = World(cloud := ToyCloud())
    slow = _Slow()
    slow.objects, slow.version = before.kube.objects, before.kube.version
    world = World(cloud, kube=slow)
    names = [f"db{number}" for number in range(5)]
    for name in names:
        world.ask(name)
    world.feed()

    results = await asyncio.gather(*(world.reconcile(Key("team", name)) for name in names), return_exceptions=True)

    assert [result for result in results if isinstance(result, BaseException)] == []
    written = zip(slow.writes, slow.managers, strict=True)
    applied = ("apply", CONFIGS.plural)
    assert [(write, manager) for write, manager in written if write == applied] == [
        (applied, "fairlead.dev/provider-toy")
    ]
