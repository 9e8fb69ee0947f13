"""Programs that run beside us: started with a log file, known again by pid and start time, stopped by pid only.

A pid alone proves nothing, since the kernel reuses it. An `Identity` adds the boot and the start time of the
process, and signals go through a pidfd (pidfd_open(2)), so that a stranger who got the number is never touched.
"""

import asyncio
import contextlib
import enum
import os
import select
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from devcloud.errors import DevcloudError
from devcloud.paths import write_private

_STANDARD_ERROR = 2

_POLL_S = 0.05
_START_TIME_FIELD = 19  # of /proc/<pid>/stat after the command's name: field 22 of proc(5)
_LOG_TAIL_BYTES = 2000


class Lifetime(enum.Enum):
    """How long a started program lives when nobody stops it."""

    WITH_PARENT = "until the process that started it ends, however it ends"
    DETACHED = "until it is stopped"


class Identity(msgspec.Struct, frozen=True):
    """One process, distinct from every other one of this machine, earlier boots included."""

    pid: int
    start_ticks: int
    boot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run.

    Attributes:
        name: The short name for logs and errors.
        arguments: The program, absolute or found on PATH, and its arguments.
        log: The file that gets both output streams, appended.
        environment: All of its environment; None is ours.
        descriptors: Open descriptors that it inherits under the same numbers.
        death_signal: What it gets under `Lifetime.WITH_PARENT` when we die.
        account: A command that changes the account and then becomes the program, such as `setpriv --reuid=...`.
    """

    name: str
    arguments: tuple[str, ...]
    log: Path
    environment: Mapping[str, str] | None = None
    descriptors: tuple[int, ...] = field(default=())
    death_signal: signal.Signals = signal.SIGKILL
    account: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Daemon:
    """A program that was started, by us or by an earlier run."""

    name: str
    identity: Identity
    log: Path


def launch(command: Command, lifetime: Lifetime) -> Daemon:
    """Start a program in a session of its own and return at once.

    Under `Lifetime.WITH_PARENT` call it from a thread that lives as long as the process (PR_SET_PDEATHSIG follows
    the thread).

    Raises:
        DevcloudError: The program does not exist or cannot be executed.
    """
    arguments = (*command.account, *_death_prefix(command, lifetime), *command.arguments)
    command.log.parent.mkdir(parents=True, exist_ok=True)
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(command.log), append, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
        *((os.POSIX_SPAWN_DUP2, number, number) for number in command.descriptors),
        *((os.POSIX_SPAWN_CLOSE, number) for number in _left_to_us() - set(command.descriptors)),
    ]
    environment = dict(os.environ if command.environment is None else command.environment)
    try:
        pid = os.posix_spawnp(arguments[0], arguments, environment, file_actions=actions, setsid=True)
    except OSError as error:
        raise DevcloudError(f"cannot start {command.name}: {arguments[0]}: {error.strerror}") from error
    identity = _identity_of(pid)
    if identity is None:
        raise DevcloudError(f"{command.name} ended at once: {log_tail(command.log)}")
    return Daemon(name=command.name, identity=identity, log=command.log)


def _left_to_us() -> set[int]:
    """Return the descriptors that a shell, a `make` or a `flock` left open for us.

    What outlives us must not keep them: a lock would be held for ever, and a reader would wait for the end of a pipe.
    """
    descriptors: set[int] = set()
    for number in (int(path.name) for path in Path("/proc/self/fd").iterdir()):
        # One of them is the listing's own.
        with contextlib.suppress(OSError):
            if number > _STANDARD_ERROR and os.get_inheritable(number):
                descriptors.add(number)
    return descriptors


def _death_prefix(command: Command, lifetime: Lifetime) -> tuple[str, ...]:
    if lifetime is Lifetime.DETACHED:
        return ()
    # After the change of account: the kernel forgets the signal when credentials change (prctl(2)).
    setpriv = (program("setpriv"), "--pdeathsig", command.death_signal.name.removeprefix("SIG"), "--")
    # A parent that died before the signal was set sends none.
    return (*setpriv, "/bin/sh", "-c", '[ "$PPID" = "$0" ] || exit 0; exec "$@"', str(os.getpid()))


def program(name: str) -> str:
    """Return the path of a program of Debian's util-linux.

    Raises:
        DevcloudError: It is not on PATH.
    """
    path = shutil.which(name)
    if path is None:
        raise DevcloudError(f"{name} is not on PATH: install Debian's package util-linux")
    return path


def identity_of_self() -> Identity:
    """Return the identity of the calling process."""
    identity = _identity_of(os.getpid())
    if identity is None:
        raise DevcloudError("/proc is not mounted: mount it, then try again")
    return identity


def _identity_of(pid: int) -> Identity | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return Identity(pid=pid, start_ticks=int(fields[_START_TIME_FIELD]), boot=boot)


def is_alive(identity: Identity) -> bool:
    """Return whether this very process still runs; one that ended and waits to be reaped does not."""
    _reap(identity.pid)
    if _identity_of(identity.pid) != identity:
        return False
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        state = Path(f"/proc/{identity.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state not in {"Z", "X"}
    return False


def _reap(pid: int) -> None:
    # Only a child of ours has a status to collect; any other pid is somebody else's to reap.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def send(identity: Identity, number: signal.Signals) -> bool:
    """Signal exactly this process; return False when it is gone."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return False
    try:
        # Checked after opening: from here on the descriptor names one process for ever.
        if not is_alive(identity):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


