"""One leader at a time, by a Lease.

Guarantees, as long as two machines' monotonic clocks run at about the same rate: a leader starts no call after
`renew_deadline` since the sending of its last acknowledged renewal; its work is cancelled then and has ended, or the
process has, before `duration` since that sending; nobody takes the Lease earlier than `duration` after seeing it
renewed. A hung, refused or dropped request is a failed attempt and nothing more. The wall clock decides nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

import msgspec
import structlog

from runtime import clock, metrics
from runtime.errors import AlreadyExists, ApiError, NoAnswer, NotFound, WriteConflict
from runtime.kube import Kube, Selection
from runtime.leadership import Leadership
from runtime.lease import LeaseSettings, Observation, claimed, may_take, observe, released
from runtime.objects import LEASES, Key, Object, loads, version_of

Lead: TypeAlias = Callable[[Leadership], Awaitable[None]]

_log = structlog.get_logger("runtime.elector")

# Between "the work must have ended" and "another may lead" lies the time to die.
_MARGIN: Final = timedelta(milliseconds=500)
_EXIT_STATUS: Final = 70
_GRAIN_SECONDS: Final = 0.001


def exit_hard() -> None:
    """End the process at once: what it does must not outlive its Lease."""
    os._exit(_EXIT_STATUS)


@dataclass(frozen=True, slots=True)
class ElectorHooks:
    """What touches the world beside the API server; for tests to replace."""

    monotonic: Callable[[], float] = clock.monotonic
    now: Callable[[], datetime] = clock.now
    exit_hard: Callable[[], None] = exit_hard
    # Called when the API server answers again after it did not.
    reached: Callable[[], None] = lambda: None
    # Returns what of the work is under way, in words for the log.
    under_way: Callable[[], tuple[str, ...]] = lambda: ()


class Elector:
    """Campaigns for a Lease; while it holds it, the work runs."""

    def __init__(
        self,
        kube: Kube,
        key: Key,
        identity: str,
        settings: LeaseSettings | None = None,
        *,
        hooks: ElectorHooks | None = None,
    ) -> None:
        self._kube = kube
        self._key = key
        self._identity = identity
        self._settings = settings or LeaseSettings()
        self._hooks = hooks or ElectorHooks()
        # A slow answer is better than none, and one attempt that hangs must leave time for another.
        self._attempt_seconds = self._settings.renew_deadline.total_seconds() / 2
        self._lease: Object | None = None
        self._seen: Observation | None = None
        self._cut_off = False

    async def run(self, lead: Lead) -> None:
        """Campaign, and lead when elected, for ever.

        When leadership is lost, `lead` is cancelled and must end before the Lease does, else the process exits hard;
        then the campaign begins again. When cancelled itself: cancels `lead`, lets it drain while still renewing,
        releases the Lease. An end of `lead` by itself releases the Lease and ends this too.
        """
        status = metrics.MASTER_STATUS.labels(self._key.name)
        status.set(0)
        while True:
            try:
                leadership = await self._campaign()
            except asyncio.CancelledError:
                # Taken in the last moment, or still ours after a loss.
                await self._release()
                raise
            _log.info("leading", lease=str(self._key), identity=self._identity, epoch=leadership.epoch)
            status.set(1)
            try:
                ended = await self._reign(leadership, lead)
            finally:
                status.set(0)
            if ended:
                return
            _log.warning("leadership lost; standing by", lease=str(self._key), identity=self._identity)

    async def _campaign(self) -> Leadership:
        while True:
            try:
                leadership = await self._attempt()
                if leadership:
                    return leadership
                await self._stand_by()
            except (AlreadyExists, WriteConflict):
                # Another candidate was quicker: look again at once.
                await asyncio.sleep(0)
            except (ApiError, TimeoutError, msgspec.DecodeError) as error:
                self._cut_off = True
                _log.info("lease out of reach", lease=str(self._key), error=str(error) or type(error).__name__)
                await asyncio.sleep(self._settings.retry.total_seconds())

    async def _attempt(self) -> Leadership | None:
        """Read the Lease and take it if that is allowed."""
        async with self._limit():
            await self._read()
        seen = self._seen
        if seen is None or not may_take(seen, self._identity, self._hooks.monotonic()):
            return None
        sent_at = self._hooks.monotonic()
        async with self._limit():
            lease = await self._write()
        epoch = int(lease["spec"]["leaseTransitions"])
        return Leadership(self._settings, epoch, sent_at, self._hooks.monotonic)

    async def _stand_by(self) -> None:
        """Watch the Lease until it may be taken; returns as well when the watch ends."""
        seen = self._seen
        if seen is None or not seen.version:
            await asyncio.sleep(self._settings.retry.total_seconds())
            return
        selection = Selection(namespace=self._key.namespace, fields=f"metadata.name={self._key.name}")
        timeout = self._settings.duration * 10
        events: Any = self._kube.watch(LEASES, selection, resource_version=seen.version, timeout=timeout)
        async with aclosing(events):
            while self._seen and not may_take(self._seen, self._identity, self._hooks.monotonic()):
                rest = self._seen.expires_at() - self._hooks.monotonic()
                try:
                    async with asyncio.timeout(max(0.0, rest)):
                        event = await anext(events)
                except TimeoutError:
                    return
                except StopAsyncIteration:
                    # A watch that is closed at once must not become a hot loop.
                    await asyncio.sleep(self._settings.retry.total_seconds() / 4)
                    return
                match event.kind:
                    case "ADDED" | "MODIFIED":
                        self._note(loads(event.raw))
                    case "DELETED":
                        self._note(None)
                    case "ERROR":
                        await asyncio.sleep(self._settings.retry.total_seconds() / 4)
                        return
                    case _:
                        continue

    async def _reign(self, leadership: Leadership, lead: Lead) -> bool:
        """Run the work and renew beside it; True when the work ended by itself, False when leadership was lost."""
        work = asyncio.ensure_future(lead(leadership))
        renewal = asyncio.create_task(self._renew_until_lost(leadership), name=f"renew {self._key}")
        try:
            await asyncio.wait((work, renewal), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # The Lease is kept while the work drains, and let go only then.
            work.cancel()
            await asyncio.wait((work, renewal), return_when=asyncio.FIRST_COMPLETED)
            await self._end(work, renewal, leadership)
            raise
        ended = work.done()
        await self._end(work, renewal, leadership)
        if ended:
            await work
        return ended

    async def _end(self, work: asyncio.Future[None], renewal: asyncio.Task[None], leadership: Leadership) -> None:
        lost = renewal.done() and not work.done()
        leadership.revoke()
        work.cancel()
        rest = leadership.ends_at() - self._hooks.monotonic() - _MARGIN.total_seconds()
        if not work.done():
            await asyncio.wait((work,), timeout=max(0.0, rest))
        if not work.done():
            _log.critical(
                "work outlived the lease; exiting hard",
                lease=str(self._key),
                identity=self._identity,
                work=self._hooks.under_way(),
            )
            self._hooks.exit_hard()
        renewal.cancel()
        await asyncio.wait((renewal,))
        if not lost:
            await self._release()

    async def _renew_until_lost(self, leadership: Leadership) -> None:
        retry = self._settings.retry.total_seconds()
        while True:
            began = self._hooks.monotonic()
            # No attempt can end in the last instant; without this a timer's grain would spin here.
            if began + _GRAIN_SECONDS >= leadership.deadline():
                return
            try:
                async with asyncio.timeout(min(self._attempt_seconds, leadership.deadline() - began)):
                    if not await self._renew(leadership):
                        return
            except (ApiError, TimeoutError, msgspec.DecodeError) as error:
                self._cut_off = True
                _log.warning("lease not renewed", lease=str(self._key), error=str(error) or type(error).__name__)
            # Never past the deadline: the loss is to be noticed on time.
            now = self._hooks.monotonic()
            await asyncio.sleep(max(0.0, min(began + retry, leadership.deadline()) - now))

    async def _renew(self, leadership: Leadership) -> bool:
        """Renew once; False when the Lease is another's by now."""
        sent_at = self._hooks.monotonic()
        try:
            await self._write()
        except (AlreadyExists, NotFound, WriteConflict):
            # Touched by a person, deleted, or our own unanswered write: what counts is who holds it now.
            await self._read()
            if self._seen and self._seen.holder not in ("", self._identity) and self._seen.version:
                return False
            sent_at = self._hooks.monotonic()
            await self._write()
        leadership.renewed(sent_at)
        return True

    async def _release(self) -> None:
        """Free the Lease, best effort: whom no answer reaches waits for its end."""
        try:
            async with asyncio.timeout(self._settings.duration.total_seconds() / 2):
                try:
                    await self._free()
                except WriteConflict:
                    # A renewal that was cancelled on its way has arrived all the same.
                    await self._read()
                    await self._free()
        except (ApiError, TimeoutError) as error:
            _log.warning("lease not released", lease=str(self._key), error=str(error) or type(error).__name__)

    async def _free(self) -> None:
        if self._lease is None or self._seen is None or self._seen.holder != self._identity:
            return
        body = released(self._lease, self._key, self._hooks.now())
        await self._kube.replace(LEASES, body, manager=self._key.name)
        _log.info("lease released", lease=str(self._key), identity=self._identity)

    async def _read(self) -> None:
        try:
            lease: Object | None = await self._kube.get(LEASES, self._key)
        except NotFound:
            lease = None
        self._note_answer()
        self._note(lease)

    async def _write(self) -> Object:
        body = claimed(self._lease, self._key, self._identity, self._settings, self._hooks.now())
        if self._lease is None:
            answer = await self._kube.create(LEASES, body, manager=self._key.name)
        else:
            answer = await self._kube.replace(LEASES, body, manager=self._key.name)
        if not version_of(answer):
            raise NoAnswer(f"lease {self._key}: the answer to a write is no Lease")
        self._note_answer()
        self._note(answer)
        return answer

    def _note_answer(self) -> None:
        if self._cut_off:
            self._cut_off = False
            self._hooks.reached()

    def _note(self, lease: Object | None) -> None:
        self._lease = lease
        self._seen = observe(lease, self._seen, self._settings, self._hooks.monotonic())

    def _limit(self) -> asyncio.Timeout:
        return asyncio.timeout(self._attempt_seconds)
