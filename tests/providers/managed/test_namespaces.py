"""Namespaces: read as they are; one that keeps its Secrets from the provider holds nothing for ever."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

from runtime.errors import Conflict, Forbidden, NotGranted
from runtime.objects import NAMESPACES, SECRETS, Key, Object, Resource
from runtime.results import Result
from tests.providers.toy import ToyCloud
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
