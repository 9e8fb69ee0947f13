"""What a process can do once it is confined: the filter of system calls, on real processes."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from composer.workers import seccomp


def _read() -> None:
    Path("/etc/passwd").read_bytes()


def _create() -> None:
    os.open("/tmp/fairlead-escape", os.O_CREAT | os.O_WRONLY, 0o600)  # noqa: S108 - refused, which is the point


def _connect() -> None:
    socket.socket(socket.AF_INET)


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _execute() -> None:
    os.execv("/bin/true", ["true"])  # noqa: S606 - refused, which is the point


def _kill() -> None:
    os.kill(os.getppid(), 0)


def _trace() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, os.getppid(), 0, 0) == -1:
        raise OSError(ctypes.get_errno(), "ptrace")


ATTEMPTS = {attempt.__name__: attempt for attempt in (_read, _create, _connect, _fork, _execute, _kill, _trace)}
_ALLOWED, _REFUSED, _OTHER = 0, 7, 9


def _outcome(attempt: Callable[[], None], *, user: int) -> int:
    """Try something in a confined child of this user; return how it ended."""
    pid = os.fork()
    if pid == 0:
        status = _OTHER
        try:
            if user and os.geteuid() == 0:
                os.setgid(user)
                os.setuid(user)
            seccomp.confine(system_calls=True)
            attempt()
            status = _ALLOWED
        except OSError as error:
            status = _REFUSED if error.errno == errno.EPERM else _OTHER
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("user", [0, 65534], ids=["as whoever runs the tests", "as nobody"])
@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_a_confined_process_is_refused(attempt: Callable[[], None], user: int) -> None:
    assert _outcome(attempt, user=user) == _REFUSED


def test_the_filter_refuses_a_foreign_calling_convention() -> None:
    """On x86_64 the x32 calls share the audit number; the program must end them before it compares."""
    program = seccomp.filter_program(1, 0x40000000, (0,))
    bare = seccomp.filter_program(1, 0, (0,))

    assert len(program) - len(bare) == 2 * 8
