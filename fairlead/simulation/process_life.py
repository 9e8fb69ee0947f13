"""How long a process lives: until it is killed, or until an effect around which it was to die."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from providers.external.credential import Credential, LoginAnswer, TryLogin
from providers.external.endpoint import Endpoint

Moment = Literal["before", "after"]


@dataclass(slots=True)
class FatalEffect:
    """An effect around which a process dies: `left` more of them, that one among them, and then."""

    left: int
    moment: Moment
    on_death: Callable[[], None]


@dataclass(slots=True)
class ProcessLife:
    """Whether a process lives; its effects are writes to the API server and calls that change something in a cloud.

    `noted` is called at each effect.
    """

    is_over: bool = False
    fatal: FatalEffect | None = None
    noted: Callable[[], None] = lambda: None

    async def outlive(self) -> None:
        """Wait for ever in a process that was killed: nothing that it sends from then on arrives."""
        if self.is_over:
            await asyncio.Event().wait()

    async def before_effect(self) -> None:
        """Die before an effect that is the one."""
        await self._meet("before")
        self.noted()

    async def after_effect(self) -> None:
        """Die after an effect that is the one: its answer is read by nobody."""
        await self._meet("after")

    async def _meet(self, moment: Moment) -> None:
        await self.outlive()
        fatal = self.fatal
        if fatal is None or fatal.moment != moment:
            return
        fatal.left -= 1
        if not fatal.left:
            self.is_over, self.fatal = True, None
            fatal.on_death()
            await self.outlive()


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
