"""The HTTP server of a simulated cloud: `serving` within a program, `running` beside a test."""

import asyncio
import contextlib
import secrets
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, NoReturn, TypeVar

import msgspec
from aiohttp import web

from devcloud.certificates import Subject, authority_in
from devcloud.errors import DevcloudError
from devcloud.simulator import control
from devcloud.simulator.behaviour import BehaviourT
from devcloud.simulator.faults import Fault
from devcloud.simulator.messages import Answer, ControlError, Refusal, Request
from devcloud.simulator.service import CallT, SavedT, Service, UnsignedRoute
from devcloud.simulator.state_file import StateFile
from devcloud.simulator.unsigned import refusal_of

T = TypeVar("T")
AUTHORITY = "api-ca"
_TICK_S = 0.02


def new_token() -> str:
    """Return a token for what is unsigned."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to serve.

    Attributes:
        host: The loop-back address.
        port: The TCP port; 0 is a free one.
        tls: A folder with the authority (`api-ca.crt`, made when absent) that signs the API's certificate; None serves
            without TLS.
        state: A file that keeps everything beyond the process; None keeps nothing.
        control_token: What `/_control` asks for, a new one by default; empty closes it.
        unsigned: More that is answered without the cloud's signature.
    """

    host: str = "127.0.0.1"
    port: int = 0
    tls: Path | None = None
    state: Path | None = None
    control_token: str = field(default_factory=new_token, repr=False)
    unsigned: tuple[UnsignedRoute, ...] = ()


@contextlib.asynccontextmanager
async def serving(service: Service[CallT, BehaviourT, SavedT], options: Options) -> AsyncIterator[str]:
    """Serve until the block ends; the value is the URL.

    Raises:
        OSError: The port is taken.
        DevcloudError: The state file is none.
    """
    kept = StateFile(options.state, service) if options.state is not None else None
    if kept is not None:
        kept.load()
    runner = web.AppRunner(
        _application(service, kept, options), access_log=None, shutdown_timeout=0.1, handler_cancellation=True
    )
    await runner.setup()
    ticking = asyncio.create_task(_tick(service, kept))
    try:
        context = _context(options.tls, options.host) if options.tls is not None else None
        site = web.TCPSite(runner, options.host, options.port, ssl_context=context)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"{'http' if context is None else 'https'}://{host}:{port}"
    finally:
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)
        await runner.cleanup()
        if kept is not None:
            # What changed since the last request or tick.
            kept.save()
        await service.close()


@contextlib.contextmanager
def running(start: Callable[[], AbstractAsyncContextManager[T]], *, name: str) -> Iterator[T]:
    """Serve from a thread of its own until the block ends, for programs without an event loop.

    Args:
        start: Serves for the length of its block, as `serving`.
        name: The thread's.
    """
    ready: list[T | BaseException] = []
    started = threading.Event()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        async with start() as served:
            ready.append(served)
            started.set()
            await ended.wait()

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(serve())
        except (OSError, DevcloudError) as error:
            ready.append(error)
        finally:
            started.set()

    thread = threading.Thread(target=run, name=name)
    thread.start()
    started.wait()
    result = ready[0]
    if isinstance(result, BaseException):
        thread.join()
        raise result
    try:
        yield result
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()


async def _tick(
    service: Service[CallT, BehaviourT, SavedT], kept: StateFile[CallT, BehaviourT, SavedT] | None
) -> NoReturn:
    while True:
        await asyncio.sleep(_TICK_S)
        service.tick()
        if kept is not None:
            kept.save()


def _context(folder: Path, host: str) -> ssl.SSLContext:
    certificate, key = authority_in(folder, AUTHORITY).issue(Subject("api", hosts=(host,))).write(folder, "api")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


