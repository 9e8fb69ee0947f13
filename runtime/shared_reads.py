"""Live reads of metadata that many may share: whoever asks before a read begins gets its answer.

An answer is as good as that of a read of one's own: it began after it was asked for. So it proves what a live read
proves, while a thousand passes at once over objects of some namespaces read those namespaces some times only. Reads of
one resource begin no closer to each other than `spacing`: a lone one begins at once, and a crowd shares more of them.
Where a crowd asks for several objects of a resource, one list answers instead of a request for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from runtime import clock
from runtime.errors import NotFound
from runtime.kube import Kube, Selection
from runtime.objects import Key, Object, Resource, key_of, loads

# An estimate: so many objects in a list of metadata cost the API server no more than a request for one.
_OBJECTS_PER_REQUEST: Final = 20


@dataclass(slots=True)
class _Turns:
    """The reads of one resource: one at a time, and at most one that has not begun.

    `waiting`: for which objects the next one is awaited. `not_before` is when it may begin, in seconds of the loop's
    clock.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: dict[Key, asyncio.Future[Object]] = field(default_factory=dict)
    next_read: asyncio.Task[None] | None = None
    not_before: float = 0.0


class SharedReads:
    """Reads the metadata of objects live, once for all that ask before a read begins.

    `size` returns about how many objects of a resource there are: whether a list is cheaper depends on it.
    """

    def __init__(
        self, kube: Kube, *, spacing: timedelta = timedelta(), size: Callable[[Resource], int] | None = None
    ) -> None:
        self._kube = kube
        self._spacing = spacing.total_seconds()
        self._size = size
        self._turns: dict[Resource, _Turns] = {}
        # The event loop itself refers to tasks weakly.
        self._reads: set[asyncio.Task[None]] = set()

    async def get(self, resource: Resource, key: Key) -> Object:
        """Return an object's metadata by a read that began after this call; callers must not change it.

        Raises NotFound when it is absent, and any other ApiError of the read.
        """
        turns = self._turns.setdefault(resource, _Turns())
        answer = turns.waiting.get(key)
        if answer is None:
            answer = turns.waiting[key] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(_retrieve)
        if turns.next_read is None:
            turns.next_read = asyncio.create_task(self._take_turn(resource, turns))
            self._reads.add(turns.next_read)
            turns.next_read.add_done_callback(self._reads.discard)
        # One that is cancelled leaves the read to the others.
        return await asyncio.shield(answer)

    async def _take_turn(self, resource: Resource, turns: _Turns) -> None:
        """Wait for the turn of the next read, make it, and answer who asked before it began."""
        loop = asyncio.get_running_loop()
        async with turns.lock:
            if clock.loop_time() < turns.not_before:
                await asyncio.sleep(turns.not_before - clock.loop_time())
            waiting, turns.waiting = turns.waiting, {}
            turns.next_read, turns.not_before = None, clock.loop_time() + self._spacing
            answers: Sequence[Object | BaseException]
            try:
                answers = await self._read(resource, tuple(waiting))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer: nobody waits for ever
                answers = [error] * len(waiting)
            finally:
                loop.call_later(self._spacing, self._forget, resource, turns)
        for future, answer in zip(waiting.values(), answers, strict=True):
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    async def _read(self, resource: Resource, keys: tuple[Key, ...]) -> Sequence[Object | BaseException]:
        """Return the objects in the order of their keys, with the error in place of one that could not be read."""
        saved = len(keys) - 1
        if not (saved and self._size is not None and self._size(resource) <= _OBJECTS_PER_REQUEST * saved):
            reads = (self._kube.get(resource, key, metadata_only=True) for key in keys)
            return await asyncio.gather(*reads, return_exceptions=True)
        page = await self._kube.list_page(resource, Selection(metadata_only=True), limit=0)
        listed = {key_of(item): item for item in map(loads, page.items)}
        return [listed.get(key) or NotFound(f"{resource.plural} {key} is not in the list") for key in keys]

    def _forget(self, resource: Resource, turns: _Turns) -> None:
        """Drop what is known of a resource that nobody reads, and that the next one may read at once."""
        is_over = clock.loop_time() >= turns.not_before
        if turns.next_read is None and not turns.lock.locked() and is_over and self._turns.get(resource) is turns:
            del self._turns[resource]


def _retrieve(answer: asyncio.Future[Object]) -> None:
    """Look at the error of a read whose askers were all cancelled, so that nothing complains of it."""
    if not answer.cancelled():
        answer.exception()
