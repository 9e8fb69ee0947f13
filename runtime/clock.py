"""Time of a process: everything in it that reads a clock asks here, and gets the threads for calls that block.

A process keeps the clock of the operating system; who needs a run that can be repeated hands in another by `use`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

ArgumentT = TypeVar("ArgumentT")
ResultT = TypeVar("ResultT")


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _threads(most: int, name: str) -> Executor:
    return ThreadPoolExecutor(most, thread_name_prefix=name)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where time comes from.

    Attributes:
        monotonic: Seconds that never go back.
        now: The wall clock, UTC.
        executor: Returns what calls that block run on, from the most threads and their name.
        computing: What long computations run on; None is the loop's own threads.
    """

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = _utc_now
    executor: Callable[[int, str], Executor] = _threads
    computing: Executor | None = None


OF_THE_SYSTEM = Sources()
_sources = OF_THE_SYSTEM


def use(sources: Sources) -> None:
    """Take the time of the whole process from these, from now on."""
    global _sources  # noqa: PLW0603 - a process has one clock
    _sources = sources


def monotonic() -> float:
    """Return seconds that never go back."""
    return _sources.monotonic()


def loop_time() -> float:
    """Return the time that timers of the running loop count in."""
    return asyncio.get_running_loop().time()


def now() -> datetime:
    """Return the wall clock, UTC."""
    return _sources.now()


def wall_seconds() -> float:
    """Return the wall clock in seconds since 1970."""
    return _sources.now().timestamp()


def executor(most: int, name: str) -> Executor:
    """Return what calls that block run on: at most so many threads of that name."""
    return _sources.executor(most, name)


async def computed(compute: Callable[[ArgumentT], ResultT], argument: ArgumentT) -> ResultT:
    """Return what a long computation makes of its argument, while the loop goes on."""
    return await asyncio.get_running_loop().run_in_executor(_sources.computing, compute, argument)
