"""The first choice of a claim is made by its namespace as it is, not as a watch that is behind has it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from apis import names
from composer.causes import cause
from composer.claim.compose import Preparer
from composer.claim.gather import Gatherer
from composer.composition.revision import Candidate, Revision
from composer.kinds.cluster import Cluster
from composer.kinds.live_namespaces import UNDECIDED
from composer.models import AllowedNamespaces, AppliesTo
from composer.process import undecided_index
from composer.render.render import Rendered
from composer.render.request import Request
from runtime.cache import Cache
from runtime.errors import Conflict
from runtime.kube import Selection, WatchEvent
from runtime.objects import NAMESPACES, Key, Object, Resource, labels_of
from tests.composer.claim.passes import LoggedKube, Prepares, Reads, reconciler
from tests.composer.factories import CLAIMS, child, claim, desired, rendered, snapshot
from tests.support.memory_kube import MemoryKube
from tests.support.waiting import eventually, in_background

_AZURE = {"cloud": "azure"}


@dataclass
class _LateKube(MemoryKube):
    """Counts reads of namespaces; while it is `late`, its watch of namespaces sends nothing."""

    reads: int = 0
    is_late: bool = True
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        self.reads += resource == NAMESPACES
        return await super().get(resource, key, metadata_only=metadata_only)

    async def watch(
        self,
        resource: Resource,
        selection: Selection,
        *,
        resource_version: str,
        timeout: timedelta,  # noqa: ASYNC109 - the port's
    ) -> AsyncIterator[WatchEvent]:
        if resource == NAMESPACES and self.is_late:
            await self.arrived.wait()
        async for event in super().watch(resource, selection, resource_version=resource_version, timeout=timeout):
            yield event

    def catch_up(self) -> None:
        self.is_late = False
        self.arrived.set()


@asynccontextmanager
async def _gatherer(kube: _LateKube) -> AsyncIterator[tuple[Gatherer, Cluster]]:
    cache = Cache(kube)
    cluster = Cluster(kube, cache)
    claims = cluster.informer(CLAIMS)
    claims.store.add_index(UNDECIDED, undecided_index)
    async with in_background(cache.run()):
        await cache.wait_synced()
        yield Gatherer(cluster, claims), cluster


async def _labels(gatherer: Gatherer, name: str) -> dict[str, str]:
    """Return the labels by which a claim of namespace `shop` is served first."""
    seen = await gatherer.gather(Key("shop", name), more_kinds=lambda _: frozenset())
    assert seen is not None
    return dict(labels_of((await gatherer.with_live_namespace(seen)).namespace or {}))


def _put_namespace(kube: _LateKube, **labels: str) -> None:
    kube.put(NAMESPACES, "shop", namespace="", metadata={"labels": labels})


async def _put_claims(kube: _LateKube, gatherer: Gatherer, *names_of_claims: str) -> None:
    """Create claims, and wait until the watch of claims has them."""
    for name in names_of_claims:
        kube.put(CLAIMS, name, namespace="shop", spec={})

    async def are_seen() -> bool:
        return all(Key("shop", name) in gatherer.claims.store for name in names_of_claims)

    await eventually(are_seen, "the claims are in the cache", every_s=0.001)


async def test_one_read_serves_all_claims_that_were_seen_before_it_and_none_that_came_later() -> None:
    kube = _LateKube()
    async with _gatherer(kube) as (gatherer, _):
        _put_namespace(kube, cloud="aws")
        early = [f"early-{number}" for number in range(20)]
        await _put_claims(kube, gatherer, *early)
        assert [await _labels(gatherer, name) for name in early] == [{"cloud": "aws"}] * len(early)
        assert kube.reads == 1
        _put_namespace(kube, **_AZURE)
        await _put_claims(kube, gatherer, "late")
        assert await _labels(gatherer, "late") == _AZURE
        assert kube.reads == 2


async def test_a_claim_whose_namespace_is_gone_is_looked_at_again() -> None:
    kube = _LateKube()
    async with _gatherer(kube) as (gatherer, _):
        await _put_claims(kube, gatherer, "orders")
        with pytest.raises(Conflict, match="namespace shop is gone"):
            await _labels(gatherer, "orders")


def _candidate(name: str, *, applies_to: dict[str, Any] | None = None, allowed: Any = None) -> Candidate:
    made = Candidate(name, {}, None if applies_to is None else msgspec.convert(applies_to, AppliesTo))
    return made if allowed is None else replace(made, allowed=msgspec.convert(allowed, AllowedNamespaces))


_EVERYWHERE = _candidate("everywhere", applies_to={})
_OF_AZURE = _candidate("azure", applies_to={"namespaceSelector": {"matchLabels": _AZURE}})


class _Library:
    """Two Compositions that wait for their check: one for all, one for namespaces of Azure."""

    def candidates(self, api_version: str, kind: str) -> tuple[Candidate, ...]:
        del api_version, kind
        refusal = cause("CompositionNotFound", "not checked yet")
        return tuple(replace(candidate, refusal=refusal) for candidate in (_EVERYWHERE, _OF_AZURE))

    def revisions(self, composition: str) -> tuple[Revision, ...]:
        del composition
        return ()

    def environment(self, name: str) -> dict[str, str] | None:
        del name
        return None

    async def render(self, request: Request) -> Rendered:
        raise AssertionError(f"{request.composition_name} is not checked")


def test_a_claim_that_has_its_composition_does_not_depend_on_the_namespace() -> None:
    preparer = Preparer(_Library(), _Library())
    assert preparer.is_chosen_by_namespace(snapshot(of=claim()))
    assert not preparer.is_chosen_by_namespace(snapshot(of=claim(annotations={names.COMPOSITION: "everywhere"})))


@dataclass
class _ByNamespace(Prepares):
    """Chooses by the labels of the namespace, and notes by which."""

    labels: list[dict[str, str]] = field(default_factory=list)

    def is_chosen_by_namespace(self, _seen: Any) -> bool:
        return True

    def choose(self, seen: Any) -> Any:
        self.labels.append(dict(seen.namespace_labels))
        return super().choose(seen)


@dataclass
class _LiveReads(Reads):
    async def with_live_namespace(self, seen: Any) -> Any:
        namespace = {"metadata": {"name": "shop", "labels": _AZURE}}
        return replace(seen, namespace=namespace)


async def test_a_pass_chooses_by_the_live_namespace_where_it_decides() -> None:
    owner, kube, composed = claim(), LoggedKube(), rendered(child(desired(), ready=False))
    seen = replace(snapshot(of=owner), namespace=None)
    kube.objects[CLAIMS, seen.key] = owner
    preparer = _ByNamespace(composed)
    reads = _LiveReads(Cache(kube).informer(CLAIMS), seen, None)
    await reconciler(reads, composed, kube, lambda: 0.0, preparer=preparer).reconcile(seen.key)
    assert preparer.labels == [_AZURE]
