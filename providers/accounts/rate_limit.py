"""One rate for each account, shared by all ProviderConfigs that reach it; a pause that the cloud wants holds them all.

Which account a ProviderConfig reaches is known once it was asked. Until then a budget of its own counts, which is
charged to the account's afterwards.
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, TypeVar

from prometheus_client import Counter

from providers.external.client import Fence, FenceClosed
from providers.external.metering import is_routine
from providers.external.provider import Rate
from runtime import clock
from runtime.errors import Blocked, Conflict, Failure, Terminal, Throttled, Transient
from runtime.metrics import REGISTRY
from runtime.tracing import TRACING

T = TypeVar("T")

CALLS: Final = Counter(
    "fairlead_cloud_api_calls",
    "Total number of calls to clouds, partitioned by provider, operation and code",
    ["provider", "operation", "code"],
    registry=REGISTRY,
)
# Who waits for longer does it in the queue, where it holds no worker.
_LONGEST_WAIT_SECONDS = 10.0
# What floating point numbers may lack of a whole token.
_SLACK = 1e-6


@dataclass(frozen=True, slots=True)
class Bucket:
    """A token bucket, counted from its other side (a leaky bucket as a meter, ITU-T I.371): `taken` tokens leak away.

    In any t seconds at most `burst + per_second * t` tokens are taken. `at` is when `taken` was true, in seconds of a
    monotonic clock.
    """

    per_second: float
    burst: float
    taken: float = 0.0
    at: float = 0.0

    def taken_at(self, now: float) -> float:
        """Return how many tokens are missing now."""
        return max(0.0, self.taken - max(0.0, now - self.at) * self.per_second)

    def wait(self, now: float) -> float:
        """Return in how many seconds there is a whole token, 0 when there is one."""
        lacking = self.taken_at(now) + 1 - self.burst
        return 0.0 if lacking <= _SLACK else lacking / self.per_second

    def after(self, tokens: float, now: float) -> Bucket:
        """Return the bucket without these tokens; more than it holds are owed."""
        return replace(self, taken=self.taken_at(now) + tokens, at=max(now, self.at))


def bucket_of(per_second: float, burst: timedelta) -> Bucket:
    """Return a full bucket, which holds a token at least."""
    return Bucket(per_second, max(1.0, per_second * burst.total_seconds()))


@dataclass(frozen=True, slots=True)
class Clock:
    """A monotonic clock, in seconds, and how to wait by it."""

    monotonic: Callable[[], float] = clock.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


REAL_CLOCK: Final = Clock()


class RoundRobin:
    """A lock whose users take turns: one with many who wait keeps no other from its own turn."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._is_held = False

    @asynccontextmanager
    async def turn(self, user: str) -> AsyncIterator[None]:
        """Hold the lock for a block, once it is this user's turn."""
        await self._acquire(user)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, user: str) -> None:
        if not self._is_held:
            self._is_held = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # It was handed over in the same moment.
                self._release()
            raise

    def _release(self) -> None:
        """Hand the lock to the next user's first, and put that user behind all others."""
        while self._waiting:
            user = next(iter(self._waiting))
            turns = self._waiting.pop(user)
            turn = turns.popleft()
            if turns:
                self._waiting[user] = turns
            if not turn.done():
                turn.set_result(None)
                return
        self._is_held = False


