"""Takes everything from a process but memory and the pipe it already holds.

Guarantees after `confine`: no file, socket, process or signal to others can be had (seccomp answers EPERM to every call
that is not listed); memory and open files are limited; nothing gained by exec. Works for root and for any other user,
inside a chroot as well; it needs no file of the system. Sources: seccomp(2), prctl(2), linux/audit.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
from dataclasses import dataclass

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_DUMPABLE = 4
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_RET_ALLOW = 0x7FFF0000
_RET_KILL = 0x80000000
_RET_ERRNO = 0x00050000
_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _RETURN = 0x20, 0x15, 0x35, 0x06
# struct seccomp_data: the call's number, then the architecture.
_OFFSET_NUMBER, _OFFSET_ARCHITECTURE = 0, 4

MEMORY_BYTES = 256 << 20
_STACK_OF_FILES = 16


class SeccompError(Exception):
    """The kernel refused a limit; the sentence says which."""


@dataclass(frozen=True, slots=True)
class _Machine:
    """One architecture: its audit number, the first number of a foreign calling convention (0: none), its calls."""

    audit: int
    foreign_from: int
    calls: tuple[int, ...]


# Named alike on both: read write close fstat lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn
# mremap madvise sched_yield nanosleep setitimer getpid sendto recvfrom exit gettimeofday sigaltstack gettid futex
# restart_syscall clock_gettime clock_nanosleep exit_group getrandom membarrier rseq, and poll or ppoll.
_MACHINES = {
    "x86_64": _Machine(
        0xC000003E,
        0x40000000,
        (
            *(0, 1, 3, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 28, 35, 38, 39, 44, 45, 60, 96, 131, 186, 202),
            *(219, 228, 230, 231, 318, 324, 334),
        ),
    ),
    "aarch64": _Machine(
        0xC00000B7,
        0,
        (
            *(63, 64, 57, 80, 62, 222, 226, 215, 214, 134, 135, 139, 73, 216, 233, 124, 101, 103, 172, 206, 207, 93),
            *(169, 132, 178, 98, 128, 113, 115, 94, 278, 283, 293),
        ),
    ),
}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def confine(*, system_calls: bool) -> None:
    """Confine this process for ever. Without `system_calls` only the limits are set. Raises SeccompError."""
    _limit_memory()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise SeccompError(f"no_new_privs: {os.strerror(ctypes.get_errno())}")
    # Not dumpable: other processes of the same user cannot trace it, and it leaves no core.
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if not system_calls:
        return
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise SeccompError(f"no list of system calls for {platform.machine()}")
    code = filter_program(machine.audit, machine.foreign_from, machine.calls)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        raise SeccompError(f"seccomp: {os.strerror(ctypes.get_errno())}")


def filter_program(audit: int, foreign_from: int, calls: tuple[int, ...]) -> bytes:
    """Assemble the classic BPF program: kill on a foreign architecture, allow the listed calls, EPERM for the rest."""
    head = [
        _instruction(_LOAD, 0, 0, _OFFSET_ARCHITECTURE),
        _instruction(_JUMP_EQUAL, 1, 0, audit),
        _instruction(_RETURN, 0, 0, _RET_KILL),
        _instruction(_LOAD, 0, 0, _OFFSET_NUMBER),
    ]
    if foreign_from:
        head += [_instruction(_JUMP_GREATER_EQUAL, 0, 1, foreign_from), _instruction(_RETURN, 0, 0, _RET_KILL)]
    # Each match jumps over the remaining comparisons and the refusal.
    matches = [_instruction(_JUMP_EQUAL, len(calls) - index, 0, call) for index, call in enumerate(calls)]
    tail = [_instruction(_RETURN, 0, 0, _RET_ERRNO | errno.EPERM), _instruction(_RETURN, 0, 0, _RET_ALLOW)]
    return b"".join((*head, *matches, *tail))


def _instruction(code: int, jump_true: int, jump_false: int, value: int) -> bytes:
    return struct.pack("HBBI", code, jump_true, jump_false, value)


def _limit_memory() -> None:
    """Allow as much memory again as a render may take, on top of what is mapped already."""
    mapped = _mapped_bytes()
    limit = mapped + MEMORY_BYTES
    try:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (_STACK_OF_FILES, _STACK_OF_FILES))
    except (OSError, ValueError) as error:
        raise SeccompError(f"resource limits: {error}") from error


def _mapped_bytes() -> int:
    """Return the size of the address space; where /proc is absent, what Python and jinja2 usually take."""
    usual = 512 << 20
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - no pathlib after the imports are done
            return int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return usual
