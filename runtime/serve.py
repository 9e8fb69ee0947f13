"""A controller process: connect, keep warm, lead, drain, release.

Guarantees: the process does not exit because the API server is away; informers fill before it leads, so that a
standby takes over warm; SIGTERM and SIGINT end it with status 0 after passes in flight ended and the Lease is free.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import metadata
from pathlib import Path
from typing import Final, TypeAlias

import structlog
import uvloop

from runtime import fence, logs, randomness
from runtime.cache import Cache
from runtime.checks import checks_of
from runtime.controller import Controller
from runtime.elector import Elector, ElectorHooks, exit_hard
from runtime.errors import ApiError, NoAnswer
from runtime.events import EventRecorder
from runtime.health import serve_health
from runtime.kube import Kube
from runtime.kube_client import KubeClient
from runtime.leadership import Leadership
from runtime.lease import LeaseSettings
from runtime.manager import Manager
from runtime.objects import Key
from runtime.tracing import TRACING

_log = structlog.get_logger("runtime.serve")

_RETRY_SECONDS: Final = 2.0
_WARM_UP: Final = timedelta(seconds=60)
_GC_THRESHOLDS: Final = 20_000, 20, 50


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """The settings of a process. `name` is user agent and Lease; `namespace` is the Lease's."""

    name: str
    namespace: str
    kubeconfig: Path | None = None
    health_host: str = "127.0.0.1"
    health_port: int = 8081
    lease: LeaseSettings = field(default_factory=LeaseSettings)
    elect: bool = True
    installation: str = ""
    log_level: str = "INFO"
    version: str = "unknown"
    # Whose loggers speak at that level; all others are pinned to WARNING.
    packages: tuple[str, ...] = ()


@dataclass(slots=True)
class ProcessContext:
    """What a process gives its controllers. `leadership` is None while it does not lead, or leads without election.

    `manager` runs the controllers that were built, and takes others while it runs.
    """

    kube: Kube
    cache: Cache
    events: EventRecorder
    identity: str
    settings: ProcessSettings
    manager: Manager = field(default_factory=Manager)
    leadership: Leadership | None = None


Build: TypeAlias = Callable[[ProcessContext], Awaitable[Sequence[Controller]]]


def main(settings: ProcessSettings, build: Build) -> int:
    """Run a process on uvloop until a signal ends it; return its exit status."""
    logs.configure(level=settings.log_level, packages=settings.packages)
    TRACING.begin(settings.name, settings.version)
    freeze_imports()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(serve(settings, build))
    finally:
        TRACING.end()


def version_of(distribution: str) -> str:
    """Return the version of an installed package, `unknown` for a checkout that is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "unknown"


def freeze_imports() -> None:
    """Take all that is loaded by now out of the garbage collector's sight: it stays for the life of the process.

    The SDKs' modules alone would make each full collection stop the event loop for some fifty milliseconds. A pass
    allocates thousands of containers that live for a moment: collections follow each other after 20,000, not 700.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


async def serve(settings: ProcessSettings, build: Build) -> int:
    """Run a process until SIGTERM or SIGINT; return 0 after a clean stop. Raises OSError when the port is taken."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    running = asyncio.create_task(_run(settings, build), name=settings.name)
    stopping = asyncio.create_task(stop.wait(), name="signal")
    await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    _log.info("stopped")
    return 0


async def _run(settings: ProcessSettings, build: Build) -> None:
    kube = await _connected(settings)
    identity = f"{os.environ.get('HOSTNAME') or socket.gethostname()}_{randomness.token_hex(4)}"
    context = ProcessContext(
        kube=kube,
        cache=Cache(kube),
        events=EventRecorder(kube, controller=settings.name, instance=identity),
        identity=identity,
        settings=settings,
    )
    controllers = context.manager
    checks = checks_of(context.cache, controllers, unreachable_for=lambda: kube.connectivity.unreachable_for)
    server = await serve_health(checks, host=settings.health_host, port=settings.health_port)
    try:
        async with asyncio.TaskGroup() as background:
            tasks = [
                background.create_task(context.cache.run(), name="cache"),
                background.create_task(send_events(context), name="events"),
            ]
            for controller in await _built(build, context):
                controllers.add(controller)
            try:
                await lead(context)
            finally:
                for task in tasks:
                    task.cancel()
    finally:
        server.close()
        await kube.close()


async def send_events(context: ProcessContext) -> None:
    """Send events; without the Lease they are dropped."""
    fence.bind(lambda: not context.settings.elect or _holds(context.leadership))
    await context.events.run()


def _holds(leadership: Leadership | None) -> bool:
    return leadership is not None and leadership.holds()


async def lead(context: ProcessContext, exit_hard: Callable[[], None] = exit_hard) -> None:
    """Run the controllers, once all is listed, as leader or without election; `exit_hard` ends a process that must."""
    try:
        await context.cache.wait_synced(_WARM_UP)
    except TimeoutError as error:
        # One kind that cannot be listed must not keep the others waiting.
        _log.warning("not everything is listed yet", error=str(error))

    async def run(leadership: Leadership | None) -> None:
        context.leadership = leadership
        if leadership is not None:
            fence.bind(leadership.holds, bounds=leadership.bounded)
        else:
            fence.bind(lambda: True)
        try:
            await context.manager.run()
        finally:
            context.leadership = None

    settings = context.settings
    if not settings.elect:
        await run(None)
        return
    key = Key(settings.namespace, settings.name)
    hooks = ElectorHooks(exit_hard=exit_hard, reached=context.cache.retry_now, under_way=context.manager.passes)
    await Elector(context.kube, key, context.identity, settings.lease, hooks=hooks).run(run)


async def _connected(settings: ProcessSettings) -> KubeClient:
    while True:
        try:
            return await KubeClient.connect(user_agent=settings.name, kubeconfig=settings.kubeconfig)
        except NoAnswer as error:
            _log.warning("waiting for a Kubernetes configuration", error=str(error))
            await asyncio.sleep(_RETRY_SECONDS)


async def _built(build: Build, context: ProcessContext) -> Sequence[Controller]:
    while True:
        try:
            return await build(context)
        except (ApiError, TimeoutError) as error:
            _log.warning("waiting for the API server", error=str(error))
            await asyncio.sleep(_RETRY_SECONDS)
