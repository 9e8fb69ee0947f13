"""Statements that the server refuses, collected: one of them stops none of the others. Impure: it speaks SQL."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, field

import psycopg

from providers.external.client import Fence
from providers.external.observation import Change
from providers.external.sql.errors import failure_of
from providers.external.sql.session import Session
from providers.onprem.statements import Statement, is_closing, is_opening
from runtime.errors import Blocked, Conflict, Failure, Terminal, Transient

_MOST_TEXTS = 5
# By which class of several the work is tried again: soon, where one of them may end by itself.
_ORDER: tuple[type[Failure], ...] = (Transient, Terminal, Blocked, Conflict)


@dataclass(slots=True)
class Refusals:
    """What was refused so far of the work that `action` names."""

    action: str
    failures: list[Failure] = field(default_factory=list)
    is_closing_refused: bool = False

    async def run(self, session: Session, change: Change, statements: Iterable[Statement], fence: Fence) -> None:
        """Run the statements of one change up to the first that is refused.

        A change that lets connections in is left out while one that takes rights away is refused.
        """
        if is_opening(change) and self.is_closing_refused:
            return
        try:
            for statement in statements:
                await session.change(statement.sql, fence)
        except psycopg.Error as error:
            if error.sqlstate is None or session.broken:
                raise
            self.failures.append(failure_of(error, f"{self.action} ({change.shown})"))
            self.is_closing_refused = self.is_closing_refused or is_closing(change)
            # A statement that ran as a login is not followed by others that do.
            await session.rows("RESET ROLE")

    async def attempt(self, session: Session, call: Awaitable[None]) -> None:
        """Await a call of several statements that may be refused on its own."""
        try:
            await call
        except psycopg.Error as error:
            if error.sqlstate is None or session.broken:
                raise
            self.failures.append(failure_of(error, self.action))

    def raise_if_any(self) -> None:
        """Raise one refusal with the texts of all; nothing where none was met."""
        ordered = [failure for kind in _ORDER for failure in self.failures if isinstance(failure, kind)]
        if not ordered:
            return
        texts = list(dict.fromkeys(str(failure) for failure in ordered))
        more = f"; and {len(texts) - _MOST_TEXTS} more" if len(texts) > _MOST_TEXTS else ""
        raise _with_text(ordered[0], "; ".join(texts[:_MOST_TEXTS]) + more)


def _with_text(failure: Failure, text: str) -> Failure:
    match failure:
        case Terminal(reason=reason):
            return Terminal(reason, text)
        case Blocked(reason=reason):
            return Blocked(reason, text)
        case _:
            return type(failure)(text)
