"""The worker processes of a pool: one as long as it is enough, others while renders wait for it.

A worker takes some ten MiB of its own. One renders far more claims than the composer has passes for; a second one is
for the neighbours of a render that takes long. It is forked when a render has waited for `PATIENCE`, or at once for a
namespace whose renders killed workers lately, and ended when nobody needed it for `SPARE`.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from composer.workers.pipe import WorkerPipe
from composer.workers.server import TemplateServer
from runtime import clock
from runtime.errors import Transient

PATIENCE: Final = timedelta(milliseconds=100)
SPARE: Final = timedelta(seconds=20)
START_SECONDS: Final = 20.0
# The largest output, what is said of a hundred faults, and what stands around them.
_ANSWER_LIMIT_BYTES: Final = 2 << 20


@dataclass(slots=True)
class Worker:
    """One worker process. `used_at` is the event loop's time of its last answer."""

    pid: int
    pipe: WorkerPipe
    served: int = 0
    is_slowed: bool = False
    watch: asyncio.TimerHandle | None = None
    used_at: float = 0.0


class IdleWorkers(asyncio.Queue[Worker]):
    """Workers at rest, the one that served most comes first: it holds what others' renders were compiled to."""

    # `_init` and `_get` are what asyncio has subclasses change.
    def _init(self, maxsize: int) -> None:  # noqa: ARG002 - asyncio's form
        self._queue: list[Worker] = []

    def _get(self) -> Worker:
        warmest = max(self._queue, key=lambda idle: idle.served)
        self._queue.remove(warmest)
        return warmest

    def exchange(self, worker: Worker) -> Worker:
        """Return the worker that served least, this one counted in, and keep the others."""
        coldest, *rest = sorted([worker, *self._queue], key=lambda candidate: candidate.served)
        self._queue[:] = rest
        return coldest


class WorkerProcesses:
    """Between one and `limit` workers."""

    def __init__(self, server: TemplateServer, limit: int) -> None:
        self._server = server
        self._limit = limit
        self._count = 0
        self._starting = asyncio.Lock()
        self._proven: tuple[int, socket.socket] | None = None
        self._ending: asyncio.TimerHandle | None = None
        self.idle = IdleWorkers()

    def adopt(self, pid: int, pipe: socket.socket) -> None:
        """Take over a worker that has said that it is ready; it is the first to be used."""
        self._proven = pid, pipe

    async def take(self, *, is_throttled: bool, is_urgent: bool) -> Worker:
        """Wait for a worker; for long only where all are busy that there may be, or it is not urgent.

        A namespace that is throttled gets the worker that served least, and a second one rather than the only one.
        Raises Transient.
        """
        if not self._count:
            async with self._starting:
                if not self._count:
                    self.idle.put_nowait(await self._started())
        if is_throttled:
            if self._count < self._limit:
                return await self._started()
            return self.idle.exchange(await self.idle.get())
        if is_urgent and self._count < self._limit and self.idle.empty():
            with suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE.total_seconds()):
                    return await self.idle.get()
            if self._count < self._limit:
                return await self._started()
        return await self.idle.get()

    def put_back(self, worker: Worker) -> None:
        """Have a worker at rest; others than one are ended when they rest for long."""
        loop = asyncio.get_running_loop()
        worker.used_at = clock.loop_time()
        self.idle.put_nowait(worker)
        if self._count > 1 and self._ending is None:
            self._ending = loop.call_later(SPARE.total_seconds(), self._end_spare)

    async def replace(self, worker: Worker) -> None:
        """End a worker, and have another in its place. Raises Transient."""
        self.end(worker)
        self.put_back(await self._started())

    def end(self, worker: Worker) -> None:
        """End a worker at once."""
        self._count -= 1
        worker.pipe.close()
        self._server.kill(worker.pid)

    def close(self) -> None:
        """End all workers that rest."""
        if self._ending:
            self._ending.cancel()
        if self._proven:
            self._proven[1].close()
        while not self.idle.empty():
            self.end(self.idle.get_nowait())

    async def _started(self) -> Worker:
        self._count += 1
        try:
            return await self._opened()
        except BaseException:
            self._count -= 1
            raise

    async def _opened(self) -> Worker:
        try:
            if self._proven:
                (pid, pipe), self._proven = self._proven, None
                return Worker(pid, await WorkerPipe.open(pipe, _ANSWER_LIMIT_BYTES))
            pid, pipe = await asyncio.to_thread(self._server.spawn)
            worker_pipe = await WorkerPipe.open(pipe, _ANSWER_LIMIT_BYTES)
            async with asyncio.timeout(START_SECONDS):
                await worker_pipe.receive()
        except (OSError, TimeoutError) as error:
            raise Transient(f"the template server is lost: {error}") from error
        return Worker(pid, worker_pipe)

    def _end_spare(self) -> None:
        """End the worker at rest that served least, if there is another and nobody needed it for long."""
        self._ending = None
        if self._count == 1 or self.idle.empty():
            return
        coldest = self.idle.exchange(self.idle.get_nowait())
        left = coldest.used_at + SPARE.total_seconds() - clock.loop_time()
        if left > 0:
            self.idle.put_nowait(coldest)
            self._ending = asyncio.get_running_loop().call_later(left, self._end_spare)
        else:
            with suppress(OSError):
                self.end(coldest)
