"""Builds the composer's controllers: one for Compositions, one for each kind of claim."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from composer import names
from composer.act import Actor
from composer.claims import ClaimReconciler, Tools
from composer.compositions import Checker, CompositionReconciler
from composer.gather import Cluster, Gatherer
from composer.kinds import KindFacts
from composer.library import Library
from composer.news import moves, steers
from composer.prepare import Preparer, Renderer
from composer.secrets import Publisher
from runtime.cache import Informer
from runtime.changes import Change
from runtime.controller import Controller, ControllerSettings, Source
from runtime.errors import Unavailable
from runtime.objects import Key, Object, annotations_of, metadata
from runtime.serve import ProcessContext

_SYNC_SECONDS = 30.0


class Workshop(Renderer, Checker, Protocol):
    """Where templates are rendered and checked."""


def _now() -> datetime:
    return datetime.now(UTC)


def composition_index(claim: Object) -> Iterable[str]:
    """Find claims by the Composition they chose; empty for those that have not."""
    in_status = ((claim.get("status") or {}).get("composition") or {}).get("name", "")
    return (annotations_of(claim).get(names.COMPOSITION) or str(in_status),)


def namespace_index(claim: Object) -> Iterable[str]:
    """Find claims by namespace."""
    return (metadata(claim).get("namespace", ""),)


async def build(
    context: ProcessContext, workshop: Workshop, *, resync: timedelta = timedelta(minutes=10)
) -> Sequence[Controller]:
    """Build all controllers. Raises Unavailable while no kind of claim is installed."""
    cluster = Cluster(context.kube, context.cache)
    library = Library(cluster, context.settings.namespace)
    await context.cache.wait_synced(timedelta(seconds=_SYNC_SECONDS))
    kinds = [facts for facts in cluster.catalog.values() if facts.abstract and facts.resource.namespaced]
    if not kinds:
        raise Unavailable("no kind of claim is installed; install the CRDs", status=503)
    reconciler = CompositionReconciler(cluster, library, workshop, context.events, _now)
    settings = ControllerSettings(resync=resync)
    compositions = Controller("composition", reconciler.reconcile, settings=settings)
    compositions.source(Source(library.compositions, primary=True))
    compositions.source(Source(cluster.crds, keys=lambda _: tuple(library.compositions.store.keys())))
    shared = _Shared(context, cluster, library, workshop, settings)
    claims = [_claim_controller(shared, facts) for facts in kinds]
    for _, informer in claims:
        reconciler.count_in(informer)
    return [compositions, *(controller for controller, _ in claims)]


@dataclass(frozen=True, slots=True)
class _Shared:
    context: ProcessContext
    cluster: Cluster
    library: Library
    workshop: Workshop
    settings: ControllerSettings


def _claim_controller(shared: _Shared, facts: KindFacts) -> tuple[Controller, Informer]:
    context, cluster, library = shared.context, shared.cluster, shared.library
    informer = cluster.informer(facts.resource)
    informer.store.add_index("composition", composition_index)
    informer.store.add_index("namespace", namespace_index)
    gatherer = Gatherer(cluster, informer)

    def remember(kind: KindFacts, obj: Object) -> None:
        cluster.children(kind.resource).store.remember(obj)

    actor = Actor(context.kube, now=_now, remember=remember)
    tools = Tools(
        kube=context.kube,
        gatherer=gatherer,
        preparer=Preparer(library, shared.workshop),
        actor=actor,
        publisher=Publisher(context.kube, monotonic=time.monotonic, manager=names.OWN_MANAGER),
        events=context.events,
        now=_now,
        monotonic=time.monotonic,
    )
    controller = Controller(facts.resource.kind.lower(), ClaimReconciler(tools).reconcile, settings=shared.settings)
    gatherer.wake(controller)
    keys = _Keys(informer)
    controller.source(Source(informer, primary=True))
    controller.source(Source(cluster.namespaces, keys=keys.of_namespace))
    # What the Composition's own controller writes is news to claims.
    controller.source(Source(library.compositions, keys=keys.undecided, echoes=True))
    controller.source(Source(library.revision_informer, keys=keys.of_revision, echoes=True))
    controller.source(Source(library.environments, keys=keys.of_all))

    def on_crd(change: Change) -> Iterable[Key]:
        actor.memory.forget_refusals()
        return keys.of_all(change)

    controller.source(Source(cluster.crds, keys=on_crd))
    return controller, informer


class _Keys:
    """Maps changes around claims to the claims they concern. What a list finds at the start concerns nobody anew."""

    def __init__(self, claims: Informer) -> None:
        self._store = claims.store

    def of_namespace(self, change: Change) -> Iterable[Key]:
        return () if change.initial else self._store.by_index("namespace", change.key.name)

    def undecided(self, change: Change) -> Iterable[Key]:
        if change.initial or not steers(change):
            return ()
        return (*self._store.by_index("composition", ""), *self._store.by_index("composition", change.key.name))

    def of_revision(self, change: Change) -> Iterable[Key]:
        obj = change.after or change.before
        if change.initial or obj is None or not moves(change):
            return ()
        name = str((obj.decode().get("spec") or {}).get("compositionName", ""))
        return (*self._store.by_index("composition", ""), *self._store.by_index("composition", name))

    def of_all(self, change: Change) -> Iterable[Key]:
        return () if change.initial else tuple(self._store.keys())
