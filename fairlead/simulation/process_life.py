"""How long a process lives: until it is killed, or dies around an effect; and for how long it stands still there."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from providers.external.credential import Credential, LoginAnswer, TryLogin
from providers.external.endpoint import Endpoint
from runtime import clock

T = TypeVar("T")
Moment = Literal["before", "after"]


@dataclass(slots=True)
class Interruption:
    """What happens around an effect: `left` more of them, that one among them, and `then` is called.

    It ends the process, or has it stand still: an effect of which it was sure to be allowed it has late.
    """

    left: int
    moment: Moment
    then: Callable[[], None]


@dataclass(slots=True)
class ProcessLife:
    """Whether a process lives; its effects are writes to the API server and calls that change something in a cloud.

    `noted` is called at each effect; until `still_until`, in monotonic seconds, nothing of it moves.
    """

    is_over: bool = False
    interruption: Interruption | None = None
    noted: Callable[[], None] = lambda: None
    still_until: float = 0.0
    _late: set[asyncio.Future[Any]] = field(default_factory=set)

    async def outlive(self) -> None:
        """Wait while it stands still; for ever in a process that was killed: nothing that it sends then arrives."""
        if (still_s := self.still_until - clock.monotonic()) > 0:
            await asyncio.sleep(still_s)
            await self.outlive()
        if self.is_over:
            await asyncio.Event().wait()

    def freeze(self, seconds: float) -> None:
        """Have it stand still, as long as its host pauses it."""
        self.still_until = clock.monotonic() + seconds

    async def carry_out(self, effect: Callable[[], Awaitable[T]]) -> T:
        """Have an effect. Who stands still right before it has it late, whether it waits for it by then or not."""
        self._reach("before")
        late_s = self.still_until - clock.monotonic()
        if self.is_over or late_s <= 0:
            await self.outlive()
            answer = await effect()
        else:
            late = asyncio.ensure_future(_after(late_s, effect))
            self._late.add(late)
            late.add_done_callback(self._arrived)
            answer = await asyncio.shield(late)
        await self.after_effect()
        return answer

    async def before_effect(self) -> None:
        """Die before an effect that is the one, or stand still."""
        self._reach("before")
        await self.outlive()

    async def after_effect(self) -> None:
        """Die after an effect that is the one, or stand still: its answer is read late or by nobody."""
        self._reach("after")
        await self.outlive()

    def _arrived(self, late: asyncio.Future[Any]) -> None:
        self._late.discard(late)
        # Nobody may wait for it any more.
        if not late.cancelled():
            late.exception()

    def _reach(self, moment: Moment) -> None:
        if self.is_over:
            return
        if moment == "before":
            self.noted()
        reached = self.interruption
        if reached is None or reached.moment != moment:
            return
        reached.left -= 1
        if not reached.left:
            self.interruption = None
            reached.then()


async def _after(seconds: float, effect: Callable[[], Awaitable[T]]) -> T:
    await asyncio.sleep(seconds)
    return await effect()


def logins_of(
    life: ProcessLife, chance: random.Random, answer: Callable[[Endpoint, Credential], LoginAnswer]
) -> TryLogin:
    """Return by what a provider's process tries logins, which are answered after a while."""

    async def log_in(endpoint: Endpoint, credential: Credential) -> LoginAnswer:
        await life.outlive()
        await asyncio.sleep(0.02 + chance.random() * 0.2)
        await life.outlive()
        return answer(endpoint, credential)

    return log_in
