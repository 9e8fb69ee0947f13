"""Which kinds are watched: those of claims while they are of use, composed ones while a claim uses them.

One key is one kind, as `Kind.group`. Whatever happens around it (its CRD comes, changes or goes, a Composition names it
or no longer does, its last object is gone) ends in a look at that kind, which starts or stops what serves it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from composer.composition.store import Library
from composer.inventory import recorded_kinds
from composer.kinds.catalog import KindFacts
from composer.kinds.cluster import Cluster
from runtime.cache import Informer
from runtime.controller import Controller
from runtime.objects import Key, Object
from runtime.results import SETTLED, Result

_LISTING_PACE: Final = timedelta(seconds=2)
_PATIENCE_SECONDS: Final = 10.0


def used_kinds(claim: Object) -> tuple[str, ...]:
    """Find claims by the kinds in which they may have children."""
    return tuple(recorded_kinds(claim))


@dataclass(frozen=True, slots=True)
class Served:
    """One kind of claim at work. `began` is of the loop's clock, in seconds."""

    facts: KindFacts
    claims: Informer
    controller: Controller
    began: float


class Service(Protocol):
    """What takes up a kind of claim, and lets go of it again."""

    def begin(self, facts: KindFacts) -> Served:
        """Watch and reconcile the claims of a kind."""

    async def end(self, served: Served) -> None:
        """Stop after the passes in flight."""


class KindReconciler:
    """One look at one kind. `idle` is how long a composed kind stays watched although no claim uses it."""

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
        """Take up all kinds of claims there are: whether one is of use is known when its claims are listed.

        What a provider serves is watched from the start: a child may be going whose claim is gone, and wait for its
        teardown instruction.
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
        looks = (await self._look_at_claims(kind), self._look_at_children(kind))
        return Result(requeue_after=min(pace for pace in looks if pace)) if any(looks) else SETTLED

    async def _look_at_claims(self, kind: str) -> timedelta | None:
        """Return when to look again; None when nothing is left to be seen."""
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
        """Return whether a kind of claim is of use; while its claims are not listed nobody knows of none."""
        return self._is_named(facts) or not served.claims.synced.is_set() or len(served.claims.store) > 0

    def _is_named(self, facts: KindFacts) -> bool:
        return facts.abstract and (facts.is_shipped or bool(self._library.serving(facts.resource.group_kind)))

    def _report_listing(self, kind: str, facts: KindFacts, served: Served) -> timedelta | None:
        """Tell the Compositions of a kind whether its claims can be listed."""
        is_listed = served.claims.synced.is_set()
        is_unlistable = not is_listed and asyncio.get_running_loop().time() - served.began > _PATIENCE_SECONDS
        if is_unlistable != (kind in self._unlistable):
            self._unlistable ^= {kind}
            for composition in self._library.serving(kind):
                self._requeue(composition)
        if not is_listed:
            return _LISTING_PACE
        return None if self._is_named(facts) else self._idle

    def _look_at_children(self, kind: str) -> timedelta | None:
        facts, watches = self._cluster.catalog.get(kind), self._cluster.watches
        watched = [each for each in watches if each.resource.group_kind == kind]
        for each in watched:
            is_served = facts is not None and facts.resource == each.resource
            is_idle = watches.idle_for(each.resource) >= self._idle
            if not is_served or (is_idle and not len(each.store) and not self._is_used(kind)):
                watches.drop(each.resource)
        return self._idle if any(watches.find(each.resource) for each in watched) else None

    def _is_used(self, kind: str) -> bool:
        """Return whether a claim has or may have objects of a composed kind; while claims are not listed one may."""
        claims = [served.claims for served in self._served.values()]
        return any(not each.synced.is_set() or each.store.by_index("kind", kind) for each in claims)
