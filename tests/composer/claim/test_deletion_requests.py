"""What a deletion asks of the API server, request by request, over caches that are fed by watches."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from apis import names
from composer.claim.act import Actor
from composer.claim.gather import Gatherer
from composer.claim.reconciler import ClaimReconciler, Tools
from composer.connection.passwords import PasswordKeeper
from composer.connection.publisher import Publisher
from composer.inventory import dump
from composer.kinds.cluster import Cluster
from runtime.cache import Cache
from runtime.events import EventRecorder
from runtime.objects import CRDS, NAMESPACES, Key, Object, Resource
from tests.composer.claim.passes import Prepares
from tests.composer.factories import CLAIMS, DATABASES, claim, desired, entry, live, rendered
from tests.support.memory_kube import MemoryKube
from tests.support.waiting import eventually, in_background

KEY = Key("shop", "orders")
HELD = "provider.example.org/holds"
CHILDREN = ("first", "second")


@dataclass
class _Kube(MemoryKube):
    """Notes what is sent."""

    sent: list[str] = field(default_factory=list)

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        self.sent.append(f"get {resource.plural}")
        return await super().get(resource, key, metadata_only=metadata_only)

    async def json_patch(
        self, resource: Resource, key: Key, operations: list[dict[str, Any]], *, manager: str, subresource: str = ""
    ) -> Object:
        self.sent.append(f"patch {resource.plural}{subresource and '/'}{subresource}")
        return await super().json_patch(resource, key, operations, manager=manager, subresource=subresource)

    async def delete(
        self, resource: Resource, key: Key, *, uid: str, resource_version: str, propagation: str = "Background"
    ) -> Object | None:
        self.sent.append(f"delete {resource.plural}")
        return await super().delete(resource, key, uid=uid, resource_version=resource_version, propagation=propagation)


def _crd(kube: MemoryKube, resource: Resource) -> None:
    schema: Object = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": schema,
        "subresources": {"status": {}},
    }
    spec = {
        "group": resource.group,
        "scope": "Namespaced",
        "names": {"kind": resource.kind, "plural": resource.plural},
        "versions": [version],
    }
    kube.put(CRDS, f"{resource.plural}.{resource.group}", namespace="", spec=spec)


@asynccontextmanager
async def _deleting(policy: str, *finalizers: str) -> AsyncIterator[tuple[_Kube, ClaimReconciler, Cache]]:
    """Have a claim that is being deleted, with two children that these finalizers hold, and its reconciler."""
    kube = _Kube()
    for resource in (CLAIMS, DATABASES):
        _crd(kube, resource)
    kube.put(NAMESPACES, "shop", namespace="")
    entries = []
    for name in CHILDREN:
        made = live(desired(name), uid=f"{name}-uid", finalizers=list(finalizers))
        made["metadata"]["labels"] = {names.CLAIM_LABEL: "claim-uid"}
        kube.store(DATABASES, made)
        entries.append(entry(name, name=made["metadata"]["name"], uid=f"{name}-uid"))
    owner = claim(deleted=True, deletionPolicy=policy, status={"inventory": dump(entries)})
    owner["metadata"]["annotations"] = {names.KINDS: DATABASES.group_kind, names.IDENTITY: "claim-uid@shop/orders"}
    kube.store(CLAIMS, owner)
    cache = Cache(kube)
    cluster = Cluster(kube, cache)
    gatherer = Gatherer(cluster, cluster.informer(CLAIMS))
    tools: dict[str, Any] = {
        "kube": kube,
        "gatherer": gatherer,
        "preparer": Prepares(rendered()),
        "actor": Actor(kube, now=_now, remember=lambda _facts, _obj, _over: None),
        "publisher": Publisher(kube, monotonic=lambda: 0.0, manager="m"),
        "passwords": PasswordKeeper(kube, monotonic=lambda: 0.0, manager="m"),
        "events": EventRecorder(kube, controller="c", instance="i"),
        "now": _now,
        "monotonic": lambda: 0.0,
    }
    async with in_background(cache.run()):
        await cache.wait_synced()
        await cluster.watches.unlisted([DATABASES])
        kube.sent.clear()
        yield kube, ClaimReconciler(Tools(**tools)), cache


def _now() -> datetime:
    return datetime(2026, 11, 21, 12, tzinfo=UTC)


async def _caught_up(kube: MemoryKube, cache: Cache) -> None:
    """Wait until the caches have what is stored."""

    async def is_caught_up() -> bool:
        stores = [informer.store for informer in cache if informer.resource in (CLAIMS, DATABASES)]
        return all(
            {key: store.uid(key) for key in tuple(store.keys())} == kube.state(store.resource) for store in stores
        )

    await eventually(is_caught_up, "the caches have what is stored")


async def test_a_deletion_of_children_that_nothing_holds_is_one_pass_of_six_writes() -> None:
    async with _deleting("Orphan") as (kube, reconciler, cache):
        await reconciler.reconcile(KEY)
        first = list(kube.sent)
        kube.sent.clear()
        await reconciler.reconcile(KEY)
        behind = list(kube.sent)
        await _caught_up(kube, cache)

    assert sorted(first[:2]) == ["get customresourcedefinitions", "get namespaces"]
    assert first[2] == "patch postgresqlinstances/status"
    assert sorted(first[3:-1]) == [*["delete postgresdatabases"] * 2, *["patch postgresdatabases"] * 2]
    assert first[-1] == "patch postgresqlinstances"
    assert behind == []
    assert kube.state(CLAIMS) == kube.state(DATABASES) == {}


async def test_children_that_a_provider_held_are_proven_gone_by_reads_and_the_claim_before_its_secrets_go() -> None:
    async with _deleting("Delete", HELD) as (kube, reconciler, cache):
        await reconciler.reconcile(KEY)
        first = list(kube.sent)
        await _caught_up(kube, cache)
        for key, child in [(key, obj) for (of, key), obj in kube.objects.items() if of == DATABASES]:
            assert child["metadata"]["annotations"][names.TEARDOWN].endswith("/Delete")
            kube.remove(DATABASES, key.name, namespace="shop")
        await _caught_up(kube, cache)
        kube.sent.clear()
        await reconciler.reconcile(KEY)

    assert "patch postgresqlinstances" not in first
    assert sorted(kube.sent[:-1]) == [
        "get customresourcedefinitions",
        "get namespaces",
        *["get postgresdatabases"] * 2,
        "get postgresqlinstances",
    ]
    assert kube.sent[-1] == "patch postgresqlinstances"


async def test_a_child_that_only_lost_its_label_holds_its_claim() -> None:
    async with _deleting("Delete", HELD) as (kube, reconciler, cache):
        await reconciler.reconcile(KEY)
        await _caught_up(kube, cache)
        for (of, _), stored in tuple(kube.objects.items()):
            if of == DATABASES:
                # A watch by label says of such an object what it says of one that is gone.
                kube.store(DATABASES, {**stored, "metadata": {**stored["metadata"], "labels": {}}})
        (children,) = (informer.store for informer in cache if informer.resource == DATABASES)

        async def is_empty() -> bool:
            return len(children) == 0

        await eventually(is_empty, "the cache has no child")
        await reconciler.reconcile(KEY)

    assert "patch postgresqlinstances" not in kube.sent
    assert len(kube.state(DATABASES)) == len(CHILDREN)
