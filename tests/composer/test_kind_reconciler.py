"""Which kinds are watched, in virtual time: what begins, what stays, what ends, and when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from apis import names
from composer.composition.store import Library
from composer.kind_reconciler import KindReconciler, Served, used_kinds
from composer.kinds.catalog import KindFacts
from composer.kinds.cluster import Cluster
from composer.process import kinds_controller
from runtime.cache import Cache
from runtime.controller import Controller, ControllerSettings
from runtime.objects import CRDS, Resource
from runtime.reflector import Clock, Timing
from runtime.results import SETTLED
from tests.runtime.virtual_loop import run
from tests.support.fake_kube import FakeKube
from tests.support.second_api import SecondApi

API = SecondApi("cache.example.org")
CACHES = Resource(API.group, "v1", "Cache", "caches")
NODES = Resource(API.group, "v1", "Node", "nodes")
CACHE, NODE = CACHES.group_kind, NODES.group_kind
SHIPPED = "PostgreSQLInstance.database.fairlead.dev"
_CRD = Path(__file__).resolve().parents[2] / "crds" / "database.fairlead.dev_postgresqlinstances.yaml"
IDLE_S = 60


@dataclass
class _Desk:
    """Stands for the controllers of claims: only their watches are real."""

    cluster: Cluster

    def begin(self, facts: KindFacts) -> Served:
        claims = self.cluster.informer(facts.resource, required=False)
        claims.store.add_index("kind", used_kinds)
        idle = Controller("claims", _never, settings=ControllerSettings())
        return Served(facts, claims, idle, asyncio.get_running_loop().time())

    async def end(self, served: Served) -> None:
        self.cluster.drop(served.facts.resource)


async def _never(_: object) -> Any:
    return SETTLED


@dataclass
class _Scene:
    kube: FakeKube
    cache: Cache
    cluster: Cluster
    desk: _Desk

    def watched(self) -> set[str]:
        """Return the kinds with a watch, those apart that every composer watches."""
        own = {"CustomResourceDefinition", "Namespace", "Composition", "CompositionRevision", "ConfigMap"}
        found = {each.resource.group_kind for each in self.cache}
        return {kind for kind in found if kind.partition(".")[0] not in own}

    def install(self, crd: dict[str, Any]) -> None:
        crd = deepcopy(crd)
        self.kube.put(CRDS, crd["metadata"]["name"], namespace="", spec=crd["spec"])

    def name_caches(self) -> None:
        self.kube.put(names.COMPOSITIONS, "c", namespace="", spec=API.composition("c")["spec"])

    def claim(self, *kinds: str) -> None:
        self.kube.put(CACHES, "a", metadata={"annotations": {"fairlead.dev/kinds": ",".join(kinds)}})


@asynccontextmanager
async def _scene(*crds: dict[str, Any]) -> AsyncIterator[_Scene]:
    loop = asyncio.get_running_loop()
    kube = FakeKube()
    cache = Cache(kube, timing=Timing(idle=timedelta(days=9), clock=Clock(monotonic=loop.time, chance=lambda: 0.0)))
    cluster = Cluster(kube, cache)
    scene = _Scene(kube, cache, cluster, _Desk(cluster))
    for crd in crds:
        scene.install(crd)
    library = Library(cluster, "fairlead-system")
    caching = asyncio.create_task(cache.run())
    await cache.wait_synced()
    kind_reconciler = KindReconciler(
        cluster, library, scene.desk, idle=timedelta(seconds=IDLE_S), requeue=lambda _: None
    )
    controller = kinds_controller(kind_reconciler, cluster, library, ControllerSettings(monotonic=loop.time))
    kind_reconciler.begin()
    working = asyncio.create_task(controller.run())
    await asyncio.sleep(5)
    try:
        yield scene
    finally:
        for task in (working, caching):
            task.cancel()
            await asyncio.wait((task,))


def test_a_shipped_kind_is_watched_before_anybody_names_it_and_another_is_not() -> None:
    async def scene() -> set[str]:
        async with _scene(YAML(typ="safe").load(_CRD.read_text()), API.cache_crd()) as each:
            await asyncio.sleep(2 * IDLE_S)
            return each.watched()

    assert run(scene()) == {SHIPPED}


def test_what_a_provider_serves_is_watched_by_a_process_that_begins_and_longer_only_while_there_is_any() -> None:
    """A child whose claim went while nobody was at work waits for a word."""
    databases = Resource("onprem.fairlead.dev", "v1alpha1", "PostgresDatabase", "postgresdatabases")
    crd = YAML(typ="safe").load((_CRD.parent / "onprem.fairlead.dev_postgresdatabases.yaml").read_text())

    async def scene(*, any_there: bool) -> list[bool]:
        async with _scene(crd) as each:
            if any_there:
                each.kube.put(databases, "left-behind")
            found = [databases.group_kind in each.watched()]
            await asyncio.sleep(3 * IDLE_S)
            return [*found, databases.group_kind in each.watched()]

    assert run(scene(any_there=False)) == [True, False]
    assert run(scene(any_there=True)) == [True, True]


def test_a_kind_of_claim_is_watched_while_it_is_named_or_a_claim_of_it_is_left() -> None:
    async def scene() -> list[bool]:
        async with _scene(API.cache_crd()) as each:
            await asyncio.sleep(2 * IDLE_S)
            found = [CACHE in each.watched()]
            each.name_caches()
            await asyncio.sleep(5)
            found.append(CACHE in each.watched())
            each.claim()
            each.kube.remove(names.COMPOSITIONS, "c", namespace="")
            await asyncio.sleep(5 * IDLE_S)
            found.append(CACHE in each.watched())
            each.kube.remove(CACHES, "a")
            await asyncio.sleep(2 * IDLE_S)
            found.append(CACHE in each.watched())
            return found

    assert run(scene()) == [False, True, True, False]


def test_claims_that_were_left_without_a_composition_are_found_by_a_process_that_begins() -> None:
    async def scene() -> bool:
        async with _scene() as each:
            each.claim()
            each.install(API.cache_crd())
            await asyncio.sleep(5 * IDLE_S)
            return CACHE in each.watched()

    assert run(scene())


def test_a_definition_that_goes_ends_the_watch_and_one_that_comes_back_begins_it() -> None:
    async def scene() -> list[bool]:
        async with _scene(API.cache_crd()) as each:
            each.name_caches()
            await asyncio.sleep(5)
            found = [CACHE in each.watched()]
            each.kube.remove(CRDS, f"caches.{API.group}", namespace="")
            await asyncio.sleep(5)
            found.append(CACHE in each.watched())
            each.install(API.cache_crd())
            await asyncio.sleep(5)
            found.append(CACHE in each.watched())
            return found

    assert run(scene()) == [True, False, True]


def test_a_composed_kind_is_watched_until_no_claim_uses_it_and_none_of_its_objects_is_left() -> None:
    async def scene() -> list[bool]:
        async with _scene(API.cache_crd(), API.node_crd(composable="true")) as each:
            each.name_caches()
            await each.cluster.watches.unlisted([NODES])
            each.claim(NODE)
            await asyncio.sleep(5 * IDLE_S)
            found = [NODE in each.watched()]
            each.kube.put(NODES, "n")
            each.claim()
            await asyncio.sleep(5 * IDLE_S)
            found.append(NODE in each.watched())
            each.kube.remove(NODES, "n")
            await asyncio.sleep(2 * IDLE_S)
            found.append(NODE in each.watched())
            return found

    assert run(scene()) == [True, True, False]


def test_a_composed_kind_that_is_served_at_another_version_is_watched_anew() -> None:
    async def scene() -> tuple[set[str], set[str]]:
        async with _scene(API.cache_crd(), API.node_crd(composable="true")) as each:
            await each.cluster.watches.unlisted([NODES])
            before = {one.resource.version for one in each.cluster.watches}
            newer = API.node_crd(composable="true")
            newer["spec"]["versions"][0]["name"] = "v2"
            each.install(newer)
            await asyncio.sleep(5)
            return before, {one.resource.version for one in each.cluster.watches}

    assert run(scene()) == ({"v1"}, set())
