"""The work queue as workers wait on it: keys that are due, by the rules of `runtime.queue_state`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import timedelta

from runtime import clock, metrics, randomness
from runtime.backoff import Chance
from runtime.objects import Key
from runtime.queue_state import Priority, QueueSettings, QueueState, Wait


class WorkQueue:
    """The queue as workers see it: a key that is due wakes one of those that wait, and not all."""

    def __init__(
        self,
        name: str,
        settings: QueueSettings | None = None,
        *,
        monotonic: Callable[[], float] = clock.monotonic,
        chance: Chance = randomness.chance,
    ) -> None:
        self._name = name
        self._monotonic = monotonic
        self._state = QueueState(settings or QueueSettings(), chance)
        self._idle: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0
        self._closed = False
        self._began: dict[Key, float] = {}
        self._moved_at = monotonic()
        # To find a metric by its labels costs as much as to count with it.
        self._adds = metrics.QUEUE_ADDS.labels(name, name)
        self._wait_seconds = metrics.QUEUE_SECONDS.labels(name, name)
        self._work_seconds = metrics.WORK_SECONDS.labels(name, name)

    def __len__(self) -> int:
        return len(self._state)

    def add(self, key: Key, *, priority: Priority = Priority.NORMAL, after: timedelta | None = None) -> None:
        """Ask for a pass of `key`, at once or after a while."""
        now = self._monotonic()
        due = now + after.total_seconds() if after else now
        if not len(self._state):
            self._moved_at = now
        self._state.add(key, Wait(due, priority), now)
        self._adds.inc()
        self._announce()

    async def get(self) -> Key | None:
        """Wait for a key and take it; `done` must follow. None once the queue is closed."""
        while not self._closed:
            now = self._monotonic()
            taken = self._state.take(now)
            if taken:
                self._began[taken.key] = self._moved_at = now
                self._wait_seconds.observe(taken.waited_seconds)
                if len(self._state):
                    self._wake()
                return taken.key
            await self._idle_until_woken()
        return None

    def done(self, key: Key) -> None:
        """End the pass of `key`."""
        now = self._moved_at = self._monotonic()
        began = self._began.pop(key, now)
        self._work_seconds.observe(now - began)
        self._state.done(key, now)
        self._announce()

    def backoff(self, key: Key, *, priority: Priority = Priority.NORMAL) -> timedelta:
        """Ask for another pass after a pause that grows with each failure in a row; return the pause."""
        pause = self._state.fail(key)
        metrics.QUEUE_RETRIES.labels(self._name, self._name).inc()
        self.add(key, priority=priority, after=pause)
        return pause

    def failures(self, key: Key) -> int:
        """Return how many passes of `key` failed in a row."""
        return self._state.failures(key)

    def forget(self, key: Key) -> None:
        """Let the next failure of `key` count as its first."""
        self._state.forget(key)

    def close(self) -> None:
        """Give no more keys; every waiting `get` returns None."""
        self._closed = True
        while self._idle:
            self._wake()

    def stalled_for(self) -> timedelta:
        """Return how long due keys have waited without any worker beginning or ending a pass; publish the gauges."""
        now = self._monotonic()
        running = [now - began for began in self._began.values()]
        metrics.QUEUE_DEPTH.labels(self._name, self._name).set(len(self._state))
        metrics.OLDEST_SECONDS.labels(self._name).set(self._state.oldest(now))
        metrics.UNFINISHED_SECONDS.labels(self._name, self._name).set(sum(running))
        metrics.LONGEST_SECONDS.labels(self._name, self._name).set(max(running, default=0.0))
        return timedelta(seconds=now - self._moved_at if len(self._state) else 0.0)

    async def _idle_until_woken(self) -> None:
        woken = asyncio.get_running_loop().create_future()
        self._idle.append(woken)
        self._set_timer()
        try:
            await woken
        except asyncio.CancelledError:
            if not woken.cancelled():
                # What this one was woken for is another one's now.
                self._wake()
            raise

    def _announce(self) -> None:
        """Have a free worker look where a key is due, and one when the next will be."""
        if self._idle:
            if len(self._state):
                self._wake()
            self._set_timer()

    def _wake(self) -> None:
        while self._idle:
            woken = self._idle.popleft()
            # One that was cancelled waits no more.
            if not woken.done():
                woken.set_result(None)
                return

    def _set_timer(self) -> None:
        due = self._state.next_due()
        if self._timer is not None:
            if due == self._timer_due:
                return
            self._timer.cancel()
            self._timer = None
        if due is not None:
            self._timer_due = due
            pause = max(0.0, due - self._monotonic())
            self._timer = asyncio.get_running_loop().call_later(pause, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self._wake()
