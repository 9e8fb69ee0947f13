"""The work queue: which key a free worker takes next.

Guarantees: a key is never given to two workers; an add while it is worked on makes it run again afterwards; adds of one
key merge into one (the earliest time, the highest priority); priorities first, yet no class starves; within a priority
the namespaces take turns; a key that runs too often is slowed down alone; of a group no more keys run at once than it
may.

Pure: the time is passed in, in seconds of a monotonic clock; `runtime.queue` waits on it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum
from typing import Final, NamedTuple

import msgspec

from runtime.backoff import Backoff, Chance
from runtime.objects import Key
from runtime.ready import Grouping, ReadyKeys

_SLACK: Final = 1_000


class Priority(IntEnum):
    """Smaller is sooner."""

    URGENT = 0
    NORMAL = 1
    RESYNC = 2


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """`burst` passes of a key may follow at once; from then on one in `interval`."""

    backoff: Backoff = field(default_factory=lambda: Backoff(timedelta(milliseconds=500), timedelta(minutes=10)))
    burst: int = 10
    interval: timedelta = timedelta(seconds=1)
    # Every so many takes the least urgent class is served first, so that none starves.
    turn: int = 8
    grouping: Grouping | None = None


class Wait(msgspec.Struct, frozen=True, gc=False):
    """When a key is due, and how urgent it is then."""

    due: float
    priority: Priority

    def merged(self, other: Wait) -> Wait:
        """Return the wait that satisfies both: the earlier time, the higher priority."""
        return Wait(min(self.due, other.due), min(self.priority, other.priority))


class Taken(NamedTuple):
    """A key given to a worker, and how long it was due."""

    key: Key
    waited_seconds: float


class _Allowance(msgspec.Struct, frozen=True, gc=False):
    """Passes a key may still make at once, as of `at`."""

    left: float
    at: float


class QueueState:
    """Pure state of the queue; `now` never goes back."""

    def __init__(self, settings: QueueSettings, chance: Chance) -> None:
        self._settings = settings
        self._chance = chance
        self._waits: dict[Key, Wait] = {}
        self._ready = ReadyKeys(len(Priority), settings.grouping)
        self._heap: list[tuple[float, int, Key]] = []
        self._pushes = 0
        self._failures: dict[Key, int] = {}
        self._allowances: dict[Key, _Allowance] = {}
        self._takes = 0

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def delayed(self) -> int:
        """How many keys wait for their time or for their running pass."""
        return len(self._waits) - len(self)

    def oldest(self, now: float) -> float:
        """Return for how many seconds the longest waiting of the due keys has been due."""
        return now - min((self._waits[key].due for key in self._ready), default=now)

    def add(self, key: Key, wait: Wait, now: float) -> None:
        """Ask for a pass of `key`; merges with what is asked for already."""
        waiting = self._waits.get(key)
        self._schedule(key, waiting.merged(wait) if waiting else wait, now)

    def take(self, now: float) -> Taken | None:
        """Give the next key to a worker, None when none is due that may run; `done` must follow."""
        self._ripen(now)
        self._takes += 1
        fair = self._takes % self._settings.turn == 0
        key = self._ready.take(reversed(Priority) if fair else Priority)
        if key is None:
            return None
        due = self._waits.pop(key).due
        self._spend(key, now)
        return Taken(key, max(0.0, now - due))

    def done(self, key: Key, now: float) -> None:
        """End the pass of `key`; what was asked for meanwhile is due from now on."""
        self._ready.done(key)
        waiting = self._waits.get(key)
        if waiting:
            self._schedule(key, waiting, now)

    def fail(self, key: Key) -> timedelta:
        """Count a failed pass and return how long to wait before the next."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        return self._settings.backoff.delay(failures, self._chance)

    def failures(self, key: Key) -> int:
        """Return how many passes of `key` failed in a row."""
        return self._failures.get(key, 0)

    def forget(self, key: Key) -> None:
        """Let the next failure of `key` count as its first."""
        self._failures.pop(key, None)

    def next_due(self) -> float | None:
        """Return when the next delayed key is due, None when there is none."""
        while self._heap and not self._valid(*self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _schedule(self, key: Key, wait: Wait, now: float) -> None:
        self._ready.discard(key)
        self._waits[key] = wait
        if self._ready.is_running(key):
            return
        due = max(wait.due, self._allowed_from(key, now))
        if due <= now:
            self._ready.put(key, wait.priority)
        else:
            self._waits[key] = Wait(due, wait.priority)
            self._pushes += 1
            heapq.heappush(self._heap, (due, self._pushes, key))
            self._sweep()

    def _ripen(self, now: float) -> None:
        while (due := self.next_due()) is not None and due <= now:
            _, _, key = heapq.heappop(self._heap)
            self._ready.put(key, self._waits[key].priority)

    def _sweep(self) -> None:
        """Rebuild the heap when most of it is out of date: a busy key leaves an entry behind with each pass."""
        if len(self._heap) > _SLACK + 2 * len(self._waits):
            self._heap = [entry for entry in self._heap if self._valid(*entry)]
            heapq.heapify(self._heap)

    def _valid(self, due: float, _: int, key: Key) -> bool:
        wait = self._waits.get(key)
        return wait is not None and wait.due == due and not self._ready.is_running(key)

    def _spend(self, key: Key, now: float) -> None:
        self._allowances[key] = _Allowance(self._refilled(key, now).left - 1, now)

    def _allowed_from(self, key: Key, now: float) -> float:
        allowance = self._refilled(key, now)
        if allowance.left >= 1:
            if allowance.left >= self._settings.burst:
                self._allowances.pop(key, None)
            return now
        return now + (1 - allowance.left) * self._settings.interval.total_seconds()

    def _refilled(self, key: Key, now: float) -> _Allowance:
        allowance = self._allowances.get(key)
        if allowance is None:
            return _Allowance(self._settings.burst, now)
        earned = (now - allowance.at) / self._settings.interval.total_seconds()
        return _Allowance(min(self._settings.burst, allowance.left + earned), now)
