"""Namespaces: read as they are; one that keeps its Secrets from the provider holds nothing for ever."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from runtime.errors import Conflict, Forbidden, NotGranted
from runtime.kube import Selection
from runtime.objects import NAMESPACES, SECRETS, Key, Object, Resource
from runtime.results import Result
from tests.providers.toy import CONFIGS, ToyCloud
from tests.providers.world import World
from tests.support.memory_kube import MemoryKube

_TEAM = Key("", "team")


@dataclass
class _Kube(MemoryKube):
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


class _Slow(MemoryKube):
    """An API server that takes its time over an apply."""

    async def apply(
        self, resource: Resource, obj: Object, *, manager: str, force: bool = False, subresource: str = ""
    ) -> Object:
        await asyncio.sleep(0)
        return await super().apply(resource, obj, manager=manager, force=force, subresource=subresource)


async def test_in_use_finalizer_is_written_once_for_databases_that_are_created_side_by_side() -> None:
    before = World(cloud := ToyCloud())
    slow = _Slow()
    slow.server = before.kube.server
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


class Guarded(MemoryKube):
    """An API server that refuses the named verbs on Secrets of the team's namespace."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: frozenset[str] = frozenset()
        self.error: Forbidden = NotGranted("HTTP 403 Forbidden", status=403)

    def _check(self, verb: str, resource: Resource, namespace: str) -> None:
        if resource == SECRETS and namespace == "team" and verb in self.refused:
            raise self.error

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        self._check("get", resource, key.namespace)
        return await super().get(resource, key, metadata_only=metadata_only)

    async def create(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        self._check("create", resource, obj["metadata"]["namespace"])
        return await super().create(resource, obj, manager=manager)


def _world(slow: int) -> tuple[World, Guarded]:
    kube = Guarded()
    world = World(ToyCloud(slow=slow), kube=kube)
    # What a world of its own memory makes.
    made = World(ToyCloud()).kube.objects
    kube.objects.update(made)
    return world, kube


def _message(world: World) -> str:
    (stalled,) = [condition for condition in world.status["conditions"] if condition["type"] == "Stalled"]
    return str(stalled["message"])


@pytest.mark.parametrize("slow", [0, 3])
@pytest.mark.parametrize("verb", ["get", "create"])
async def test_cloud_is_called_once_there_may_be_a_place_for_the_password(slow: int, verb: str) -> None:
    world, kube = _world(slow)
    kube.refused = frozenset({verb})
    world.ask()
    waits = []
    for _ in range(12):
        result = await world.step()
        assert isinstance(result, Result)
        assert result.requeue_after is not None
        waits.append(result.requeue_after)
        world.now += result.requeue_after
    assert (waits == sorted(waits), waits[0] <= timedelta(seconds=2), waits[-1]) == (True, True, timedelta(minutes=1))
    assert world.cloud.calls.count("create") == 0
    assert (world.reason(), world.reason("Ready"), world.reason("Stalled")) == ("AccessDenied",) * 3
    assert "kubectl apply -n team -k deploy/kustomize/clouds/toy/claim-namespace" in _message(world)
    writes = len(kube.writes)
    await world.step_after(timedelta(minutes=1))
    # Where the Secret cannot be created, the intent is written and withdrawn each time.
    assert len(kube.writes) - writes == (0 if verb == "get" else 2)

    kube.refused = frozenset()
    await world.settle()
    assert (world.cloud.calls.count("create"), world.reason("Ready")) == (1, "Available")


async def test_refusal_that_is_no_missing_right_is_not_reported_as_one() -> None:
    world, kube = _world(0)
    kube.refused, kube.error = frozenset({"create"}), Forbidden("HTTP 403 Forbidden", status=403)
    world.ask()

    await world.step()

    assert world.cloud.calls.count("create") == 0
    assert "quota" in _message(world)
    assert "kubectl apply" not in _message(world)


async def test_existing_database_stays_as_it_is() -> None:
    world, kube = _world(0)
    world.ask()
    await world.settle()
    calls = [call for call in world.cloud.calls if call != "observe"]

    kube.refused = frozenset({"get", "create"})
    await world.step()

    assert [call for call in world.cloud.calls if call != "observe"] == calls
    assert (world.reason("Ready"), world.reason("Stalled")) == ("Available", "AccessDenied")


@pytest.mark.parametrize("is_ending", [True, False], ids=["a namespace that ends", "a namespace that lives"])
async def test_deletion_waits_for_the_right_unless_the_namespace_takes_the_secret_along(*, is_ending: bool) -> None:
    world, kube = _world(0)
    world.ask()
    await world.settle()
    kube.refused = frozenset({"get"})
    if is_ending:
        kube.store(
            NAMESPACES, {"metadata": {"name": "team", "deletionTimestamp": "2026-11-21T12:00:00Z", "finalizers": ["x"]}}
        )
    world.delete()

    results = []
    for _ in range(6):
        results.append(await world.step())
        world.now += timedelta(minutes=2)

    assert all(
        isinstance(result, Result) and (result.requeue_after or timedelta()) <= timedelta(minutes=1)
        for result in results
    )
    assert (world.get() is None) == is_ending
    if not is_ending:
        assert world.reason("Stalled") == "AccessDenied"
        kube.refused = frozenset()
        await world.settle()
        assert world.get() is None
