"""The HTTP server of the simulated RDS and STS: `serving` within a program, `running` beside a test."""

import asyncio
import contextlib
import secrets
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import msgspec
from aiohttp import web

from devcloud.aws import control
from devcloud.aws.api import sts
from devcloud.aws.api.wire import time_text
from devcloud.aws.clock import Clock
from devcloud.aws.dataplane import DataPlane, NoDatabases
from devcloud.aws.faults import Fault
from devcloud.aws.iam.principals import ACCESS_KEY, ACCOUNT, ROLE, SECRET_KEY, Role, default_world
from devcloud.aws.iam.signatures import Request
from devcloud.aws.iam.unsigned import refusal_of
from devcloud.aws.jobs import Jobs
from devcloud.aws.refusals import Refusal
from devcloud.aws.simulator import Admitted, Simulator
from devcloud.aws.state_file import StateFile
from devcloud.errors import DevcloudError

_TICK_S = 0.02
_POD_CREDENTIALS_LIFE = timedelta(hours=6)


def _new_token() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run it.

    Attributes:
        host: The loop-back address.
        port: The TCP port; 0 is a free one.
        account: The account of the first user.
        access_key_id: That user's key.
        secret_access_key: Its secret.
        durations: What the length of every operation is multiplied by.
        speed: How many simulated seconds pass in a real one.
        databases: What is behind the instances.
        state: A file that keeps everything beyond the process; None keeps nothing.
        control_token: What `/_control` asks for, a new one by default; empty closes it.
        pod_token: What `/_eks` asks for, as the token of a pod; likewise.
    """

    host: str = "127.0.0.1"
    port: int = 0
    account: str = ACCOUNT
    access_key_id: str = ACCESS_KEY
    secret_access_key: str = field(default=SECRET_KEY, repr=False)
    durations: float = 1.0
    speed: float = 1.0
    databases: DataPlane = field(default_factory=NoDatabases)
    state: Path | None = None
    control_token: str = field(default_factory=_new_token, repr=False)
    pod_token: str = field(default_factory=_new_token, repr=False)


@dataclass(frozen=True, slots=True)
class Served:
    """A running server: its URL, what it serves, its first user's key id and secret, the tokens of what is unsigned."""

    url: str
    simulator: Simulator
    credentials: tuple[str, str] = field(repr=False)
    control_token: str = field(repr=False)
    pod_token: str = field(repr=False)


@contextlib.asynccontextmanager
async def serving(options: Options) -> AsyncIterator[Served]:
    """Serve until the block ends.

    Raises:
        OSError: The port is taken.
        DevcloudError: The state file is none.
    """
    clock = Clock(durations=options.durations, speed=options.speed)
    principals = default_world(options.account, options.access_key_id, options.secret_access_key)
    simulator = Simulator(clock, principals, Jobs(options.databases))
    kept = StateFile(options.state) if options.state is not None else None
    if kept is not None:
        kept.load(simulator)
    runner = web.AppRunner(
        _application(simulator, kept, options), access_log=None, shutdown_timeout=0.1, handler_cancellation=True
    )
    await runner.setup()
    ticking = asyncio.create_task(_tick(simulator, kept))
    try:
        site = web.TCPSite(runner, options.host, options.port)
        await site.start()
        host, port = runner.addresses[0][:2]
        user = (options.access_key_id, options.secret_access_key)
        yield Served(f"http://{host}:{port}", simulator, user, options.control_token, options.pod_token)
    finally:
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)
        await runner.cleanup()
        await simulator.jobs.close()


@contextlib.contextmanager
def running(options: Options) -> Iterator[Served]:
    """Serve from a thread of its own until the block ends, for programs without an event loop."""
    ready: list[Served | BaseException] = []
    started = threading.Event()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        async with serving(options) as served:
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

    thread = threading.Thread(target=run, name="aws simulator")
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


async def _tick(simulator: Simulator, kept: StateFile | None) -> NoReturn:
    while True:
        await asyncio.sleep(_TICK_S)
        simulator.tick()
        if kept is not None:
            kept.save(simulator)


def _application(simulator: Simulator, kept: StateFile | None, options: Options) -> web.Application:
    application = web.Application()
    endpoints = _Endpoints(simulator, kept, options)
    application.router.add_post("/", endpoints.call)
    application.router.add_route("*", "/_control/{path:.*}", endpoints.control)
    application.router.add_get("/_eks/v1/credentials", endpoints.pod_credentials)
    return application


