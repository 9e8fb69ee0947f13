"""File locks between processes of one machine: the kernel releases them when their holder dies."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

Progress = Callable[[str], None]
"""Takes one line for a person to read."""

_POLL_S = 0.2


def take(path: Path) -> int | None:
    """Try to lock a file without waiting; return its descriptor, or None when another process holds it.

    The lock (flock(2)) lives as long as any copy of the descriptor, in a child process too.
    """
    return locked(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def locked(descriptor: int) -> int | None:
    """Lock an open file without waiting; close it and return None when another process holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@asynccontextmanager
async def exclusive(path: Path, *, waiting: str, progress: Progress) -> AsyncIterator[None]:
    """Hold a file's lock; while another process has it, wait, with one line that says so.

    Args:
        path: The lock file; it stays behind, since removing it would let two processes hold "the" lock.
        waiting: The line that is shown once when there is a wait.
        progress: Where that line goes.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = take(path)
    if descriptor is None:
        progress(waiting)
    while descriptor is None:
        await asyncio.sleep(_POLL_S)
        descriptor = take(path)
    try:
        yield
    finally:
        os.close(descriptor)
