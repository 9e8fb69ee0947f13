"""Keeps a store equal to the API server: list, watch, bookmarks, relist.

Guarantees: one request at a time; every wait is bounded; a watch that closes early, breaks, sends nothing or talks
nonsense is dialled again after a growing, jittered pause (two dials a minute at most once backed off); 410 and what is
not understood lists anew, page by page; the store never goes back to an older version. A first list that is refused for
want of a right or of the kind is tried rarer and rarer, at last every ten minutes: only a person's act changes that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeAlias

import msgspec
import structlog

from runtime import clock, metrics, randomness
from runtime.backoff import Backoff, Chance
from runtime.changes import Change
from runtime.errors import ApiError, Gone, NoAnswer, TooManyRequests, Unavailable
from runtime.kube import Kube, Selection, WatchEvent
from runtime.kube_errors import from_event
from runtime.objects import Resource
from runtime.store import Listing, StaleList, Store

OnChange: TypeAlias = Callable[[Change], None]

PAGE_SIZE: Final = 500
# A consistent list that is older than what was seen can come from a server that lags; so many in a row, for so long,
# come from one that was restored.
_REFUSED_LISTS: Final = 5
_REFUSED_FOR: Final = timedelta(minutes=3)
_SLICE_SECONDS: Final = 0.01
_REFUSALS: Final = frozenset({403, 404})

_log = structlog.get_logger("runtime.reflector")


@dataclass(frozen=True, slots=True)
class Clock:
    """Time and chance, for tests to replace."""

    monotonic: Callable[[], float] = clock.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Chance = randomness.chance


@dataclass(frozen=True, slots=True)
class Timing:
    """How long a watch may live, be silent, and what counts as a healthy one."""

    # Spread, so that the watches of one process do not all end together.
    watch: timedelta = timedelta(minutes=8)
    # The API server sends a bookmark every minute, but the first on a watch of a quiet kind only after up to two
    # (measured with 1.34): a shorter limit would list every quiet kind again with each new watch.
    idle: timedelta = timedelta(seconds=150)
    healthy: timedelta = timedelta(seconds=30)
    backoff: Backoff = field(default_factory=lambda: Backoff(timedelta(milliseconds=800), timedelta(seconds=30)))
    refused: Backoff = field(default_factory=lambda: Backoff(timedelta(milliseconds=800), timedelta(minutes=10)))
    clock: Clock = field(default_factory=Clock)


@dataclass(slots=True)
class _Attempts:
    """Failures in a row, requests since the last pause, and whether it is for want of any answer."""

    failures: int = 0
    dials: int = 0
    away: bool = False
    retried: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True)
class _Refused:
    """Lists that were refused in a row since the last one that was taken, and since when."""

    count: int = 0
    since: float = 0.0

    def note(self, now: float) -> None:
        self.since = self.since if self.count else now
        self.count += 1


class Reflector:
    """Lists and watches one resource into one store until it is cancelled."""

    def __init__(self, kube: Kube, store: Store, selection: Selection, on_change: OnChange, timing: Timing) -> None:
        self.synced = asyncio.Event()
        # Whether nothing works before the first list, and whether that was refused, by the last answer.
        self.required = False
        self.is_refused = False
        self._kube = kube
        self._store = store
        self._resource: Resource = store.resource
        self._selection = selection
        self._on_change = on_change
        self._timing = timing
        self._clock = clock = timing.clock
        self._version = ""
        self._attempts = _Attempts()
        self._refused = _Refused()
        self._event_at = clock.monotonic()
        self._label = store.resource.group_kind
        metrics.begin_resource(self._label)

    @property
    def stale_for(self) -> timedelta:
        """How long ago the API server last spoke on this list or watch."""
        return timedelta(seconds=self._clock.monotonic() - self._event_at)

    @property
    def went_back(self) -> bool:
        """Whether the API server's resourceVersions went back: its store was restored from a backup.

        What this process remembers is of a past that is not any more, and numbers of versions are given again: the
        lists stay refused, and only a restart helps.
        """
        refused = self._refused
        lasted = timedelta(seconds=self._clock.monotonic() - refused.since)
        return refused.count >= _REFUSED_LISTS and lasted >= _REFUSED_FOR

    def retry_now(self, *, granted: bool = False) -> None:
        """End a pause early that began because the API server was out of reach: somebody has reached it again.

        `granted`: what was refused is allowed now, so that a pause after a refusal ends, too.
        """
        if granted and self.is_refused:
            self._attempts.failures = 0
            self._attempts.retried.set()
        elif self._attempts.away:
            self._attempts.retried.set()

    async def run(self) -> None:
        """List and watch for ever; ends only by cancellation."""
        while True:
            begun = self._clock.monotonic()
            retry_after = timedelta()
            was_refused = self.is_refused
            self._attempts.away = False
            self._attempts.retried.clear()
            try:
                await self._follow()
                if self._lived(begun):
                    # The server's own time-out: nothing is wrong, and nobody should wait for events.
                    self._attempts.dials = self._attempts.failures = 0
                    continue
            except (Unavailable, NoAnswer, TooManyRequests) as error:
                # The version is still good: the watch goes on where it was.
                self._attempts.away = isinstance(error, NoAnswer)
                retry_after = error.retry_after or retry_after
                self._log_failure("watch interrupted", error)
            except (ApiError, StaleList, msgspec.DecodeError) as error:
                # A refusal is an answer: the API server speaks, a restart would not help.
                self._note_event()
                self._version = ""
                self.is_refused = not self.synced.is_set() and _is_refusal(error)
                if isinstance(error, StaleList):
                    self._refused.note(self._clock.monotonic())
                self._log_failure("list needed", error)
            if self._lived(begun) or self.is_refused != was_refused:
                self._attempts.failures = 0
            await self._pause(retry_after)

    async def _follow(self) -> None:
        if not self._version:
            await self._list()
        self._dialled()
        metrics.REFLECTOR_WATCHES.labels(self._label).inc()
        events = self._kube.watch(
            self._resource, self._selection, resource_version=self._version, timeout=self._watch_timeout()
        )
        try:
            async with aclosing(_Silence(events, self._timing.idle)) as live:
                sliced = _Slices(self._clock)
                async for event in live:
                    self._take(event)
                    await sliced.yield_to_loop()
        except _SilentError as error:
            self._version = ""
            raise NoAnswer(f"no event and no bookmark for {self._timing.idle.total_seconds():.0f} s") from error

    def _take(self, event: WatchEvent) -> None:
        self._note_event()
        if event.kind == "ERROR":
            raise from_event(event.raw)
        changes = self._store.apply_event(event.kind, event.raw)
        self._version = self._store.seen
        for change in changes:
            self._on_change(change)

    async def _list(self) -> None:
        listing = Listing(self._store)
        sliced = _Slices(self._clock)
        self._dialled()
        metrics.REFLECTOR_LISTS.labels(self._label).inc()
        try:
            version = await self._pages(listing, sliced, limit=PAGE_SIZE)
        except Gone:
            # The token of a page expired under a slow list: once more, in one piece.
            listing = Listing(self._store)
            version = await self._pages(listing, sliced, limit=0)
        changes = self._store.replace_all(listing, version)
        self._version = version
        self._refused = _Refused()
        for change in changes:
            self._on_change(change)
            await sliced.yield_to_loop()
        self.is_refused = False
        self.synced.set()

    async def _pages(self, listing: Listing, sliced: _Slices, *, limit: int) -> str:
        next_page = ""
        while True:
            page = await self._kube.list_page(self._resource, self._selection, limit=limit, next_page=next_page)
            self._note_event()
            for raw in page.items:
                listing.add(raw)
                await sliced.yield_to_loop()
            next_page = page.next_page
            if not next_page:
                return page.resource_version

    def _lived(self, begun: float) -> bool:
        return self._clock.monotonic() - begun >= self._timing.healthy.total_seconds()

    async def _pause(self, retry_after: timedelta) -> None:
        self._attempts.failures += 1
        backoff = self._timing.refused if self.is_refused and not self.required else self._timing.backoff
        pause = backoff.delay(self._attempts.failures, self._clock.chance)
        # A round that listed and watched dialled twice, and pays twice.
        seconds = max(pause * max(1, self._attempts.dials), retry_after).total_seconds()
        self._attempts.dials = 0
        sleeping = asyncio.ensure_future(self._clock.sleep(seconds))
        retried = asyncio.ensure_future(self._attempts.retried.wait())
        try:
            await asyncio.wait((sleeping, retried), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            retried.cancel()

    def _watch_timeout(self) -> timedelta:
        return self._timing.watch * (1 + self._clock.chance() / 4)

    def _dialled(self) -> None:
        self._attempts.dials += 1

    def _note_event(self) -> None:
        self._event_at = self._clock.monotonic()

    def _log_failure(self, problem: str, error: Exception) -> None:
        _log.info(problem, resource=self._label, error=str(error), failures=self._attempts.failures)


def _is_refusal(error: Exception) -> bool:
    """Return whether the API server refused for want of a right, or does not serve the kind."""
    return isinstance(error, ApiError) and error.status in _REFUSALS


class _SilentError(Exception):
    """A watch said nothing for longer than the limit."""


class _Silence:
    """An event stream that raises when nothing comes for `limit`."""

    def __init__(self, events: AsyncIterator[WatchEvent], limit: timedelta) -> None:
        self._events = events
        self._limit = limit.total_seconds()

    def __aiter__(self) -> AsyncIterator[WatchEvent]:
        return self

    async def __anext__(self) -> WatchEvent:
        try:
            async with asyncio.timeout(self._limit):
                return await anext(self._events)
        except TimeoutError:
            raise _SilentError from None

    async def aclose(self) -> None:
        close = getattr(self._events, "aclose", None)
        if close:
            await close()


class _Slices:
    """Gives the event loop its turn after every ten milliseconds of work."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.monotonic()

    async def yield_to_loop(self) -> None:
        if self._clock.monotonic() - self._since >= _SLICE_SECONDS:
            await asyncio.sleep(0)
            self._since = self._clock.monotonic()
