"""The last look before a mutating request leaves: does who sends it still lead?

A process that was frozen wakes up in the middle of its passes, long after another took the Lease and before its elector
could notice. So the question is put in the sending task, after a connection was found, for every request. And a
request that hangs as long as the API server does must not keep a process from ending its work before the Lease ends.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar
from typing import Final, TypeAlias

from runtime.errors import NotLeading

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
Deadline: TypeAlias = Callable[[], AbstractAsyncContextManager[object]]

_may_write: ContextVar[Callable[[], bool] | None] = ContextVar("may_write", default=None)
_bounds: ContextVar[Deadline] = ContextVar("bounds", default=nullcontext)


def bind(may_write: Callable[[], bool], *, bounds: Deadline = nullcontext) -> None:
    """Put this task, and all that it starts from now on, behind a fence.

    `bounds` ends what is awaited within it by a TimeoutError when it is high time.
    """
    _may_write.set(may_write)
    _bounds.set(bounds)


def is_bound() -> bool:
    """Return whether this task is behind a fence: it writes for a controller, and not for a person or an elector."""
    return _may_write.get() is not None


def bounded() -> AbstractAsyncContextManager[object]:
    """Return what a request is to be awaited within."""
    return _bounds.get()()


def check(method: str) -> None:
    """Raise NotLeading when a request of this method changes something and the fence of this task is closed."""
    may_write = _may_write.get()
    if may_write is not None and method not in _READING and not may_write():
        raise NotLeading("nothing was sent: this process does not hold the Lease any more")
