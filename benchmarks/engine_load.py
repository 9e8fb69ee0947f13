"""The other side of the engine's benchmark: who makes claims, who answers for the provider, who watches the clock."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from benchmarks import engine_objects as objects
from runtime.conditions import find
from runtime.errors import AlreadyExists, NoAnswer
from runtime.kube import Kube, Selection
from runtime.objects import SECRETS, Key, Object, Resource, generation_of, key_of, loads

_AT_ONCE = 32
_MANAGER = "kubectl-bench"
_WATCH = timedelta(minutes=30)
# A machine with other work takes many times as long as one without.
_LIMIT_SECONDS = 900.0
_T = TypeVar("_T")


@dataclass(slots=True)
class Seen:
    """What the watches have sent, with the instant of each first."""

    composed: dict[Key, float] = field(default_factory=dict)
    ready: dict[Key, float] = field(default_factory=dict)
    limits: dict[Key, int] = field(default_factory=dict)
    carrying: Counter[int] = field(default_factory=Counter)
    overwritten: set[Key] = field(default_factory=set)
    gone: set[Key] = field(default_factory=set)
    latest: str = ""
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)


class Load:
    """Makes claims and children's answers against one API server, with a bounded number of requests in flight."""

    def __init__(self, kube: Kube, *, limit_seconds: float = _LIMIT_SECONDS, at_once: int = _AT_ONCE) -> None:
        self.kube = kube
        self._limit_seconds = limit_seconds
        self._at_once = at_once
        self.seen = Seen()
        self._children: dict[str, set[Key]] = {}
        self._resources: dict[Key, str] = {}
        self._answers = asyncio.Semaphore(at_once)
        self._answering: set[asyncio.Task[None]] = set()
        self._is_provider = True

    @asynccontextmanager
    async def watching(self, *, answers: bool = True) -> AsyncIterator[None]:
        """Watch claims and children while the body runs; `answers` for each new child as a provider does."""
        self._is_provider = answers
        started = asyncio.Barrier(3)
        watches = [
            asyncio.create_task(self._watch(objects.CLAIMS, self._see_claim, started)),
            asyncio.create_task(self._watch(objects.CHILDREN, self._see_child, started)),
        ]
        await started.wait()
        try:
            yield
        finally:
            for task in (*watches, *self._answering):
                task.cancel()
            await asyncio.gather(*watches, *self._answering, return_exceptions=True)

    async def claim(self, key: Key) -> None:
        """Make one claim."""
        await sent(partial(self.kube.create, objects.CLAIMS, objects.claim(key), manager=_MANAGER))

    async def claims(self, keys: Iterable[Key]) -> None:
        """Make claims, many at once."""
        await in_parallel([partial(self.claim, key) for key in keys], at_once=self._at_once)

    def children_of(self, resources: Collection[str]) -> list[Key]:
        """Return the children that were made for these resources of the Composition."""
        return [key for key, resource in self._resources.items() if resource in resources]

    def children_of_claims(self, claims: Iterable[Key]) -> set[Key]:
        """Return the children that were made for these claims."""
        return {child for claim in claims for child in self._children.get(f"{claim.namespace}/{claim.name}", ())}

    async def overwrite(self, keys: Iterable[Key]) -> None:
        """Set one field of children by hand."""
        patch = objects.set_value(objects.LIMIT_PATH, objects.BY_HAND)

        async def edit(key: Key) -> None:
            await self.kube.json_patch(objects.CHILDREN, key, patch, manager=_MANAGER)

        await in_parallel([partial(edit, key) for key in keys])

    async def change_composition(self, limit: int) -> None:
        """Set one constant of the Composition, for both children."""
        patch = [
            operation
            for number in range(len(objects.RESOURCES))
            for operation in objects.set_value(objects.CHANGED_PATH.format(number), limit)
        ]
        key = Key("", objects.COMPOSITION_NAME)
        await self.kube.json_patch(objects.COMPOSITIONS, key, patch, manager=_MANAGER)

    async def delete(self, keys: Iterable[Key]) -> None:
        """Delete claims, many at once, each as it is stored."""

        async def delete(key: Key) -> None:
            stored = await self.kube.get(objects.CLAIMS, key, metadata_only=True)
            uid, version = stored["metadata"]["uid"], stored["metadata"]["resourceVersion"]
            await self.kube.delete(objects.CLAIMS, key, uid=uid, resource_version=version)

        await in_parallel([partial(delete, key) for key in keys])

    def forget(self) -> None:
        """Forget all that was seen, after all claims and children are gone."""
        self.seen = Seen()
        self._children.clear()
        self._resources.clear()

    async def until(self, holds: Callable[[], bool], goal: str) -> float:
        """Wait for a state of what was seen; return the instant (monotonic seconds)."""
        try:
            async with asyncio.timeout(self._limit_seconds), self.seen.changed:
                await self.seen.changed.wait_for(holds)
        except TimeoutError:
            counts = len(self.seen.composed), len(self.seen.ready)
            raise RuntimeError(
                f"{goal}: not within {self._limit_seconds:g} s; composed, ready: {counts}; {self.seen.latest}"
            ) from None
        return time.monotonic()

    def all_carry(self, limit: int) -> bool:
        """Return whether all children have a limit; counted, since it is asked after every event."""
        return self.seen.carrying[limit] == len(self.seen.limits)

    async def _watch(self, resource: Resource, see: Callable[[Object], None], started: asyncio.Barrier) -> None:
        page = await self.kube.list_page(resource, Selection(), limit=1)
        version = page.resource_version
        await started.wait()
        # The server ends the watch of whoever reads too slowly (the cacher's budget); it goes on where it ended.
        while True:
            events: Any = self.kube.watch(resource, Selection(), resource_version=version, timeout=_WATCH)
            async with aclosing(events):
                async for event in events:
                    seen = loads(event.raw)
                    version = seen["metadata"]["resourceVersion"]
                    if event.kind in {"ADDED", "MODIFIED"}:
                        see(seen)
                    elif event.kind == "DELETED":
                        self.seen.gone.add(key_of(seen))
                    else:
                        continue
                    async with self.seen.changed:
                        self.seen.changed.notify_all()

    def _see_claim(self, claim: Object) -> None:
        ready = find(claim, "Ready")
        self.seen.latest = f"{key_of(claim)}: {ready and ready['message']}"
        reported = ready and (ready["status"], ready.get("observedGeneration")) == ("True", generation_of(claim))
        if reported:
            self.seen.ready.setdefault(key_of(claim), time.monotonic())

    def _see_child(self, child: Object) -> None:
        key = key_of(child)
        limit = child["spec"]["forProvider"]["connectionLimit"]
        self.seen.carrying[self.seen.limits.get(key, limit)] -= key in self.seen.limits
        self.seen.carrying[limit] += 1
        self.seen.limits[key] = limit
        if limit == objects.BY_HAND:
            self.seen.overwritten.add(key)
        owner = str(child["metadata"]["annotations"]["fairlead.dev/claim-name"])
        siblings = self._children.setdefault(f"{key.namespace}/{owner}", set())
        if key in siblings:
            return
        siblings.add(key)
        self._resources[key] = child["metadata"]["annotations"]["fairlead.dev/resource"]
        if len(siblings) == len(objects.RESOURCES):
            self.seen.composed[Key(key.namespace, owner)] = time.monotonic()
        if not self._is_provider:
            return
        task = asyncio.create_task(self._answer(child))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(self, child: Object) -> None:
        async with self._answers:
            if objects.is_for_connection(child):
                await sent(partial(self.kube.create, SECRETS, objects.credentials(child), manager=_MANAGER))
            ready = objects.ready_child(child)
            report = partial(self.kube.apply, objects.CHILDREN, ready, manager=_MANAGER, force=True)
            await sent(partial(report, subresource="status"))


async def sent(call: Callable[[], Awaitable[object]]) -> None:
    """Send a creation or an apply until it is answered: on a busy machine a first request may have no answer."""
    while True:
        with suppress(AlreadyExists):
            try:
                await call()
            except NoAnswer:
                continue
        return


async def in_parallel(calls: Iterable[Callable[[], Awaitable[_T]]], *, at_once: int = _AT_ONCE) -> None:
    """Make calls, a bounded number at a time."""
    waiting = iter(calls)

    async def worker() -> None:
        for call in waiting:
            await call()

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(worker())
