"""A run that is a function of its seed: virtual time, and one source of chance for each purpose."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import itertools
import random
import selectors
import uuid
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

from runtime import clock, randomness

T = TypeVar("T")
_KEPT: Final = 200
START: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)


class _Selector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("everybody waits for nothing")
        self.passed += max(0.0, timeout)
        # Nobody outside of the loop wakes it: there are no sockets, threads or child processes.
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while everybody waits."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return the virtual time, in seconds."""
        return self._virtual.passed


def chance_of(seed: str, purpose: str) -> random.Random:
    """Return the source of chance for one purpose; what another one draws never moves it."""
    return random.Random(f"{seed}/{purpose}")  # noqa: S311 - the same draws each time


class AtOnce(Executor):
    """Calls that block are made at once, in the loop's own thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Make a call."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - an executor hands every error of a call to whoever waits for it
            future.set_exception(error)
        return future


@dataclass(slots=True)
class Trace:
    """Everything that left a process and everything that was stored, as one hash."""

    lines: int = 0
    last: list[str] = field(default_factory=list)
    keep: int = 0
    _hash: Any = field(default_factory=hashlib.sha256)

    def add(self, *words: object) -> None:
        """Take a line into the hash."""
        line = " ".join(map(str, words))
        self._hash.update(line.encode())
        self.lines += 1
        if self.keep:
            self.last.append(f"{line[:_KEPT]} {hashlib.sha256(line.encode()).hexdigest()[:8]}")
            del self.last[: -self.keep]

    @property
    def hash(self) -> str:
        """The hash of all lines so far."""
        return str(self._hash.hexdigest())


class _Task(asyncio.Task[Any]):
    """A task whose place in a set hangs on when it was made, and not on where it lies in memory."""

    def __init__(self, number: int, coroutine: Any, **options: Any) -> None:
        self._number = number
        super().__init__(coroutine, **options)

    def __hash__(self) -> int:
        return self._number


def _numbered() -> Callable[..., asyncio.Task[Any]]:
    numbers = itertools.count(1)

    def make(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        return _Task(next(numbers), coroutine, loop=loop, **options)

    return make


def run(seed: str, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a main function in virtual time, with all chance drawn from the seed."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        loop.set_task_factory(_numbered())
        # What a collection ends, and when, hangs on all that this process did before.
        gc.collect()
        gc.freeze()
        gc.disable()
        clock.use(
            clock.Sources(
                monotonic=loop.time,
                now=lambda: START + timedelta(seconds=loop.time()),
                executor=lambda _most, _name: AtOnce(),
                computing=AtOnce(),
            )
        )
        randomness.use(randomness.Sources(jitter=chance_of(seed, "jitter"), secret=chance_of(seed, "secrets")))
        try:
            return runner.run(main())
        finally:
            gc.enable()
            clock.use(clock.OF_THE_SYSTEM)
            randomness.use(randomness.OF_THE_SYSTEM)


def uids(seed: str) -> Callable[[], str]:
    """Return what makes uids of objects."""
    chance = chance_of(seed, "uids")
    return lambda: str(uuid.UUID(int=chance.getrandbits(128), version=4))
