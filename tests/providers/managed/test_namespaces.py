"""Namespaces as they are, not as a watch that is behind has them; one write for what passes share."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from dataclasses import dataclass, field

import pytest

from runtime.errors import Conflict
from runtime.kube import Selection
from runtime.objects import NAMESPACES, Key, Object, Resource
from tests.providers.toy import CONFIGS, ToyCloud
from tests.providers.world import World
from tests.support.fake_kube import FakeKube

_TEAM = Key("", "team")


@dataclass
class _Kube(FakeKube):
    """Counts reads of namespaces."""

    reads: int = 0

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        self.reads += resource == NAMESPACES
        return await super().get(resource, key, metadata_only=metadata_only)


@dataclass
class _Behind:
    """A world whose watch of namespaces stands still: it has none, or the one of before."""

    has_former: bool
    kube: _Kube = field(default_factory=_Kube)
    cloud: ToyCloud = field(default_factory=ToyCloud)
    world: World = field(init=False)

    def __post_init__(self) -> None:
        self.world = World(self.cloud, kube=self.kube)
        former = self.kube.objects.pop((NAMESPACES, _TEAM))
        if self.has_former:
            self.kube.objects[NAMESPACES, _TEAM] = former
        self.world.feed()
        store = self.world.cache.informer(NAMESPACES, selection=Selection(metadata_only=True)).store
        store.replace_all = lambda _listing, _version: iter(())  # type: ignore[assignment, method-assign]  # it stands still
        present = deepcopy(former)
        present["metadata"] |= {"uid": "the-present-one"}
        self.kube.store(NAMESPACES, present)


@pytest.mark.parametrize("has_former", [False, True], ids=["it has none", "it has the former one of that name"])
async def test_what_is_made_carries_the_uid_of_a_namespace_that_the_watch_has_not_sent(
    has_former: bool,  # noqa: FBT001 - a column of the table
) -> None:
    behind = _Behind(has_former)
    behind.world.ask()
    await behind.world.settle()
    (toy,) = behind.cloud.toys.values()
    assert toy.owner is not None
    assert toy.owner.namespace_uid == "the-present-one"


async def test_once_it_is_made_its_namespace_is_taken_from_the_watch() -> None:
    kube = _Kube()
    world = World(ToyCloud(), kube=kube)
    world.ask()
    await world.settle()
    before = kube.reads
    assert before > 0
    world.ask(size=20)
    await world.settle()
    assert kube.reads == before


async def test_nothing_is_made_for_an_object_whose_namespace_is_gone() -> None:
    kube, cloud = _Kube(), ToyCloud()
    world = World(cloud, kube=kube)
    del kube.objects[NAMESPACES, _TEAM]
    world.ask()
    result = await world.step()
    assert isinstance(result, Conflict)
    assert cloud.toys == {}


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
