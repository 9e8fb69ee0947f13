"""The informers of one process: one per resource and selection, started on demand, stopped when dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TypeAlias

from runtime import metrics
from runtime.changes import Change, ChangeKind
from runtime.kube import Kube, Selection
from runtime.objects import Resource
from runtime.record import Index
from runtime.reflector import Reflector, Timing
from runtime.store import Store

Subscriber: TypeAlias = Callable[[Change], None]

_REPLAY_SLICE = 200
_EVERYTHING = Selection()


class Informer:
    """A store, the reflector that feeds it, and who wants to hear of changes.

    `required`: nothing works before it has its first list; else it is somebody's who asks for it on demand.
    """

    def __init__(self, kube: Kube, resource: Resource, selection: Selection, timing: Timing) -> None:
        self.resource = resource
        self.selection = selection
        self.store = Store(resource, others_than=selection.others_than)
        self._subscribers: list[Subscriber] = []
        self._reflector = Reflector(kube, self.store, selection, self._publish, timing)

    @property
    def required(self) -> bool:
        """Whether nothing works before the first list."""
        return self._reflector.required

    @required.setter
    def required(self, value: bool) -> None:
        self._reflector.required = value

    @property
    def is_refused(self) -> bool:
        """Whether the first list was refused, by the last answer: the kind is not served, or a right is missing."""
        return self._reflector.is_refused

    @property
    def synced(self) -> asyncio.Event:
        """Set once the first complete list is in the store."""
        return self._reflector.synced

    @property
    def stale_for(self) -> timedelta:
        """How long ago the API server last spoke of this resource."""
        return self._reflector.stale_for

    @property
    def went_back(self) -> bool:
        """Whether the API server's resourceVersions of this resource went back, so that only a restart helps."""
        return self._reflector.went_back

    def subscribe(self, callback: Subscriber) -> None:
        """Call `callback` for every later change; `replay` gives what is there already."""
        self._subscribers.append(callback)

    def unsubscribe(self, callback: Subscriber) -> None:
        """End a subscription; unknown callbacks are ignored."""
        if callback in self._subscribers:
            self._subscribers.remove(callback)

    async def replay(self, callback: Subscriber) -> None:
        """Call `callback` for every stored object as if a list had just found it, in slices."""
        for number, record in enumerate(self.store.records()):
            callback(Change(record.key, ChangeKind.ADDED, None, record, initial=True))
            if number % _REPLAY_SLICE == 0:
                await asyncio.sleep(0)

    def retry_now(self, *, granted: bool = False) -> None:
        """End the pause of a backed-off watch; with `granted`, also that after a refusal."""
        self._reflector.retry_now(granted=granted)

    async def run(self) -> None:
        """Feed the store until cancelled."""
        await self._reflector.run()

    def _publish(self, change: Change) -> None:
        for callback in tuple(self._subscribers):
            callback(change)


class Cache:
    """All informers; `run` keeps them going."""

    def __init__(self, kube: Kube, *, timing: Timing | None = None) -> None:
        self._kube = kube
        self._timing = timing or Timing()
        self._informers: dict[tuple[Resource, Selection], Informer] = {}
        self._tasks: dict[tuple[Resource, Selection], asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    def informer(
        self,
        resource: Resource,
        *,
        selection: Selection = _EVERYTHING,
        indexes: Mapping[str, Index] | None = None,
        required: bool = True,
    ) -> Informer:
        """Return the one informer of (resource, selection), started when the cache runs.

        Ask again with more `indexes` to add them. Raises ValueError when an index name means another function.
        """
        wanted = (resource, selection)
        informer = self._informers.get(wanted)
        if informer is None:
            informer = Informer(self._kube, resource, selection, self._timing)
            self._informers[wanted] = informer
            self._start(wanted)
        informer.required = informer.required or required
        for name, index in (indexes or {}).items():
            informer.store.add_index(name, index)
        return informer

    def drop(self, resource: Resource, selection: Selection = _EVERYTHING) -> None:
        """Stop the informer of (resource, selection); the next call of `informer` makes a new one."""
        self._informers.pop((resource, selection), None)
        task = self._tasks.pop((resource, selection), None)
        if task:
            task.cancel()
        if not any(informer.resource.group_kind == resource.group_kind for informer in self):
            with suppress(KeyError):
                metrics.REFLECTOR_STALE_SECONDS.remove(resource.group_kind)

    async def run(self) -> None:
        """Run all informers, also those asked for later, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for wanted in self._informers:
                    self._start(wanted)
                await asyncio.Event().wait()
        finally:
            self._group = None
            self._tasks.clear()

    async def wait_synced(self, timeout: timedelta | None = None) -> None:  # noqa: ASYNC109  # names what is missing
        """Wait until every required informer known now has its first list; TimeoutError names those without."""
        try:
            async with asyncio.timeout(timeout.total_seconds() if timeout else None):
                for informer in self:
                    if informer.required:
                        await informer.synced.wait()
        except TimeoutError:
            missing = sorted(
                informer.resource.group_kind for informer in self if informer.required and not informer.synced.is_set()
            )
            raise TimeoutError(f"no complete list yet of {', '.join(missing)}") from None

    def synced(self) -> bool:
        """Return whether every required informer has its first list."""
        return all(informer.synced.is_set() for informer in self if informer.required)

    def retry_now(self) -> None:
        """Let every backed-off watch dial at once: the API server was just reached."""
        for informer in self:
            informer.retry_now()

    def stalest(self) -> timedelta:
        """Return for how long the quietest watch has had no event, and publish that of each.

        What is refused has no watch: the API server answers, and is asked rarely.
        """
        for informer in self:
            label = informer.resource.group_kind
            metrics.REFLECTOR_STALE_SECONDS.labels(label).set(informer.stale_for.total_seconds())
        return max((informer.stale_for for informer in self if not informer.is_refused), default=timedelta())

    def freshest(self) -> timedelta:
        """Return how long ago the API server last spoke on any watch."""
        return min((informer.stale_for for informer in self), default=timedelta())

    def __iter__(self) -> Iterator[Informer]:
        return iter(tuple(self._informers.values()))

    def _start(self, wanted: tuple[Resource, Selection]) -> None:
        if self._group is not None and wanted not in self._tasks:
            self._tasks[wanted] = self._group.create_task(
                self._informers[wanted].run(), name=f"watch {wanted[0].plural}"
            )
