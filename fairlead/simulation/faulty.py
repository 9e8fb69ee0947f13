"""One process's way to the API server: it takes time, loses writes and answers, and ends with the process."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, TypeVar

from devcloud.apiserver.api_server import ApiServer
from fairlead.simulation.process_life import ProcessLife
from runtime import clock, fence
from runtime.errors import ApiError, NoAnswer, Unavailable
from runtime.kube import Page, Selection, WatchEvent
from runtime.objects import EVENTS, LEASES, Key, Object, Resource, key_of

T = TypeVar("T")
_LATE_S: Final = (1.0, 30.0)
_PATIENCE_S: Final = 15.0


@dataclass(slots=True)
class Weather:
    """How often requests fail: writes before or after their effect, reads, watches that are cut.

    `write_late`: how often a write arrives long after it was sent, whoever leads by then.
    """

    write_refused: float = 0.0
    write_late: float = 0.0
    answer_lost: float = 0.0
    read_refused: float = 0.0
    watch_cut: float = 0.0


@dataclass(slots=True)
class Connection:
    """Implements `runtime.kube.Kube` for one process, as long as it lives."""

    server: ApiServer
    who: str
    chance: random.Random
    weather: Weather
    emit: Callable[..., None]
    life: ProcessLife = field(default_factory=ProcessLife)
    requests: int = field(default=0)
    cut_off_until: float = 0.0
    _under_way: set[asyncio.Task[Any]] = field(default_factory=set)

    async def _passed(self) -> None:
        if self.cut_off_until > clock.monotonic():
            await asyncio.sleep(self.cut_off_until - clock.monotonic())
        # What a killed process still does at its end takes no chance from those that live.
        if not self.life.is_over:
            await asyncio.sleep(0.001 + self.chance.random() * 0.02)
        await self.life.outlive()

    async def _read(self, request: str, call: Callable[[], Awaitable[T]]) -> T:
        await self._passed()
        self.requests += 1
        self.emit(round(clock.monotonic(), 6), self.who, request)
        if self.chance.random() < self.weather.read_refused:
            raise Unavailable("simulated", status=503)
        return await call()

    async def _write(self, resource: Resource, request: str, call: Callable[[], Awaitable[T]]) -> T:
        await self._passed()
        self.requests += 1
        if self.chance.random() < self.weather.write_refused:
            self.emit(round(clock.monotonic(), 6), self.who, request, "refused")
            raise Unavailable("simulated", status=503)
        # Nothing hangs on an Event, and who leads is decided by the Lease itself.
        is_effect = resource not in (EVENTS, LEASES)
        if is_effect:
            fence.check("POST")
        try:
            answer = await (self.life.carry_out(lambda: self._arrived(call)) if is_effect else self._arrived(call))
        except ApiError as error:
            self.emit(round(clock.monotonic(), 6), self.who, request, type(error).__name__)
            raise
        self.emit(round(clock.monotonic(), 6), self.who, request)
        await self._passed()
        if self.chance.random() < self.weather.answer_lost:
            raise NoAnswer("simulated: the answer is lost")
        return answer

    async def _arrived(self, call: Callable[[], Awaitable[T]]) -> T:
        """Carry a write out, now and then late: it arrives, and who sent it may have stopped to wait."""
        if not self.weather.write_late or self.chance.random() >= self.weather.write_late:
            return await call()
        delay_s = self.chance.uniform(*_LATE_S)

        async def arrive() -> T:
            await asyncio.sleep(delay_s)
            return await call()

        task = asyncio.create_task(arrive())
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        async with fence.bounded():
            done, _ = await asyncio.wait((task,), timeout=_PATIENCE_S)
        if not done:
            raise NoAnswer("simulated: no answer for long")
        return task.result()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        # Nobody may wait for it any more.
        if not task.cancelled():
            task.exception()

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        """Return an object."""
        return await self._read(
            f"get {resource.plural} {key}", lambda: self.server.get(resource, key, metadata_only=metadata_only)
        )

    async def create(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        """Create an object."""
        return await self._write(
            resource,
            f"create {resource.plural} {key_of(obj)}",
            lambda: self.server.create(resource, obj, manager=manager),
        )

    async def review(self, resource: Resource, spec: Object) -> Object:
        """Ask for a right."""
        return await self._read(f"review {resource.plural}", lambda: self.server.review(resource, spec))

    async def apply(
        self, resource: Resource, obj: Object, *, manager: str, force: bool = False, subresource: str = ""
    ) -> Object:
        """Apply an object as a field manager."""
        return await self._write(
            resource,
            f"apply {resource.plural} {key_of(obj)} {subresource}",
            lambda: self.server.apply(resource, obj, manager=manager, force=force, subresource=subresource),
        )

    async def replace(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        """Replace an object."""
        return await self._write(
            resource,
            f"replace {resource.plural} {key_of(obj)}",
            lambda: self.server.replace(resource, obj, manager=manager),
        )

    async def json_patch(
        self, resource: Resource, key: Key, operations: list[dict[str, Any]], *, manager: str, subresource: str = ""
    ) -> Object:
        """Patch an object."""
        return await self._write(
            resource,
            f"patch {resource.plural} {key} {subresource}",
            lambda: self.server.json_patch(resource, key, operations, manager=manager, subresource=subresource),
        )

    async def delete(
        self, resource: Resource, key: Key, *, uid: str, resource_version: str, propagation: str = "Background"
    ) -> Object | None:
        """Delete an object."""
        return await self._write(
            resource,
            f"delete {resource.plural} {key}",
            lambda: self.server.delete(
                resource, key, uid=uid, resource_version=resource_version, propagation=propagation
            ),
        )

    async def list_page(
        self, resource: Resource, selection: Selection, *, limit: int = 500, next_page: str = ""
    ) -> Page:
        """Return a page of a list."""
        return await self._read(
            f"list {resource.plural}",
            lambda: self.server.list_page(resource, selection, limit=limit, next_page=next_page),
        )

    async def watch(
        self,
        resource: Resource,
        selection: Selection,
        *,
        resource_version: str,
        timeout: timedelta,  # noqa: ASYNC109 - the port's
    ) -> AsyncIterator[WatchEvent]:
        """Yield what happens to objects."""
        await self._passed()
        self.emit(round(clock.monotonic(), 6), self.who, "watch", resource.plural, resource_version)
        async for event in self.server.watch(resource, selection, resource_version=resource_version, timeout=timeout):
            await self._passed()
            if self.chance.random() < self.weather.watch_cut:
                raise NoAnswer("simulated: the watch is cut")
            yield event

    async def raw(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Make a request by its path."""
        return await self._read(f"raw {path}", lambda: self.server.raw(method, path, body))
