"""The informers of composed kinds: started when a pass first needs one, stopped when no claim needs it any more.

Each watches only the objects with our label. A kind that cannot be listed (not served, no right) blocks only the
claims that use it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from apis import names
from runtime import clock
from runtime.cache import Cache, Informer
from runtime.changes import Change
from runtime.controller import Controller, Source
from runtime.errors import Conflict
from runtime.kube import Selection
from runtime.objects import Key, Object, Resource, annotations_of, deleting, labels_of, metadata

CHILDREN: Final = Selection(labels=names.CLAIM_LABEL, others_than=names.PREFIX)
_SYNC_PATIENCE: Final = timedelta(seconds=10)
# The children of a claim are often changed together: one pass answers them all.
_PATIENCE: Final = timedelta(milliseconds=50)


def claim_index(child: Object) -> Iterable[str]:
    """Return the index value of a child: its namespace and claim label."""
    return (f"{metadata(child).get('namespace', '')}/{labels_of(child).get(names.CLAIM_LABEL, '')}",)


def dying_index(child: Object) -> Iterable[str]:
    """Return the index value of a child that is being deleted: its namespace and the claim's name; else none."""
    if not deleting(child):
        return ()
    return (f"{metadata(child).get('namespace', '')}/{annotations_of(child).get(names.CLAIM_NAME, '')}",)


def name_index(child: Object) -> Iterable[str]:
    """Return the index value of a child: its namespace and the claim's name, whatever claim of that name it is of."""
    return (f"{metadata(child).get('namespace', '')}/{annotations_of(child).get(names.CLAIM_NAME, '')}",)


@dataclass(slots=True)
class _Watch:
    """An informer, when it was started and when a pass last used it, by the loop's clock in seconds."""

    informer: Informer
    began: float
    used: float


class Watches:
    """All composed kinds that are watched, and the controllers of claims that their objects wake."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._watches: dict[Resource, _Watch] = {}
        self._controllers: list[Controller] = []
        self._begun: Callable[[str], None] | None = None

    def __iter__(self) -> Iterator[Informer]:
        return iter(tuple(watch.informer for watch in self._watches.values()))

    def on_begin(self, begun: Callable[[str], None]) -> None:
        """Call `begun` with the kind (`Kind.group`) of each watch that starts."""
        self._begun = begun

    def subscribe(self, controller: Controller) -> None:
        """Add a controller of claims, which changes of children wake."""
        self._controllers.append(controller)
        for watch in self._watches.values():
            controller.source(Source(watch.informer, keys=claim_keys, patience=_PATIENCE))

    def unsubscribe(self, controller: Controller) -> None:
        """Remove a controller of claims."""
        self._controllers.remove(controller)

    def find(self, resource: Resource) -> Informer | None:
        """Return the informer of a kind that is watched."""
        watch = self._watches.get(resource)
        return watch.informer if watch else None

    def listed(self, resource: Resource) -> Informer:
        """Return the informer of a kind whose objects are all known. Raises Conflict: it was dropped meanwhile."""
        informer = self.find(resource)
        if informer is None or not informer.synced.is_set():
            raise Conflict(f"{resource.group_kind} is not listed any more")
        return informer

    async def unlisted(self, resources: Iterable[Resource]) -> tuple[str, ...]:
        """Watch kinds; return those that have no complete list after their first seconds."""
        watches = [self._used(resource) for resource in resources]
        return tuple([watch.informer.resource.group_kind for watch in watches if not await _syncs(watch)])

    def begin(self, resource: Resource) -> None:
        """Watch a kind before any pass needs it."""
        self._used(resource)

    def retry(self, resource: Resource) -> None:
        """List a kind again whose list was refused: the composer may read it now."""
        informer = self.find(resource)
        if informer is not None:
            informer.retry_now(granted=True)

    def idle_for(self, resource: Resource) -> timedelta:
        """Return for how long no pass has used a kind that is watched."""
        return timedelta(seconds=clock.loop_time() - self._watches[resource].used)

    def drop(self, resource: Resource) -> None:
        """Stop watching a kind; the next pass that needs it starts a new watch."""
        watch = self._watches.pop(resource)
        for controller in self._controllers:
            controller.unsource(watch.informer)
        self._cache.drop(resource, CHILDREN)

    def _used(self, resource: Resource) -> _Watch:
        now = clock.loop_time()
        watch = self._watches.get(resource)
        if watch is None:
            indexes = {"claim": claim_index, "dying": dying_index, "name": name_index}
            informer = self._cache.informer(resource, selection=CHILDREN, indexes=indexes, required=False)
            watch = self._watches[resource] = _Watch(informer, now, now)
            for controller in self._controllers:
                controller.source(Source(informer, keys=claim_keys, patience=_PATIENCE))
            if self._begun:
                self._begun(resource.group_kind)
        watch.used = now
        return watch


async def _syncs(watch: _Watch) -> bool:
    """Return whether a watch has its list, after its first seconds, for which all passes wait."""
    if watch.informer.synced.is_set():
        return True
    try:
        async with asyncio.timeout_at(watch.began + _SYNC_PATIENCE.total_seconds()):
            await watch.informer.synced.wait()
    except TimeoutError:
        return False
    return True


def claim_keys(change: Change) -> Iterable[Key]:
    """Return the key of the claim of a changed child."""
    for record in (change.before, change.after):
        if record is None:
            continue
        name = annotations_of(record.decode()).get(names.CLAIM_NAME)
        if name:
            yield Key(change.key.namespace, name)
            return
