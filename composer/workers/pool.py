"""Renders and checks in confined worker processes; the other side is `composer.workers.worker`.

A worker that takes too long, too much or breaks is killed and costs that one request; what killed three workers is
refused for five minutes, and so long the namespace that it came from has one worker at a time: the others are its
neighbours'. So it is with one whose render takes long, and that render goes on at a lower priority: the event loop and
the neighbours' renders find a free processor on a machine that has few.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Final, NamedTuple, TypeVar

import msgspec
import structlog
from prometheus_client import Counter

from apis.identity import Identity
from composer.render.errors import CompositionError, Problem
from composer.render.render import Rendered
from composer.render.request import Request
from composer.validation.offerings import Offerings
from composer.validation.validate import CheckRequest
from composer.workers import worker
from composer.workers.answer_check import (
    AnswerError,
    CheckedObjects,
    refuse_boundless,
    refuse_excess,
    refuse_foreign,
    refuse_strange,
)
from composer.workers.processes import START_SECONDS, Worker, WorkerProcesses
from composer.workers.server import TemplateServer
from composer.workers.worker import Answer, Operation, Order
from runtime import clock
from runtime.errors import Transient
from runtime.metrics import REGISTRY

_log = structlog.get_logger("composer.workers.pool")

ANSWERS_REFUSED: Final = Counter(
    "fairlead_template_answers_refused",
    "Total number of answers of template workers that were refused, each of which ended its worker",
    ["operation"],
    registry=REGISTRY,
)
for _operation in ("render", "check", "offerings"):
    ANSWERS_REFUSED.labels(_operation)
_Result = TypeVar("_Result")

# Bombs end by processor time or memory; this is for a worker that gets no processor at all.
WALL = timedelta(seconds=30)
# Processor time, longer than renders that do no harm take: the rest of one goes on at a lower priority.
LONG = timedelta(milliseconds=250)
_LONG_CHECK = timedelta(seconds=1)
KILLS = 3
_ATTEMPTS = 2
REFUSED_FOR = timedelta(minutes=5)
_SERVES = 10_000
_LOOK_SECONDS = 0.01


class ConfinementError(Exception):
    """Workers cannot be confined here; the sentence says why and what to do."""


class _About(NamedTuple):
    """What a request is about: the hash of its content, and the namespace it is made for."""

    content: str
    tenant: str


class RenderPool:
    """A pool of at most so many workers. Made without a `server` it forks one: before any connection or thread."""

    def __init__(self, *, server: TemplateServer | None = None, is_confined: bool = True, workers: int = 2) -> None:
        self._server = server or TemplateServer(is_confined=is_confined)
        self._workers = WorkerProcesses(self._server, workers)
        self._kills: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._throttled: OrderedDict[str, float] = OrderedDict()
        self._has_throttled = False
        self._checked = CheckedObjects()

    def prove(self) -> None:
        """Start the first worker. Raises ConfinementError when it cannot be confined."""
        pid, pipe = self._server.spawn()
        pipe.settimeout(START_SECONDS)
        answer = pipe.recv(4096)[4:]
        pipe.settimeout(None)
        if answer != worker.READY:
            pipe.close()
            why = answer.decode(errors="replace") or "the worker died"
            raise ConfinementError(
                f"templates cannot be rendered safely here: {why}; allow seccomp for this process, "
                "or start with --unsafe-render to render without it"
            )
        self._workers.adopt(pid, pipe)

    async def render(self, request: Request) -> Rendered:
        """Render one claim. Raises CompositionError (RenderLimit included), or Transient when workers are lost."""
        identity = Identity.parse(request.identity)
        tenant = identity.namespace if identity else ""

        def read(body: bytes) -> Rendered | tuple[Problem, ...]:
            answer = msgspec.json.decode(body, type=Answer)
            if answer.rendered is not None:
                refuse_excess(body)
                refuse_foreign(request, answer.rendered, self._checked)
                return answer.rendered
            if not answer.problems:
                raise AnswerError("it has neither a result nor a fault")
            refuse_strange(request.composition, answer.problems)
            return answer.problems

        with self._throttled_slot(tenant):
            body = msgspec.json.encode(request)
            result = await self._send("render", body, _About(_content(body), tenant), read)
        if not isinstance(result, Rendered):
            raise CompositionError(*result)
        return result

    async def check(self, request: CheckRequest) -> tuple[Problem, ...]:
        """Check one Composition. Raises Transient when workers are lost."""

        def read(body: bytes) -> tuple[Problem, ...]:
            problems = msgspec.json.decode(body, type=Answer).problems or ()
            refuse_strange(request.composition, problems)
            return problems

        try:
            body = msgspec.json.encode(request)
            return await self._send("check", body, _About(_content(body), ""), read)
        except CompositionError as error:
            return error.problems

    async def offerings(self, request: CheckRequest) -> Offerings:
        """Return what claims may ask for. Raises CompositionError (RenderLimit included), Transient as `check`."""

        def read(body: bytes) -> Offerings | tuple[Problem, ...]:
            answer = msgspec.json.decode(body, type=Answer)
            if answer.offerings is not None:
                refuse_boundless(answer.offerings)
                return answer.offerings
            refuse_strange(request.composition, answer.problems or ())
            return answer.problems or ()

        body = msgspec.json.encode(request)
        # That this fails is held against no check of the same content.
        result = await self._send("offerings", body, _About(f"offerings {_content(body)}", ""), read)
        if not isinstance(result, Offerings):
            raise CompositionError(*result)
        return result

    async def close(self) -> None:
        """End all workers and the server."""
        self._workers.close()
        await asyncio.to_thread(self._server.close)

    @contextmanager
    def _throttled_slot(self, tenant: str) -> Iterator[None]:
        """Admit one render at a time of a namespace whose renders killed a worker lately. Raises Transient for more."""
        since = self._throttled.get(tenant)
        if since is None or clock.monotonic() - since >= REFUSED_FOR.total_seconds():
            self._throttled.pop(tenant, None)
            yield
            return
        if self._has_throttled:
            raise Transient(f"renders of namespace {tenant} used up their limits lately and take turns")
        self._has_throttled = True
        try:
            yield
        finally:
            self._has_throttled = False

    async def _send(
        self, operation: Operation, body: bytes, about: _About, read: Callable[[bytes], _Result]
    ) -> _Result:
        """Send a request to a worker; where its answer fits no such request, to another: that one may be taken over."""
        self._refuse(about.content)
        frame = msgspec.json.encode(Order(operation, msgspec.Raw(body)))
        if len(frame) > worker.FRAME_LIMIT_BYTES:
            raise CompositionError(Problem("RenderLimit", "the input of a render is too large"))
        for _ in range(_ATTEMPTS - 1):
            with suppress(AnswerError):
                return await self._one_answer(operation, frame, about, read)
        try:
            return await self._one_answer(operation, frame, about, read)
        except AnswerError as error:
            self._count_kill(about)
            text = f"a template worker answered what no {operation} of this Composition gives, and was ended: {error}"
            raise CompositionError(Problem("RenderRefused", text)) from error

    async def _one_answer(
        self, operation: Operation, frame: bytes, about: _About, read: Callable[[bytes], _Result]
    ) -> _Result:
        is_check = operation != "render"
        process = await self._workers.take(is_throttled=about.tenant in self._throttled, is_urgent=not is_check)
        is_kept = False
        try:
            result = read(await self._exchange(process, frame, about, _LONG_CHECK if is_check else LONG))
            process.served += 1
            is_kept = not (process.served >= _SERVES or process.is_slowed or _is_exhausted(result))
        except TimeoutError as error:
            raise Transient(f"a render had no answer within {WALL.total_seconds():g} s") from error
        except (AnswerError, msgspec.DecodeError, RecursionError) as error:
            ANSWERS_REFUSED.labels(operation).inc()
            why = str(error) if isinstance(error, AnswerError) else f"it cannot be read ({type(error).__name__})"
            _log.error("audit", action="WorkerEnded", worker=process.pid, namespace=about.tenant, why=why)
            raise AnswerError(why) from error
        except OSError as error:
            self._count_kill(about)
            seconds = worker.CHECK_CPU_SECONDS if is_check else worker.CPU_SECONDS
            limits = f"{seconds:g} s of processor time, or memory"
            raise CompositionError(Problem("RenderLimit", f"the {operation} used up its limit: {limits}")) from error
        finally:
            # Also after a cancellation: its answer would be taken for the next one's.
            if is_kept:
                self._workers.put_back(process)
            else:
                await self._workers.replace(process)
        return result

    async def _exchange(self, process: Worker, frame: bytes, about: _About, long: timedelta) -> bytes:
        try:
            if process.pipe.has_bytes:
                raise AnswerError("it had said something before it was asked")
            self._watch(process, about, _processor_seconds(process.pid) + long.total_seconds())
            async with asyncio.timeout(WALL.total_seconds()):
                process.pipe.send(frame)
                answer = await process.pipe.receive()
                if process.pipe.has_bytes:
                    raise AnswerError("something follows it")
                return answer
        finally:
            if process.watch:
                process.watch.cancel()

    def _watch(self, process: Worker, about: _About, until: float) -> None:
        """Check a worker again when its processor time may have come to `until`, and then lower its priority."""
        with suppress(OSError):
            left = until - _processor_seconds(process.pid)
            if left > 0:
                again = max(left, _LOOK_SECONDS)
                process.watch = asyncio.get_running_loop().call_later(again, self._watch, process, about, until)
                return
            process.is_slowed = True
            self._server.slow(process.pid)
            self._throttle(about.tenant)

    def _refuse(self, content: str) -> None:
        kills, since = self._kills.get(content, (0, 0.0))
        if kills < KILLS:
            return
        if clock.monotonic() - since < REFUSED_FOR.total_seconds():
            message = f"the render used up its limits {kills} times; it is tried again in five minutes"
            raise CompositionError(Problem("RenderLimit", message))
        del self._kills[content]

    def _count_kill(self, about: _About) -> None:
        kills, _ = self._kills.pop(about.content, (0, 0.0))
        self._kills[about.content] = (kills + 1, clock.monotonic())
        self._throttle(about.tenant)
        if len(self._kills) > _SERVES:
            self._kills.popitem(last=False)

    def _throttle(self, tenant: str) -> None:
        if tenant:
            self._throttled[tenant] = clock.monotonic()
        if len(self._throttled) > _SERVES:
            self._throttled.popitem(last=False)


def _content(body: bytes) -> str:
    """Hash all that goes into a render, claim and namespace included: what one does is held against no other."""
    return hashlib.sha256(body).hexdigest()


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a process. Raises OSError when it is gone.

    The clock's number is what clock_getcpuclockid(3) would give for CPUCLOCK_SCHED.
    """
    return time.clock_gettime(~pid << 3 | 2)


def _is_exhausted(answer: object) -> bool:
    """Return whether a render met a limit: where memory ends, what Python builds once may be left half built."""
    return isinstance(answer, tuple) and any(
        isinstance(problem, Problem) and problem.reason == "RenderLimit" for problem in answer
    )
