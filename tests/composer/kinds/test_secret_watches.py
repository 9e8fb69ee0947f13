"""Where Secrets are watched, in virtual time: in namespaces with claims whose RoleBinding allows it, for so long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from composer.kinds.cluster import Cluster
from composer.kinds.secret_watches import MOST, NAMESPACE_INDEX, SecretWatches
from composer.process import namespace_index
from fairlead.simulation.virtual_time import VirtualLoop
from runtime.cache import Cache
from runtime.changes import Change
from runtime.controller import Controller, ControllerSettings, Source
from runtime.objects import SECRETS, Key, Object, key_of, version_of
from runtime.reflector import Clock, Timing
from runtime.results import SETTLED, Result
from tests.composer.factories import CLAIMS
from tests.support.memory_kube import MemoryKube

LOOP = VirtualLoop

WATCH = ("secrets", "watch")


@dataclass
class _World:
    """A controller of claims that is woken by Secrets of its namespaces, with a claim `orders` in each of them."""

    kube: MemoryKube
    cache: Cache
    watches: SecretWatches
    passes: list[Key] = field(default_factory=list)

    @property
    def watched(self) -> list[str]:
        """The namespaces whose Secrets are watched."""
        return sorted({informer.selection.namespace for informer in self.cache if informer.resource == SECRETS})

    def claim(self, namespace: str) -> None:
        self.kube.put(CLAIMS, "orders", namespace=namespace)

    async def reconcile(self, key: Key) -> Result:
        self.passes.append(key)
        return SETTLED


def _claims_of(change: Change) -> Iterable[Key]:
    return () if change.initial else (Key(change.key.namespace, "orders"),)


@asynccontextmanager
async def _world(*namespaces: str, denied: bool = False) -> AsyncIterator[_World]:
    loop = asyncio.get_running_loop()
    kube = MemoryKube()
    kube.denied = {WATCH} if denied else set()
    cache = Cache(kube, timing=Timing(idle=timedelta(days=9), clock=Clock(monotonic=loop.time, chance=lambda: 0.0)))
    settings = ControllerSettings(monotonic=loop.time)
    watches = SecretWatches(Cluster(kube, cache), settings)
    world = _World(kube, cache, watches)
    for namespace in namespaces:
        world.claim(namespace)
    claims = cache.informer(CLAIMS, indexes={NAMESPACE_INDEX: namespace_index})
    controller = Controller("claims", world.reconcile, settings=settings)
    controller.source(Source(claims, primary=True))
    watches.subscribe(controller, claims, _claims_of)
    tasks = [asyncio.create_task(part.run()) for part in (cache, controller, watches.controller)]
    try:
        yield world
    finally:
        for task in reversed(tasks):
            task.cancel()
            await asyncio.wait((task,))


async def test_a_namespace_is_watched_once_its_role_allows_it_and_no_longer_than_that() -> None:
    watched = []
    async with _world("shop", denied=True) as world:
        for denied in ({WATCH}, set(), {WATCH}):
            world.kube.denied = denied
            await asyncio.sleep(301)
            watched.append(world.watched)

    assert watched == [[], ["shop"], []]


async def test_rights_in_a_namespace_are_reviewed_once_in_five_minutes_however_many_claims_it_has() -> None:
    async with _world("shop") as world:
        for number in range(100):
            world.kube.put(CLAIMS, f"claim-{number}", namespace="shop")
            await asyncio.sleep(1)

        assert len(world.kube.reviews) == 2


async def test_the_versions_of_a_namespaces_secrets_are_known_while_it_is_watched() -> None:
    versions = []
    async with _world("shop") as world:
        stored = world.kube.put(SECRETS, "orders-connection", namespace="shop", data={"password": "eA=="})
        await asyncio.sleep(5)
        versions.append(world.watches.version(key_of(stored)))
        versions.append(world.watches.version(Key("shop", "none")))
        world.kube.remove(CLAIMS, "orders", namespace="shop")
        await asyncio.sleep(5)
        versions.append(world.watches.version(key_of(stored)))
        assert versions[0] == version_of(stored)

    assert versions[1:] == [None, None]


async def test_the_data_of_a_namespaces_credentials_is_known_while_it_is_watched() -> None:
    known = []
    async with _world("shop") as world:
        credentials: Object = {"type": "fairlead.dev/credentials", "data": {"current": "eA=="}}
        world.kube.put(SECRETS, "orders-credentials", namespace="shop", **credentials)
        await asyncio.sleep(5)
        known.append((world.watches.credentials(Key("shop", "orders-credentials")) or {}).get("data") is not None)
        known.append(world.watches.credentials(Key("shop", "none")) is None)
        world.kube.remove(CLAIMS, "orders", namespace="shop")
        await asyncio.sleep(5)
        known.append(world.watches.credentials(Key("shop", "orders-credentials")) is None)

    assert known == [True, True, True]


async def test_no_more_namespaces_are_watched_than_connections_allow() -> None:
    async with _world(*(f"team-{number}" for number in range(MOST + 5))) as world:
        await asyncio.sleep(5)

        assert len(world.watched) == MOST
