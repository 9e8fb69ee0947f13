"""Which calls are sent again within one pass, how soon and how often. All else is retried by the queue, later.

Only what changes nothing when it is sent twice: calls that read, and the opening of a session. Where requests are
metered (`providers.external.metering`) each further one is, as the first one was. Impure: it waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt
from tenacity.stop import stop_base

from runtime import clock, randomness
from runtime.backoff import Backoff, Chance
from runtime.errors import Throttled, Transient

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Policy:
    """At most `requests` in all; none is sent `within` or later after the first; `backoff` is the pause between two."""

    requests: int
    backoff: Backoff
    within: timedelta


READS: Final = Policy(3, Backoff(timedelta(milliseconds=200), timedelta(seconds=2)), within=timedelta(seconds=15))
"""For calls that read. A mutating call has 20 s (`Fence.until`), and may read in them; a pass has 100 s."""
CONNECTS: Final = Policy(3, Backoff(timedelta(milliseconds=200), timedelta(seconds=1)), within=timedelta(seconds=3))
"""For opening a session: other workers of the same server wait for the answer."""


class _Within(stop_base):
    """Stop before a pause that would end so long or longer after the first request, by the clock of the process."""

    def __init__(self, limit: timedelta) -> None:
        self._until = clock.monotonic() + limit.total_seconds()

    def __call__(self, retry_state: RetryCallState) -> bool:
        return clock.monotonic() + retry_state.upcoming_sleep >= self._until


def is_retried(error: BaseException) -> bool:
    """Return whether a call that changes nothing is sent again after this failure.

    A call without an answer is not: it holds a worker for the time that it waits.
    """
    return isinstance(error, Throttled) or (isinstance(error, Transient) and error.is_momentary)


def pause(error: BaseException | None, requests: int, backoff: Backoff, chance: Chance) -> timedelta:
    """Return how long to wait after the n-th request failed: as long as the cloud says, and the back-off beside it."""
    asked_for = error.after if isinstance(error, Throttled) else timedelta(0)
    return asked_for + backoff.delay(requests, chance)


async def repeated(
    call: Callable[[], Awaitable[T]],
    policy: Policy,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    chance: Chance = randomness.chance,
) -> T:
    """Make a call that changes nothing when it is made twice; raise the last failure once the policy is used up."""

    async def request() -> T:
        return await call()

    def wait(state: RetryCallState) -> float:
        return pause(_failure_of(state), state.attempt_number, policy.backoff, chance).total_seconds()

    retrying = AsyncRetrying(
        retry=retry_if_exception(is_retried),
        stop=stop_after_attempt(policy.requests) | _Within(policy.within),
        wait=wait,
        sleep=sleep,
        reraise=True,
    )
    answer: T = await retrying(request)
    return answer


def _failure_of(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None
