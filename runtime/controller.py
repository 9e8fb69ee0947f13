"""Runs one reconcile function over keys: event -> key -> queue -> pass -> when next.

Guarantees: one pass of a key at a time; a pass that fails delays its own key only; an unknown exception is a defect of
ours, logged once with its traceback and backed off; on stop no new pass begins and those in flight end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import structlog
from structlog.contextvars import bound_contextvars

from runtime import clock, fence, metrics, randomness
from runtime.backoff import Backoff
from runtime.cache import Informer, Subscriber
from runtime.changes import Change
from runtime.errors import (
    ApiError,
    Blocked,
    Conflict,
    Failure,
    Terminal,
    Throttled,
    TooManyRequests,
    Transient,
    Unavailable,
    WriteConflict,
)
from runtime.objects import Key, Object
from runtime.queue import WorkQueue
from runtime.queue_state import Priority, QueueSettings
from runtime.results import Reconcile, Result
from runtime.trace_ids import Subject
from runtime.tracing import TRACING
from runtime.waits import waits_at

_log = structlog.get_logger("runtime.controller")

_UNASKED_PAUSE: Final = timedelta(seconds=5)
# The first conflict is tried again at once; from the second in a row on there is a pause.
_CONFLICTS: Final = Backoff(timedelta(milliseconds=50), timedelta(minutes=10))
# Fewer conflicts in a row are a part of life and are not logged.
_MANY_CONFLICTS: Final = 5


def own_key(change: Change) -> Iterable[Key]:
    """Map a change to the key of the changed object itself."""
    return (change.key,)


def is_intent(change: Change) -> bool:
    """Put creations, edits of the spec and deletions before everything else; what a list has is no event."""
    return change.intent and not change.initial


@dataclass(frozen=True, slots=True)
class Source:
    """Where keys come from: an informer, the mapping of its changes to keys, and which are urgent.

    `primary`: its keys are this controller's own and are looked at again every resync.
    `echoes`: wake also on the echo of our own remembered writes. `patience`: so long a change waits for others of the
    same key, so that one pass answers them all.
    """

    informer: Informer
    keys: Callable[[Change], Iterable[Key]] = own_key
    urgent: Callable[[Change], bool] = is_intent
    primary: bool = False
    echoes: bool = False
    patience: timedelta | None = None


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """How a controller works; the defaults serve a whole cluster."""

    workers: int = 16
    resync: timedelta = timedelta(minutes=10)
    # Chooses in place of `resync` when a key is looked at again.
    resync_of: Callable[[Key], timedelta] | None = None
    # A pass that waits for a person or for another object is woken by watches; this is the net below.
    slow_poll: timedelta = timedelta(minutes=5)
    pass_timeout: timedelta = timedelta(minutes=2)
    # Within the 30 s that a Pod is given to end by default. A lost Lease leaves less.
    drain: timedelta = timedelta(seconds=25)
    queue: QueueSettings = field(default_factory=QueueSettings)
    monotonic: Callable[[], float] = clock.monotonic
    # Whose trace a pass over an object is part of.
    subject: Callable[[Object], Subject] | None = None


@dataclass(frozen=True, slots=True)
class _Deferred:
    """A change that concerns a key, from where, and how urgent it is."""

    source: Source
    change: Change
    priority: Priority


class Controller:
    """One reconcile function, its queue, its workers and its sources."""

    def __init__(self, name: str, reconcile: Reconcile, *, settings: ControllerSettings | None = None) -> None:
        self.name = name
        self._reconcile = reconcile
        self._settings = settings or ControllerSettings()
        self._queue = self._new_queue()
        self._sources: list[Source] = []
        self._subscriptions: list[tuple[Informer, Subscriber]] = []
        self._replays: set[asyncio.Task[None]] = set()
        self._defects: dict[Key, str] = {}
        self._conflicts: dict[Key, int] = {}
        # What came for keys whose pass is under way: only its end knows which of that was its own doing.
        self._meanwhile: dict[Key, list[_Deferred]] = {}
        self._passes: dict[Key, asyncio.Task[Any]] = {}
        self._running = False
        self._working = False

    def source(self, source: Source) -> None:
        """Add a source, also while running; what its store holds already is enqueued too."""
        self._sources.append(source)
        if self._running:
            self._connect(source)

    def unsource(self, informer: Informer) -> None:
        """Listen to an informer no longer; what it put into the queue stays there."""
        self._sources = [source for source in self._sources if source.informer is not informer]
        for subscribed, callback in self._subscriptions:
            if subscribed is informer:
                informer.unsubscribe(callback)
        self._subscriptions = [subscription for subscription in self._subscriptions if subscription[0] is not informer]

    def enqueue(self, key: Key, *, priority: Priority = Priority.NORMAL, after: timedelta | None = None) -> None:
        """Ask for a pass of `key`."""
        self._queue.add(key, priority=priority, after=after)

    def stalled_for(self) -> timedelta:
        """Return how long due work has not moved although there are workers; for health."""
        still = self._queue.stalled_for()
        return still if self._working else timedelta()

    def passes(self) -> tuple[str, ...]:
        """Return the passes in flight: the controller, the key, and the line at which it waits."""
        return tuple(f"{self.name} {key} at {waits_at(task)}" for key, task in self._passes.items())

    async def run(self) -> None:
        """Work until cancelled, then drain: passes in flight end, no new one begins.

        What has not ended after `drain`, or a second before the end of a Lease that was lost, is cancelled.
        """
        metrics.begin_controller(self.name)
        metrics.MAX_WORKERS.labels(self.name).set(self._settings.workers)
        self._running = True
        workers: list[asyncio.Task[None]] = []
        try:
            for source in self._sources:
                self._connect(source)
            for source in tuple(self._sources):
                # What came on demand may never be listed; a pass that needs it says so.
                if source.primary or source.informer.required:
                    await source.informer.synced.wait()
            self._working = True
            workers = [
                asyncio.create_task(self._work(), name=f"{self.name} worker {number}")
                for number in range(self._settings.workers)
            ]
            # Not gather: a cancellation must reach this task, and not the passes in flight.
            done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            for worker in done:
                worker.result()
        finally:
            self._running = self._working = False
            await self._drain(workers)

    def _new_queue(self) -> WorkQueue:
        return WorkQueue(self.name, self._settings.queue, monotonic=self._settings.monotonic)

    def _connect(self, source: Source) -> None:
        def on_change(change: Change) -> None:
            self._on_change(source, change)

        source.informer.subscribe(on_change)
        self._subscriptions.append((source.informer, on_change))
        replay = asyncio.create_task(source.informer.replay(on_change), name=f"{self.name} replay")
        self._replays.add(replay)
        replay.add_done_callback(self._replays.discard)

    def _on_change(self, source: Source, change: Change) -> None:
        if change.own and not source.echoes:
            return
        try:
            priority = _priority(change, urgent=source.urgent(change))
            keys = tuple(source.keys(change))
        except Exception as defect:  # noqa: BLE001  # one odd object must not stop the watch for all others
            self._defect(change.key, defect)
            return
        for key in keys:
            meanwhile = self._meanwhile.get(key)
            if meanwhile is None:
                self._queue.add(key, priority=priority, after=source.patience)
            else:
                meanwhile.append(_Deferred(source, change, priority))

    async def _drain(self, workers: list[asyncio.Task[None]]) -> None:
        self._queue.close()
        for informer, callback in self._subscriptions:
            informer.unsubscribe(callback)
        self._subscriptions.clear()
        for replay in self._replays:
            replay.cancel()
        if workers:
            with suppress(TimeoutError):
                async with fence.bounded():
                    await asyncio.wait(workers, timeout=self._settings.drain.total_seconds())
        late = [worker for worker in workers if not worker.done()]
        if late:
            _log.warning("passes cut off by the end of the drain", controller=self.name, passes=self.passes())
            for worker in late:
                worker.cancel()
            await asyncio.wait(late)
        # What was queued belongs to a leadership that is over; the next run begins with what the stores hold.
        self._queue = self._new_queue()
        self._conflicts.clear()

    async def _work(self) -> None:
        worker = asyncio.current_task()
        while (key := await self._queue.get()) is not None:
            self._meanwhile[key] = []
            if worker is not None:
                self._passes[key] = worker
            try:
                await self._pass(key)
            finally:
                self._passes.pop(key, None)
                for deferred in self._meanwhile.pop(key):
                    if deferred.source.echoes or not deferred.source.informer.store.is_echo(deferred.change):
                        self._queue.add(key, priority=deferred.priority, after=deferred.source.patience)
                self._queue.done(key)

    async def _pass(self, key: Key) -> None:
        active = metrics.ACTIVE_WORKERS.labels(self.name)
        active.inc()
        began = clock.monotonic()
        reconcile_id = randomness.token_hex(16)
        about = {"namespace": key.namespace, "name": key.name, "generation": self._generation(key)}
        span = TRACING.of_pass(f"{self.name} pass", self._subject(key), reconcileID=reconcile_id, **about)
        with bound_contextvars(controller=self.name, reconcileID=reconcile_id, **about), span as finish:
            try:
                outcome = await self._attempt(key)
                finish("InternalError" if outcome is None else type(outcome).__name__)
                self._after(key, outcome)
            finally:
                active.dec()
                metrics.RECONCILE_SECONDS.labels(self.name).observe(clock.monotonic() - began)

    async def _attempt(self, key: Key) -> Result | Failure | ApiError | None:
        """Make one pass; return its result, its failure, or None for a defect of ours."""
        limit = asyncio.timeout(self._settings.pass_timeout.total_seconds())
        try:
            async with limit:
                result = await self._reconcile(key)
        except (Failure, ApiError) as failure:
            return failure
        except TimeoutError as error:
            late = f"the pass took longer than {self._settings.pass_timeout}"
            return Transient(late if limit.expired() else f"a call timed out: {error}")
        except asyncio.CancelledError as defect:
            task = asyncio.current_task()
            if task and task.cancelling():
                raise
            # Not us: something that the pass waited for was cancelled. That must not end the worker.
            self._defect(key, defect)
            return None
        except Exception as defect:  # noqa: BLE001  # the one place: a defect of ours must not end the controller
            self._defect(key, defect)
            return None
        self._defects.pop(key, None)
        return result

    def _after(self, key: Key, outcome: Result | Failure | ApiError | None) -> None:
        match outcome:
            case Result(requeue_after=after):
                self._queue.forget(key)
                self._conflicts.pop(key, None)
                self._count("requeue_after" if after is not None else "success")
                if after is not None:
                    self._queue.add(key, after=after)
                elif self._owned(key):
                    chosen = self._settings.resync_of
                    pause = self._settings.resync if chosen is None else chosen(key)
                    self._queue.add(key, priority=Priority.RESYNC, after=_spread(pause))
            case None:
                self._count("error")
                metrics.INTERNAL_ERRORS.labels(self.name).inc()
                self._queue.backoff(key)
            case _:
                self._failed(key, outcome)

    def _failed(self, key: Key, failure: Failure | ApiError) -> None:
        match failure:
            case Conflict() | WriteConflict():
                self._conflicted(key, failure)
                return
            case Throttled(after=after):
                self._queue.add(key, after=_spread(after))
            case TooManyRequests() | Unavailable(retry_after=timedelta()):
                self._queue.add(key, after=_spread(failure.retry_after or _UNASKED_PAUSE))
            case Terminal() | Blocked():
                self._queue.forget(key)
                self._conflicts.pop(key, None)
                self._queue.add(key, priority=Priority.RESYNC, after=_spread(self._settings.slow_poll))
            case _:
                self._queue.backoff(key)
        if isinstance(failure, Terminal):
            metrics.TERMINAL_ERRORS.labels(self.name).inc()
        self._log_failure(failure, self._queue.failures(key))

    def _conflicted(self, key: Key, failure: Failure | ApiError) -> None:
        """Look again at once where somebody wrote first; what conflicts again and again is backed off."""
        conflicts = self._conflicts[key] = self._conflicts.get(key, 0) + 1
        self._queue.add(key, after=_CONFLICTS.delay(conflicts - 1, randomness.chance) if conflicts > 1 else None)
        if conflicts < _MANY_CONFLICTS:
            self._count("requeue")
        else:
            self._log_failure(failure, conflicts)

    def _log_failure(self, failure: Failure | ApiError, failures: int) -> None:
        self._count("error")
        _log.info("pass failed", failure=type(failure).__name__, error=str(failure), failures=failures)

    def _count(self, result: str) -> None:
        metrics.RECONCILES.labels(self.name, result).inc()
        if result == "error":
            metrics.RECONCILE_ERRORS.labels(self.name).inc()

    def _defect(self, key: Key, defect: BaseException) -> None:
        trace = defect.__traceback__
        while trace and trace.tb_next:
            trace = trace.tb_next
        origin = f"{type(defect).__name__}:{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
        if self._defects.get(key) == origin:
            return
        self._defects[key] = origin
        _log.error("InternalError: a defect of the controller; the key is backed off", exc_info=defect)

    def _generation(self, key: Key) -> int | None:
        generations = (source.informer.store.generation(key) for source in self._sources if source.primary)
        return next((generation for generation in generations if generation is not None), None)

    def _subject(self, key: Key) -> Subject | None:
        if not TRACING.is_on or self._settings.subject is None:
            return None
        objects = (source.informer.store.get(key) for source in self._sources if source.primary)
        return next((self._settings.subject(obj) for obj in objects if obj is not None), None)

    def _owned(self, key: Key) -> bool:
        return any(key in source.informer.store for source in self._sources if source.primary)


def _priority(change: Change, *, urgent: bool) -> Priority:
    """Put what was there when we began to look behind all that happens from now on."""
    if urgent:
        return Priority.URGENT
    return Priority.RESYNC if change.initial else Priority.NORMAL


def _spread(pause: timedelta) -> timedelta:
    """Lengthen by up to a tenth, so that what failed or began together does not come back together."""
    return pause * (1 + randomness.chance() / 10)
