"""The composer and the providers as processes of this machine, each under its own ServiceAccount, never as admin."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from devcloud import daemons
from devcloud.controlplane.plane import Plane
from devcloud.daemons import Command, Lifetime
from devcloud.errors import DevcloudError

_HOST = "127.0.0.1"
_TOKEN_LIFETIME_S = 365 * 86_400  # nobody renews the token of a platform that stays up
_READY_LIMIT_S = 60.0
_DRAIN_S = 30.0
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Program:
    """One process of ours.

    Attributes:
        name: What people call it.
        module: The arguments of `python -m`.
        namespace: The namespace of its Lease, its Secrets and its ServiceAccount.
        account: That ServiceAccount's name.
    """

    name: str
    module: tuple[str, ...]
    namespace: str
    account: str

    def log(self, folder: Path) -> Path:
        """Return its log in a platform's folder."""
        return folder / "logs" / f"{self.name}.log"

    def pid_file(self, folder: Path) -> Path:
        """Return its pid file in a platform's folder."""
        return folder / f"{self.name}.pid.json"


COMPOSER = Program("composer", ("composer",), "fairlead-system", "fairlead-composer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a process is started with: the installation's id, where it answers probes, more flags."""

    installation: str
    health_port: int
    flags: tuple[str, ...] = ()


async def start(program: Program, folder: Path, cluster: Plane, options: Start) -> None:
    """Start a program unless it runs; give it a fresh token of its ServiceAccount.

    Raises:
        DevcloudError: Its ServiceAccount is missing, or it cannot be started.
    """
    # For one that runs too: a control plane that was started again may have another port, and processes read this anew.
    kubeconfig = await cluster.service_account_kubeconfig(
        program.namespace, program.account, lifetime_s=_TOKEN_LIFETIME_S
    )
    if runs(program, folder):
        return
    flags = (f"--namespace={program.namespace}", f"--health-port={options.health_port}", *options.flags)
    log = program.log(folder)
    # Only this start's words may answer "why did it end"; those of a process that died are kept beside them.
    daemons.set_aside(log)
    command = Command(
        name=program.name,
        arguments=daemons.python("-m", *program.module, *flags),
        log=log,
        environment=_environment() | {"KUBECONFIG": str(kubeconfig), "FAIRLEAD_INSTALLATION": options.installation},
    )
    daemons.save(program.pid_file(folder), daemons.launch(command, Lifetime.DETACHED))


async def until_ready(program: Program, folder: Path, *, health_port: int) -> None:
    """Return when a started program says that it is ready.

    Raises:
        DevcloudError: It ended, or was not ready in time.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _READY_LIMIT_S
    log = program.log(folder)
    while not await answers_well(health_port):
        if not runs(program, folder):
            raise DevcloudError(f"{program.name} ended: {daemons.log_tail(log)}; see {log}")
        if loop.time() > deadline:
            raise DevcloudError(f"{program.name} is not ready after {_READY_LIMIT_S:g} s: see {log}")
        await asyncio.sleep(_POLL_S)


async def stop(program: Program, folder: Path) -> None:
    """Ask a program to drain its work and end."""
    identity = daemons.load(program.pid_file(folder))
    if identity is not None:
        await daemons.stop(identity, number=signal.SIGTERM, grace_s=_DRAIN_S)
    program.pid_file(folder).unlink(missing_ok=True)


def runs(program: Program, folder: Path) -> bool:
    """Return whether a program runs."""
    identity = daemons.load(program.pid_file(folder))
    return identity is not None and daemons.is_alive(identity)


def free_ports(names: Iterable[str]) -> dict[str, int]:
    """Choose a health port for each program."""
    with contextlib.ExitStack() as stack:
        # All open at once, so that no two are the same.
        sockets = {name: stack.enter_context(socket.socket()) for name in names}
        for listener in sockets.values():
            listener.bind((_HOST, 0))
        return {name: int(listener.getsockname()[1]) for name, listener in sockets.items()}


def _environment() -> dict[str, str]:
    # Nothing else of the caller's environment: no credential of his may reach a process of ours.
    return {name: os.environ[name] for name in ("HOME", "LANG", "PATH", "TMPDIR") if name in os.environ}


async def answers_well(port: int, path: str = "/readyz") -> bool:
    """Return whether a GET of a path at a port of this machine is answered by 200."""
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(_HOST, port), 2.0)
        try:
            writer.write(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
            answer = await asyncio.wait_for(reader.readline(), 2.0)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
    except (OSError, TimeoutError):
        return False
    return b" 200 " in answer
