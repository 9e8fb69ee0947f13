"""Builds the composer's controllers: one for Compositions, one for kinds, and one for each kind of claim in use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from apis import names
from apis.metrics import OBJECTS
from apis.traces import subject_of
from composer.claim.act import Actor
from composer.claim.compose import Preparer, Renderer
from composer.claim.gather import Gatherer
from composer.claim.reconciler import ClaimReconciler, Tools
from composer.composition.reconciler import Checker, CompositionReconciler
from composer.composition.store import Library, claims_index
from composer.connection.passwords import PasswordKeeper
from composer.connection.publisher import Publisher
from composer.kind_reconciler import KindReconciler, Served, used_kinds
from composer.kinds.catalog import KindFacts
from composer.kinds.cluster import Cluster
from composer.kinds.live_namespaces import UNDECIDED
from composer.kinds.secret_watches import NAMESPACE_INDEX, SecretWatches
from composer.predicates import changes_admission, changes_choice, changes_kind, changes_rollout, is_unanswered
from runtime import clock
from runtime.cache import Informer
from runtime.changes import Change
from runtime.controller import Controller, ControllerSettings, Source, is_intent
from runtime.objects import Key, Object, annotations_of, deleting, metadata
from runtime.serve import ProcessContext

_SYNC_SECONDS = 30.0
# Longer than any pass.
_IDLE = timedelta(minutes=3)


class RenderPool(Renderer, Checker, Protocol):
    """Renders and checks templates."""


def composition_index(claim: Object) -> Iterable[str]:
    """Return the index value of a claim: the Composition that it uses, empty for none."""
    in_status = ((claim.get("status") or {}).get("composition") or {}).get("name", "")
    return (annotations_of(claim).get(names.COMPOSITION) or str(in_status),)


def namespace_index(claim: Object) -> Iterable[str]:
    """Return the index value of a claim: its namespace."""
    return (metadata(claim).get("namespace", ""),)


def undecided_index(claim: Object) -> Iterable[str]:
    """Return the index value of a claim that has no revision: the Composition that it uses, empty for none."""
    choice = (claim.get("status") or {}).get("composition") or {}
    return () if choice.get("revision") else composition_index(claim)


_CLAIM_INDEXES = {
    "composition": composition_index,
    UNDECIDED: undecided_index,
    NAMESPACE_INDEX: namespace_index,
    "kind": used_kinds,
}


async def build(
    context: ProcessContext,
    pool: RenderPool,
    *,
    resync: timedelta = timedelta(minutes=10),
) -> Sequence[Controller]:
    """Build the controllers of Compositions, kinds and Secrets' watches; those of claims join the manager.

    Raises TimeoutError.
    """
    cluster = Cluster(context.kube, context.cache)
    library = Library(cluster, context.settings.namespace)
    await context.cache.wait_synced(timedelta(seconds=_SYNC_SECONDS))
    settings = ControllerSettings(resync=resync, subject=subject_of)
    reconciler = CompositionReconciler(cluster, library, pool, context.events, clock.now)
    compositions = Controller("composition", reconciler.reconcile, settings=settings)
    compositions.source(Source(library.compositions, primary=True))
    compositions.source(Source(cluster.crds, keys=lambda change: library.concerned(kind_of(change))))
    compositions.source(Source(library.environments, keys=lambda change: settled_by(library, change)))
    compositions.source(Source(library.revision_informer, keys=ended_revision))
    secrets = SecretWatches(cluster, settings)
    service = _Service(context, cluster, library, pool, reconciler, settings, secrets)
    kind_reconciler = KindReconciler(cluster, library, service, idle=min(resync, _IDLE), requeue=compositions.enqueue)
    reconciler.is_unlistable = kind_reconciler.is_unlistable
    kinds = kinds_controller(kind_reconciler, cluster, library, settings)
    kind_reconciler.begin()
    return [compositions, kinds, secrets.controller]


def kinds_controller(
    kind_reconciler: KindReconciler, cluster: Cluster, library: Library, settings: ControllerSettings
) -> Controller:
    """Return the controller of kinds, which CRDs, Compositions that name them, and watches that start wake."""
    kinds = Controller("kind", kind_reconciler.reconcile, settings=settings)
    kinds.source(Source(cluster.crds, keys=lambda change: (Key("", kind_of(change)),)))
    kinds.source(Source(library.compositions, keys=_claim_kinds))
    cluster.watches.on_begin(lambda kind: kinds.enqueue(Key("", kind)))
    return kinds


def settled_by(library: Library, change: Change) -> Iterable[Key]:
    """Return the Compositions that are checked against a changed environment; none for a first list."""
    return () if change.initial else library.settled_by(change.key.name)


def ended_revision(change: Change) -> Iterable[Key]:
    """Return the Composition of a revision that is being deleted, or is gone."""
    revision, now = change.new() or change.old() or {}, change.new()
    if now is not None and not deleting(now):
        return ()
    return (Key("", str((revision.get("spec") or {}).get("compositionName") or "")),)


def kind_of(change: Change) -> str:
    """Return the kind (`Kind.group`) that a changed CRD defines."""
    spec = (change.new() or change.old() or {}).get("spec") or {}
    return f"{(spec.get('names') or {}).get('kind')}.{spec.get('group')}"


def _claim_kinds(change: Change) -> Iterable[Key]:
    """Return the kinds whose claims a changed Composition serves or served."""
    compositions = (obj for obj in (change.old(), change.new()) if obj is not None)
    return {Key("", kind) for composition in compositions for kind in claims_index(composition)}


@dataclass(frozen=True, slots=True)
class _Service:
    """Starts and stops kinds of claims: a watch, a controller in the manager, an entry with the Compositions' one."""

    context: ProcessContext
    cluster: Cluster
    library: Library
    pool: RenderPool
    compositions: CompositionReconciler
    settings: ControllerSettings
    secrets: SecretWatches

    def begin(self, facts: KindFacts) -> Served:
        claims = self.cluster.informer(facts.resource, required=facts.is_shipped)
        for name, index in _CLAIM_INDEXES.items():
            claims.store.add_index(name, index)
        OBJECTS.add(claims.store)
        controller = self._controller(facts, claims)
        self.cluster.watches.subscribe(controller)
        self.compositions.add(claims)
        self.context.manager.add(controller)
        return Served(facts, claims, controller, clock.loop_time())

    async def end(self, served: Served) -> None:
        await self.context.manager.remove(served.controller)
        self.cluster.watches.unsubscribe(served.controller)
        self.secrets.unsubscribe(served.controller)
        self.compositions.remove(served.claims)
        OBJECTS.remove(served.claims.store)
        self.cluster.drop(served.facts.resource)

    def _controller(self, facts: KindFacts, claims: Informer) -> Controller:
        kube, library = self.context.kube, self.library
        actor = Actor(kube, now=clock.now, remember=self._remember)
        publisher = Publisher(
            kube,
            monotonic=clock.monotonic,
            manager=names.COMPOSER_MANAGER,
            resync=self.settings.resync,
            watched=self.secrets,
        )
        passwords = PasswordKeeper(
            kube, monotonic=clock.monotonic, manager=names.COMPOSER_MANAGER, resync=self.settings.resync
        )
        tools = Tools(
            kube=kube,
            gatherer=Gatherer(self.cluster, claims),
            preparer=Preparer(library, self.pool),
            actor=actor,
            publisher=publisher,
            passwords=passwords,
            events=self.context.events,
            now=clock.now,
            monotonic=clock.monotonic,
        )
        controller = Controller(facts.resource.kind.lower(), ClaimReconciler(tools).reconcile, settings=self.settings)
        keys = _Keys(claims, library)
        controller.source(Source(claims, primary=True, urgent=_is_urgent))
        controller.source(Source(self.cluster.namespaces, keys=keys.of_namespace))
        # What the Composition's own controller writes concerns claims.
        controller.source(Source(library.compositions, keys=keys.of_composition, echoes=True))
        controller.source(Source(library.revision_informer, keys=keys.of_revision, echoes=True))
        controller.source(Source(library.environments, keys=keys.of_environment))

        def on_secret(change: Change) -> Iterable[Key]:
            passwords.forget(change.key)
            return publisher.concerned(change)

        self.secrets.subscribe(controller, claims, on_secret)

        def on_crd(change: Change) -> Iterable[Key]:
            if change.initial or not changes_kind(change):
                return ()
            actor.refusals.clear()
            return keys.of_crd(change)

        controller.source(Source(self.cluster.crds, keys=on_crd))
        return controller

    def _remember(self, kind: KindFacts, obj: Object, over: str) -> None:
        watched = self.cluster.watches.find(kind.resource)
        if watched:
            watched.store.remember(obj, over=over)


