"""Waiting for a state, never for a length of time."""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_POLL_S, _LONGEST_S, _GROWTH = 0.05, 0.3, 1.2
_FIRST_PAUSE_S = 0.002


async def eventually(
    probe: Callable[[], Awaitable[T | None]], expected: str, *, limit_s: float = 60.0, every_s: float = _POLL_S
) -> T:
    """Ask until the answer is truthy, and return it; fail with the last answer after a generous time.

    Between two questions as long passes as the first one took, at least `every_s`, and longer each time, up to 0.3 s:
    who asks does not take the machine from those whom it waits for.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limit_s
    pause_s, longest_s = every_s, max(every_s, _LONGEST_S)
    while True:
        began = loop.time()
        answer = await probe()
        if answer:
            return answer
        now = loop.time()
        if now > deadline:
            raise AssertionError(f"{expected}: not within {limit_s:g} s; last answer: {answer!r}")
        await asyncio.sleep(max(pause_s, now - began))
        pause_s = min(longest_s, pause_s * _GROWTH)


def seen(look: Callable[[], T], holds: Callable[[T], bool], *, limit_s: float = 60.0) -> T:
    """Look until what is shown holds, and return it: `eventually` for a thread that has no event loop."""
    deadline, pause_s = time.monotonic() + limit_s, _FIRST_PAUSE_S
    while not holds(shown := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"never shown: {shown!r}")
        threading.Event().wait(pause_s)
        pause_s = min(_POLL_S, pause_s * _GROWTH)
    return shown


@contextlib.asynccontextmanager
async def in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run work for the length of a block; cancel it at the end."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
