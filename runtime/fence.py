"""The last look before a mutating request leaves: does who sends it still lead?

A process that was frozen wakes up in the middle of its passes, long after another took the Lease and before its elector
could notice. So the question is put in the sending task, after a connection was found, for every request.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from runtime.errors import NotLeading

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_may_write: ContextVar[Callable[[], bool] | None] = ContextVar("may_write", default=None)


def bind(may_write: Callable[[], bool]) -> None:
    """Put this task, and all that it starts from now on, behind a fence."""
    _may_write.set(may_write)


def check(method: str) -> None:
    """Raise NotLeading when a request of this method changes something and the fence of this task is closed."""
    may_write = _may_write.get()
    if may_write is not None and method not in _READING and not may_write():
        raise NotLeading("nothing was sent: this process does not hold the Lease any more")