def _is_urgent(change: Change) -> bool:
    """Return whether a change comes first: an intent without an answer, also one from before the start."""
    return is_intent(change) or (change.initial and is_unanswered(change))


class _Keys:
    """Returns the claims that a change of another object concerns; none for what the first list has."""

    def __init__(self, claims: Informer, library: Library) -> None:
        self._claims = claims
        self._library = library

    def of_namespace(self, change: Change) -> Iterable[Key]:
        return () if change.initial else self._claims.store.by_index(NAMESPACE_INDEX, change.key.name)

    def of_composition(self, change: Change) -> Iterable[Key]:
        if change.initial or not changes_choice(change):
            return ()
        index = "composition" if changes_admission(change) else UNDECIDED
        return self._of_compositions(("", change.key.name), index=index)

    def of_revision(self, change: Change) -> Iterable[Key]:
        obj = change.after or change.before
        if change.initial or obj is None or not changes_rollout(change):
            return ()
        name = str((obj.decode().get("spec") or {}).get("compositionName", ""))
        return self._of_compositions(("", name))

    def of_environment(self, change: Change) -> Iterable[Key]:
        return () if change.initial else self._of_compositions(self._library.reading(change.key.name))

    def of_crd(self, change: Change) -> Iterable[Key]:
        """Return the claims of a kind, those that have objects of it, and those that wait for it."""
        kind, store = kind_of(change), self._claims.store
        if kind == self._claims.resource.group_kind:
            return tuple(store.keys())
        return {*store.by_index("kind", kind), *self._of_compositions(self._library.composing(kind))}

    def _of_compositions(self, compositions: Iterable[str], *, index: str = "composition") -> tuple[Key, ...]:
        store = self._claims.store
        return tuple(key for name in compositions for key in store.by_index(index, name))
