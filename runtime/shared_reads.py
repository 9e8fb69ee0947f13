"""Live reads that many may share: whoever asks before a read begins gets its answer.

An answer is as good as that of a read of one's own: it began after it was asked for. So it proves what a live read
proves, while a thousand passes at once over objects of one namespace read that namespace some times only. Reads of one
object begin no closer to each other than `spacing`: a lone one begins at once, and a crowd shares more of them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from runtime.kube import Kube
from runtime.objects import Key, Object, Resource

_Place: TypeAlias = tuple[Resource, Key]


@dataclass(slots=True)
class _Turns:
    """The reads of one object: one at a time, and at most one that has not begun.

    `not_before` is when the next one may begin, in seconds of the loop's clock.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    next_read: asyncio.Task[Object] | None = None
    not_before: float = 0.0


class SharedReads:
    """Reads single objects live, once for all that ask before a read begins."""

    def __init__(self, kube: Kube, *, spacing: timedelta = timedelta()) -> None:
        self._kube = kube
        self._spacing = spacing.total_seconds()
        self._turns: dict[_Place, _Turns] = {}

    async def get(self, resource: Resource, key: Key) -> Object:
        """Return an object as a read found it that began after this call; callers must not change it.

        Raises NotFound when it is absent, and any other ApiError of the read.
        """
        place = (resource, key)
        turns = self._turns.setdefault(place, _Turns())
        if turns.next_read is None:
            turns.next_read = asyncio.create_task(self._read(place, turns))
            turns.next_read.add_done_callback(_retrieve)
        # One that is cancelled leaves the read to the others.
        return await asyncio.shield(turns.next_read)

    async def _read(self, place: _Place, turns: _Turns) -> Object:
        loop = asyncio.get_running_loop()
        async with turns.lock:
            if loop.time() < turns.not_before:
                await asyncio.sleep(turns.not_before - loop.time())
            turns.next_read, turns.not_before = None, loop.time() + self._spacing
            try:
                return await self._kube.get(*place)
            finally:
                loop.call_later(self._spacing, self._forget, place, turns)

    def _forget(self, place: _Place, turns: _Turns) -> None:
        """Drop what is known of an object that nobody reads, and that the next one may read at once."""
        is_over = asyncio.get_running_loop().time() >= turns.not_before
        if turns.next_read is None and not turns.lock.locked() and is_over and self._turns.get(place) is turns:
            del self._turns[place]


def _retrieve(task: asyncio.Task[Object]) -> None:
    """Look at the error of a read whose askers were all cancelled, so that nothing complains of it."""
    if not task.cancelled():
        task.exception()
