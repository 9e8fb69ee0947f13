"""Which kinds are watched, in virtual time: what begins, what stays, what ends, and when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from apis import names
from composer.composition.store import Library
from composer.kind_reconciler import KindReconciler, Served, used_kinds
from composer.kinds.catalog import KindFacts
from composer.kinds.cluster import Cluster
from composer.process import kinds_controller
from fairlead.simulation.virtual_time import VirtualLoop
from runtime.cache import Cache
from runtime.controller import Controller, ControllerSettings
from runtime.objects import CRDS, Resource
from runtime.reflector import Clock, Timing
from runtime.results import SETTLED
from tests.support.memory_kube import MemoryKube
from tests.support.second_api import SecondApi

LOOP = VirtualLoop

API = SecondApi("cache.example.org")
CACHES = Resource(API.group, "v1", "Cache", "caches")
NODES = Resource(API.group, "v1", "Node", "nodes")
CACHE, NODE = CACHES.group_kind, NODES.group_kind
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
class _World:
    kube: MemoryKube
    cache: Cache
    cluster: Cluster
    desk: _Desk

    def watched(self) -> set[str]:
        """Return the kinds with a watch, those apart that every composer watches."""
        own = {"CustomResourceDefinition", "Namespace", "Composition", "CompositionRevision", "ConfigMap"}
        kinds = {informer.resource.group_kind for informer in self.cache}
        return {kind for kind in kinds if kind.partition(".")[0] not in own}

    def install(self, crd: dict[str, Any]) -> None:
        crd = deepcopy(crd)
        self.kube.put(CRDS, crd["metadata"]["name"], namespace="", spec=crd["spec"])

    def name_caches(self) -> None:
        self.kube.put(names.COMPOSITIONS, "c", namespace="", spec=API.composition("c")["spec"])

    def claim(self, *kinds: str) -> None:
        self.kube.put(CACHES, "a", metadata={"annotations": {"fairlead.dev/kinds": ",".join(kinds)}})


@asynccontextmanager
async def _scene(*crds: dict[str, Any], forbidden: str = "", idle_s: float = IDLE_S) -> AsyncIterator[_World]:
    loop = asyncio.get_running_loop()
    kube = MemoryKube(forbidden={forbidden})
    cache = Cache(kube, timing=Timing(idle=timedelta(days=9), clock=Clock(monotonic=loop.time, chance=lambda: 0.0)))
    cluster = Cluster(kube, cache)
    scene = _World(kube, cache, cluster, _Desk(cluster))
    for crd in crds:
        scene.install(crd)
    library = Library(cluster, "fairlead-system")
    caching = asyncio.create_task(cache.run())
    await cache.wait_synced()
    kind_reconciler = KindReconciler(
        cluster, library, scene.desk, idle=timedelta(seconds=idle_s), requeue=lambda _: None
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


async def test_a_composed_kind_that_a_claim_uses_stays_watched_though_it_may_not_be_listed() -> None:
    crds = (API.cache_crd(), API.node_crd(composable="true"))
    async with _scene(*crds, forbidden="list nodes") as world:
        world.name_caches()
        world.claim(NODE)
        await world.cluster.watches.unlisted([NODES])
        await asyncio.sleep(4 * 3_600)
        watched = NODE in world.watched()
        lists = [dial.at for dial in world.kube.dials if dial.resource == "nodes"]
    assert watched
    assert len([at for at in lists if at > lists[-1] - 3_600]) in (6, 7)


async def test_a_crd_that_is_deleted_ends_the_watch_and_one_that_comes_back_starts_it() -> None:
    async with _scene(API.cache_crd()) as world:
        world.name_caches()
        await asyncio.sleep(5)
        watched = [CACHE in world.watched()]
        world.kube.remove(CRDS, f"caches.{API.group}", namespace="")
        await asyncio.sleep(5)
        watched.append(CACHE in world.watched())
        world.install(API.cache_crd())
        await asyncio.sleep(5)
        watched.append(CACHE in world.watched())

        assert watched == [True, False, True]