class _Line:
    """Those who wait for tokens of one bucket."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.order = RoundRobin()


class Budget:
    """How many requests to an account may begin: reads and writes apart, and neither while the account is paused."""

    def __init__(self, rate: Rate, clock: Clock = REAL_CLOCK) -> None:
        self._clock = clock
        self._reads = _Line(bucket_of(rate.reads_per_second, rate.burst))
        self._writes = _Line(bucket_of(rate.writes_per_second, rate.burst))
        self.paused_until = float("-inf")

    async def take(self, user: str, *, is_write: bool) -> None:
        """Wait for a token and for the end of the pause.

        Raises:
            Throttled: The pause is a long one.
        """
        line = self._writes if is_write else self._reads
        self._refuse_long_pause()
        async with line.order.turn(user):
            # Read again: the pause may have begun or been made longer meanwhile.
            while (left := self._left(line.bucket)) > 0:
                self._refuse_long_pause()
                await self._clock.sleep(left)
            line.bucket = line.bucket.after(1, self._clock.monotonic())

    def _left(self, bucket: Bucket) -> float:
        now = self._clock.monotonic()
        return max(bucket.wait(now), self.paused_until - now)

    def _refuse_long_pause(self) -> None:
        left = self.paused_until - self._clock.monotonic()
        if left > _LONGEST_WAIT_SECONDS:
            text = "the cloud throttled the account, which is left alone for as long as it asked for"
            raise Throttled(text, after=timedelta(seconds=left))

    def pause(self, after: timedelta) -> None:
        """Let nothing begin for a while: the cloud asked for it, of the account and not of one database."""
        self.paused_until = max(self.paused_until, self._clock.monotonic() + after.total_seconds())

    def absorb(self, other: Budget) -> None:
        """Charge what was taken from another budget to this one, with its pause; the other one is full again."""
        if other is self:
            return
        now = self._clock.monotonic()
        for line, from_line in ((self._reads, other._reads), (self._writes, other._writes)):
            line.bucket = line.bucket.after(from_line.bucket.taken_at(now), now)
            from_line.bucket = replace(from_line.bucket, taken=0.0)
        self.paused_until, other.paused_until = max(self.paused_until, other.paused_until), float("-inf")


@dataclass(slots=True)
class Budgets:
    """The budgets of one process, each as long as it lives: a connection that is made anew finds its account's."""

    rate: Rate
    clock: Clock = REAL_CLOCK
    _of_configs: dict[str, Budget] = field(default_factory=dict)
    _of_accounts: dict[tuple[str, str], Budget] = field(default_factory=dict)

    def of_config(self, name: str) -> Budget:
        """Return the budget of a ProviderConfig whose account is not known yet."""
        return self._of_configs.setdefault(name, Budget(self.rate, self.clock))

    def of_account(self, account: str, quota: str) -> Budget:
        """Return the budget of an account and of what divides its quota, as a region."""
        return self._of_accounts.setdefault((account, quota), Budget(self.rate, self.clock))


@dataclass(slots=True)
class AccountMeter:
    """The Meter of one connection: its requests wait for the account's budget and are counted.

    `user` takes turns with others who wait for the same budget, and its routine requests with those of its own that
    somebody waits for: a resync of thousands of resources takes half of the rate from an edit, and no more.
    """

    provider: str
    user: str
    budget: Budget

    def join(self, shared: Budget) -> None:
        """Go on with the budget of the account, to which all that was taken so far is charged."""
        shared.absorb(self.budget)
        self.budget = shared

    @property
    def _line(self) -> str:
        return f"{self.user} (routine)" if is_routine() else self.user

    async def read(self, operation: str, request: Callable[[], Awaitable[T]]) -> T:
        """Make a request that changes nothing."""
        await self.budget.take(self._line, is_write=False)
        return await self._made(operation, request)

    async def write(self, operation: str, request: Callable[[], Awaitable[T]], fence: Fence | None = None) -> T:
        """Make a request that changes something; its token is not taken once the fence is closed."""
        left = None if fence is None else max(0.0, fence.until - fence.monotonic())
        try:
            async with asyncio.timeout(left):
                await self.budget.take(self._line, is_write=True)
        except TimeoutError:
            raise FenceClosed("its account's rate left no time for this call; looking again") from None
        return await self._made(operation, request)

    async def _made(self, operation: str, request: Callable[[], Awaitable[T]]) -> T:
        _begin(self.provider, operation)
        with TRACING.of_call(f"{self.provider} {operation}") as finish:
            try:
                answer = await request()
            except Failure as failure:
                if isinstance(failure, Throttled):
                    self.budget.pause(failure.after)
                self._count(operation, _code_of(type(failure)))
                raise
            except BaseException:
                self._count(operation, "error")
                raise
            finish("ok")
        self._count(operation, "ok")
        return answer

    def _count(self, operation: str, code: str) -> None:
        CALLS.labels(self.provider, operation, code).inc()


def _code_of(failure: type[Failure]) -> str:
    return failure.__name__.lower()


_CODES: Final = ("ok", "error", *map(_code_of, (Transient, Throttled, Conflict, Blocked, Terminal)))


@functools.cache
def _begin(provider: str, operation: str) -> None:
    """Let each code of an operation begin at 0, before it is answered: a rate misses a series' first increase."""
    for code in _CODES:
        CALLS.labels(provider, operation, code)