class _Endpoints:
    """Turns HTTP into requests of the simulator and its answers into HTTP."""

    def __init__(self, simulator: Simulator, kept: StateFile | None, options: Options) -> None:
        self._simulator = simulator
        self._kept = kept
        self._options = options

    async def call(self, http: web.Request) -> web.StreamResponse:
        body = await http.read()
        headers = {name.lower(): value for name, value in http.headers.items()}
        request = Request(method=http.method, path=http.path, query=http.query_string, headers=headers, body=body)
        try:
            admitted = self._simulator.admit(request)
        except Refusal as error:
            return _xml(*self._simulator.refused(error, None))
        fault = self._simulator.faults.take(admitted.model.name, admitted.identifier)
        if fault is not None and not fault.comes_after:
            early = await self._suffer(http, admitted, fault)
            if early is not None:
                return early
        return await self._carried_out(http, admitted, fault)

    async def _carried_out(self, http: web.Request, admitted: Admitted, fault: Fault | None) -> web.StreamResponse:
        try:
            answer = self._simulator.perform(admitted)
        except Refusal as error:
            self._simulator.record(admitted, error.code)
            return _xml(*self._simulator.refused(error, admitted))
        if self._kept is not None:
            self._kept.save(self._simulator)
        late = await self._suffer(http, admitted, fault) if fault is not None and fault.comes_after else None
        if late is not None:
            return late
        self._simulator.record(admitted, "ok")
        return _xml(200, answer)

    async def _suffer(self, http: web.Request, admitted: Admitted, fault: Fault) -> web.StreamResponse | None:
        match fault.kind:
            case "error":
                self._simulator.record(admitted, fault.code)
                return _xml(*self._simulator.refused(fault.refusal, admitted))
            case "drop":
                self._simulator.record(admitted, "dropped")
                if http.transport is not None:
                    http.transport.abort()
                return web.Response()
            case "hang":
                self._simulator.record(admitted, "hung")
                await asyncio.Event().wait()
                return web.Response()
            case "delay":
                await asyncio.sleep(fault.seconds)
                return None

    async def control(self, http: web.Request) -> web.Response:
        """Steer the simulation: see `control`."""
        why = _refusal_of(http, token=self._options.control_token)
        if why:
            return web.Response(status=403, text=f"{why}\n")
        path = tuple(part for part in http.match_info["path"].split("/") if part)
        since = int(http.query.get("since", 0))
        try:
            content = await control.answer(self._simulator, http.method, path, await http.read(), since)
        except control.Wrong as error:
            return web.Response(status=400, text=f"{error}\n")
        self._simulator.changes += http.method != "GET"
        if self._kept is not None:
            self._kept.save(self._simulator)
        return web.Response(body=msgspec.json.encode(content), content_type="application/json")

    async def pod_credentials(self, http: web.Request) -> web.Response:
        """EKS Pod Identity's agent (EKS User Guide): a pod's token gets the provider's role."""
        why = _refusal_of(http, token=self._options.pod_token, scheme="")
        if why:
            return web.Response(status=403, text=f"{why}\n")
        simulator = self._simulator
        role: Role | None = next(
            (candidate for candidate in simulator.principals.roles.values() if candidate.name == ROLE), None
        )
        if role is None:
            return web.Response(status=404, text=f"no role {ROLE}\n")
        key = simulator.principals.session(role, "eks", simulator.clock.now() + _POD_CREDENTIALS_LIFE)
        credentials = sts.credentials(key)
        # The credentials of containers have names of their own for two of the fields.
        shown = {
            "AccessKeyId": credentials["AccessKeyId"],
            "SecretAccessKey": credentials["SecretAccessKey"],
            "Token": credentials["SessionToken"],
            "AccountId": key.account,
            "Expiration": time_text(credentials["Expiration"]),
        }
        return web.Response(body=msgspec.json.encode(shown), content_type="application/json")


def _refusal_of(http: web.Request, *, token: str, scheme: str = "Bearer ") -> str:
    headers = {name.lower(): value for name, value in http.headers.items()}
    host, port = http.get_extra_info("sockname")[:2]
    return refusal_of(http.method, headers, own=f"{host}:{port}", token=token, scheme=scheme)


def _xml(status: int, body: bytes) -> web.Response:
    start = body.find(b"<RequestId>") + len(b"<RequestId>")
    request_id = body[start : body.find(b"</RequestId>", start)].decode()
    return web.Response(status=status, body=body, content_type="text/xml", headers={"x-amzn-RequestId": request_id})
