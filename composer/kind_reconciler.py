"""Reconciles kinds: kinds of claims are watched while they are of use, composed ones while a claim uses them.

One key is one kind, as `Kind.group`. An event around it (its CRD is created, changed or deleted, a Composition begins
or ceases to name it, its last object is gone) leads to a pass over it, which starts or stops what serves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from composer.composition.store import Library
from composer.inventory import recorded_kinds
from composer.kinds.catalog import KindFacts
from composer.kinds.cluster import Cluster
from runtime import clock
from runtime.cache import Informer
from runtime.controller import Controller
from runtime.objects import Key, Object
from runtime.results import SETTLED, Result

_LISTING_RETRY: Final = timedelta(seconds=2)
_PATIENCE_SECONDS: Final = 10.0
# A claim that needs a kind uses its watch far more often than that.
_REFUSED_IDLE: Final = timedelta(seconds=30)


def used_kinds(claim: Object) -> tuple[str, ...]:
    """Return the index values of a claim: the kinds in which it may have children."""
    return tuple(recorded_kinds(claim))


@dataclass(frozen=True, slots=True)
class Served:
    """One kind of claim that is watched and reconciled. `began` is of the loop's clock, in seconds."""

    facts: KindFacts
    claims: Informer
    controller: Controller
    began: float


class Service(Protocol):
    """Starts and stops the controller of a kind of claim."""

    def begin(self, facts: KindFacts) -> Served:
        """Watch and reconcile the claims of a kind."""

    async def end(self, served: Served) -> None:
        """Stop after the passes in flight."""


class KindReconciler:
    """One pass over one kind. `idle` is how long a composed kind stays watched although no claim uses it."""

    def __init__(
        self, cluster: Cluster, library: Library, service: Service, *, idle: timedelta, requeue: Callable[[Key], None]
    ) -> None:
        self._cluster = cluster
        self._library = library
        self._service = service
        self._idle = idle
        self._requeue = requeue
        self._served: dict[str, Served] = {}
        self._started: set[str] = set()
        self._unlistable: set[str] = set()

    def begin(self) -> None:
        """Start all kinds of claims there are: whether one is of use is known when its claims are listed.

        What a provider serves is watched from the start: a child may be in deletion whose claim is gone, and wait for
        its teardown instruction.
        """
        for kind, facts in self._cluster.catalog.items():
            if facts.abstract:
                self._begin(kind, facts)
            elif facts.managed and facts.allowed:
                self._cluster.watches.begin(facts.resource)

    def is_unlistable(self, kind: str) -> bool:
        """Return whether the claims of a kind cannot be listed."""
        return kind in self._unlistable

    async def reconcile(self, key: Key) -> Result:
        """Start or stop what serves a kind."""
        kind = key.name
        delays = (await self._reconcile_claims(kind), self._reconcile_children(kind))
        return Result(requeue_after=min(delay for delay in delays if delay)) if any(delays) else SETTLED

    async def _reconcile_claims(self, kind: str) -> timedelta | None:
        """Start or stop the controller of a kind of claim; return when to check again, None when not."""
        facts, served = self._cluster.catalog.get(kind), self._served.get(kind)
        if served and not (facts and facts.resource == served.facts.resource and self._is_wanted(facts, served)):
            del self._served[kind]
            await self._service.end(served)
            served = None
        if facts is None:
            self._started.discard(kind)
        elif served is None and facts.abstract and (kind not in self._started or self._is_named(facts)):
            served = self._begin(kind, facts)
        return self._report_listing(kind, facts, served) if facts and served else None

    def _begin(self, kind: str, facts: KindFacts) -> Served:
        self._started.add(kind)
        served = self._served[kind] = self._service.begin(facts)
        return served

    def _is_wanted(self, facts: KindFacts, served: Served) -> bool:
        """Return whether a kind of claim is of use, as it is while its claims are not listed."""
        return self._is_named(facts) or not served.claims.synced.is_set() or len(served.claims.store) > 0

    def _is_named(self, facts: KindFacts) -> bool:
        return facts.abstract and (facts.is_shipped or bool(self._library.serving(facts.resource.group_kind)))

    def _report_listing(self, kind: str, facts: KindFacts, served: Served) -> timedelta | None:
        """Requeue the Compositions of a kind whose claims became listed or unlistable; return when to check again."""
        is_listed = served.claims.synced.is_set()
        is_unlistable = not is_listed and clock.loop_time() - served.began > _PATIENCE_SECONDS
        if is_unlistable != (kind in self._unlistable):
            self._unlistable ^= {kind}
            for composition in self._library.serving(kind):
                self._requeue(composition)
        if not is_listed:
            return _LISTING_RETRY
        return None if self._is_named(facts) else self._idle

    def _reconcile_children(self, kind: str) -> timedelta | None:
        """Stop watching a composed kind that is not served or not used any more; return when to check again.

        One that nobody uses and that the composer may not list, such as a kind of a cloud whose CRDs alone are
        installed, is given up soon.
        """
        facts, watches = self._cluster.catalog.get(kind), self._cluster.watches
        watched = [informer for informer in watches if informer.resource.group_kind == kind]
        for informer in watched:
            is_served = facts is not None and facts.resource == informer.resource
            idle = min(self._idle, _REFUSED_IDLE) if informer.is_refused else self._idle
            is_idle = watches.idle_for(informer.resource) >= idle
            if not is_served or (is_idle and not len(informer.store) and not self._is_used(kind)):
                watches.drop(informer.resource)
        left = [informer for informer in watched if watches.find(informer.resource)]
        if not left:
            return None
        return self._idle if all(informer.synced.is_set() for informer in left) else min(self._idle, _REFUSED_IDLE)

    def _is_used(self, kind: str) -> bool:
        """Return whether a claim has or may have objects of a composed kind, as one may while claims are not listed."""
        claims = [served.claims for served in self._served.values()]
        return any(not informer.synced.is_set() or informer.store.by_index("kind", kind) for informer in claims)