def _application(
    service: Service[CallT, BehaviourT, SavedT],
    kept: StateFile[CallT, BehaviourT, SavedT] | None,
    options: Options,
) -> web.Application:
    application = web.Application()
    endpoints = _Endpoints(service, kept, options)
    # First: a cloud may answer every path.
    application.router.add_route("*", "/_control/{path:.*}", endpoints.control)
    for unsigned in options.unsigned:
        application.router.add_get(unsigned.path, _UnsignedEndpoint(unsigned).respond)
    for method, path in service.routes:
        application.router.add_route(method, path, endpoints.call)
    return application


class _Endpoints(Generic[CallT, BehaviourT, SavedT]):
    """Turns HTTP into requests of the service and its answers into HTTP."""

    def __init__(
        self,
        service: Service[CallT, BehaviourT, SavedT],
        kept: StateFile[CallT, BehaviourT, SavedT] | None,
        options: Options,
    ) -> None:
        self._service = service
        self._kept = kept
        self._options = options

    async def call(self, http: web.Request) -> web.StreamResponse:
        request = Request(
            method=http.method,
            path=http.path,
            query=http.query_string,
            parameters={name: http.query[name] for name in http.query},
            headers={name.lower(): value for name, value in http.headers.items()},
            body=await http.read(),
            address=http.remote or "",
        )
        try:
            call = self._service.admit(request)
        except Refusal as error:
            return _response(self._service.refused(error, None))
        fault = self._service.controls.faults.take(call.action, call.identifier)
        if fault is not None and not fault.comes_after:
            early = await self._suffer(http, call, fault)
            if early is not None:
                return early
        return await self._performed(http, call, fault)

    async def _performed(self, http: web.Request, call: CallT, fault: Fault | None) -> web.StreamResponse:
        try:
            answer = self._service.perform(call)
        except Refusal as error:
            self._service.record(call, error.code)
            return _response(self._service.refused(error, call))
        self._save()
        late = await self._suffer(http, call, fault) if fault is not None and fault.comes_after else None
        if late is not None:
            return late
        self._service.record(call, "ok")
        return _response(answer)

    async def _suffer(self, http: web.Request, call: CallT, fault: Fault) -> web.StreamResponse | None:
        match fault.kind:
            case "error":
                self._service.record(call, fault.code)
                return _response(self._service.refused(fault.refusal, call))
            case "drop":
                self._service.record(call, "dropped")
                if http.transport is not None:
                    http.transport.abort()
                return web.Response()
            case "hang":
                self._service.record(call, "hung")
                await asyncio.Event().wait()
                return web.Response()
            case "delay":
                await asyncio.sleep(fault.seconds)
                return None

    async def control(self, http: web.Request) -> web.Response:
        """Steer the simulation: see `control`."""
        reason = _refusal_of(http, token=self._options.control_token)
        if reason:
            return web.Response(status=403, text=f"{reason}\n")
        path = tuple(part for part in http.match_info["path"].split("/") if part)
        since = int(http.query.get("since", 0))
        try:
            content = await control.answer(self._service, http.method, path, await http.read(), since)
        except ControlError as error:
            return web.Response(status=400, text=f"{error}\n")
        self._service.controls.changes += http.method != "GET"
        self._save()
        return web.Response(body=msgspec.json.encode(content), content_type="application/json")

    def _save(self) -> None:
        if self._kept is not None:
            self._kept.save()


@dataclass(frozen=True, slots=True)
class _UnsignedEndpoint:
    route: UnsignedRoute

    async def respond(self, http: web.Request) -> web.Response:
        reason = _refusal_of(http, token=self.route.token, scheme=self.route.scheme)
        if reason:
            return web.Response(status=403, text=f"{reason}\n")
        return _response(self.route.respond())


def _refusal_of(http: web.Request, *, token: str, scheme: str = "Bearer ") -> str:
    headers = {name.lower(): value for name, value in http.headers.items()}
    host, port = http.get_extra_info("sockname")[:2]
    return refusal_of(http.method, headers, own=f"{host}:{port}", token=token, scheme=scheme)


def _response(answer: Answer) -> web.Response:
    return web.Response(
        status=answer.status, body=answer.body, content_type=answer.content_type, headers=dict(answer.headers)
    )