async def stop(identity: Identity, *, number: signal.Signals = signal.SIGTERM, grace_s: float = 10.0) -> None:
    """End a process: ask by signal, and after the grace time kill its group; return when it is gone."""
    if not send(identity, number):
        return
    if await _gone_within(identity, grace_s):
        return
    with contextlib.suppress(ProcessLookupError):
        # It leads its session, so what it started goes with it.
        os.killpg(identity.pid, signal.SIGKILL)
    await _gone_within(identity, grace_s)


async def _gone_within(identity: Identity, limit_s: float) -> bool:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit_s
    while is_alive(identity):
        if loop.time() > deadline:
            return False
        await asyncio.sleep(_POLL_S)
    return True


async def stop_strays(name: str, marker: str) -> None:
    """End programs of this user that an interrupted run started and did not come to record.

    Args:
        name: The program's file name.
        marker: An argument that only this platform's program has, such as `--data-dir=<its folder>`.
    """
    for identity in _strays(name, marker):
        await stop(identity)


def _strays(name: str, marker: str) -> list[Identity]:
    identities: list[Identity] = []
    for entry in Path("/proc").glob("[0-9]*"):
        # Processes end while we look.
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            # Root's servers may run as another user; nobody else has such.
            is_ours = os.geteuid() in {0, entry.stat().st_uid}
            if Path(words[0]).name != name or marker not in words or not is_ours:
                continue
            identity = _identity_of(int(entry.name))
            if identity is not None:
                identities.append(identity)
    return identities


def kill_now(identity: Identity, *, limit_s: float = 10.0) -> None:
    """Kill -9 a process and return when the kernel has ended it."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return
    try:
        if send(identity, signal.SIGKILL):
            select.select([descriptor], [], [], limit_s)
    finally:
        os.close(descriptor)
    _reap(identity.pid)


def set_aside(log: Path) -> None:
    """Begin a new log: the former one is kept as `<name>.1`, in place of the one before it."""
    with contextlib.suppress(FileNotFoundError):
        log.replace(log.with_name(f"{log.name}.1"))


def log_tail(log: Path) -> str:
    """Return the end of a log as one line, for an error's text."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _LOG_TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return "it wrote no log"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-3:]) or "its log is empty"


def save(path: Path, daemon: Daemon) -> None:
    """Write the pid file."""
    write_private(path, msgspec.json.encode(daemon.identity))


def load(path: Path) -> Identity | None:
    """Read a pid file; None when there is none, or when it is damaged and so proves nothing."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Identity)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def python(*arguments: str) -> tuple[str, ...]:
    """Return the command line of a module of ours under the interpreter and environment that we run in."""
    return (sys.executable, *arguments)
