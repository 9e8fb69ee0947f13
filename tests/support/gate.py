"""Where a process can be stopped: its mutating requests pass a gate outside the process, and may be parked there.

A *scope* names whose effect it is (one claim's namespace); a *trap* names the n-th effect of a scope and one of the
three moments at which a crash leaves different traces. Once a trap has sprung, no further effect of its scope passes
until the gate is opened again, so that the state behind the gate is exactly the one that the trap names.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

Answer = TypeVar("Answer")


class Moment(enum.Enum):
    """When, around one effect, the process dies."""

    UNSENT = "before it is sent"
    UNANSWERED = "sent, its answer lost"
    ANSWERED = "after its answer"


class SeveredError(Exception):
    """The connection must be cut without an answer."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One request that changes something, in words that are the same in every run."""

    scope: str
    text: str


@dataclass(frozen=True, slots=True)
class Trap:
    """The moment around the `ordinal`-th effect (from 1) of a scope, or the `ordinal`-th with this text."""

    ordinal: int
    moment: Moment
    text: str = ""


@dataclass(slots=True)
class _Armed:
    trap: Trap
    seen: int = 0
    closed: bool = False
    sprung: Effect | None = None


class Gate:
    """Records effects and springs traps; proxies and test share one event loop.

    What may not pass is parked until the gate is opened. A gate that `severs` cuts it at once instead: for a process
    that has few lines, and would soon have none left for those who are not trapped.
    """

    def __init__(self, *, severs: bool = False) -> None:
        self._severs = severs
        self._effects: list[Effect] = []
        self._armed: dict[str, _Armed] = {}
        self._opened = asyncio.Event()
        self._changed = asyncio.Event()

    def arm(self, traps: Mapping[str, Trap]) -> None:
        """Set one trap per scope; effects are counted from now."""
        self._armed = {scope: _Armed(trap) for scope, trap in traps.items()}

    def open(self) -> None:
        """Remove all traps and cut every connection that is parked."""
        self._armed = {}
        self._opened.set()
        self._opened = asyncio.Event()

    def sprung(self) -> dict[str, Effect]:
        """Return the effects at which traps have sprung, by scope."""
        return {scope: armed.sprung for scope, armed in self._armed.items() if armed.sprung is not None}

    @property
    def all_sprung(self) -> bool:
        """Return whether no trap is left to spring."""
        return len(self.sprung()) == len(self._armed)

    async def until_sprung(self, *, limit_s: float) -> dict[str, Effect]:
        """Wait until all traps have sprung, or the limit has passed; return those that have."""
        deadline = asyncio.get_running_loop().time() + limit_s
        while not self.all_sprung:
            self._changed.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._changed.wait()
            except TimeoutError:
                break
        return self.sprung()

    def effects(self, scope: str) -> list[str]:
        """Return the texts of a scope's effects, in the order in which they came."""
        return [effect.text for effect in self._effects if effect.scope == scope]

    def forget(self) -> None:
        """Begin a new record."""
        self._effects.clear()

    async def carry(
        self, effect: Effect, send: Callable[[], Awaitable[Answer]], deliver: Callable[[Answer], Awaitable[None]]
    ) -> None:
        """Send one effect and deliver its answer, unless a trap lies there.

        Raises:
            SeveredError: It was cut, or parked and the gate has been opened since.
        """
        armed = self._armed.get(effect.scope)
        moment = self._meet(effect, armed)
        if armed is None or moment is None:
            await deliver(await send())
            return
        if moment is Moment.UNSENT:
            await self._park(armed, effect)
        answer = await send()
        if moment is Moment.UNANSWERED:
            await self._park(armed, effect)
        await deliver(answer)
        self._spring(armed, effect)

    def _meet(self, effect: Effect, armed: _Armed | None) -> Moment | None:
        if armed is not None and armed.closed:
            # Behind a trap: as if the process had died by now.
            return Moment.UNSENT
        self._effects.append(effect)
        if armed is None or armed.trap.text not in {"", effect.text}:
            return None
        armed.seen += 1
        if armed.seen < armed.trap.ordinal:
            return None
        armed.closed = True
        return armed.trap.moment

    def _spring(self, armed: _Armed, effect: Effect) -> None:
        if armed.sprung is None:
            armed.sprung = effect
        self._changed.set()

    async def _park(self, armed: _Armed, effect: Effect) -> None:
        self._spring(armed, effect)
        if not self._severs:
            await self._opened.wait()
        raise SeveredError
