"""Sessions of the on-prem provider that meet a test's faults, and after each of whose changes its process may end."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg

from providers.external.client import Fence
from providers.external.sql.session import Session
from tests.providers.adapter import Mode, Verb
from tests.providers.gates import Gate

_CODES: Mapping[Mode, str] = {"refused": "XX000", "forbidden": "42501", "invalid": "22023"}
_VERBS: tuple[tuple[str, Verb], ...] = (
    ("CREATE DATABASE", "create"),
    ("DROP DATABASE", "delete"),
    ("RENAME TO", "delete"),
    (" PASSWORD ", "password"),
)


@dataclass
class Line:
    """What happens to the statements of a provider: `faults` by verb, with how often; `sent` are those that change."""

    gate: Gate
    faults: dict[Verb, tuple[Mode, int | None]] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)
    before_create: Callable[[], None] | None = None

    def fault(self, verb: Verb) -> Mode | None:
        """Return what becomes of the next statement of a verb."""
        mode, times = self.faults.get(verb, (None, 0))
        if times is not None and mode is not None:
            self.faults[verb] = (mode, times - 1)
        if mode is None or times == 1:
            self.faults.pop(verb, None)
        return mode


class SteeredSession(Session):
    """A session whose statements meet the faults of a test, as errors of PostgreSQL."""

    def __init__(self, session: Session, line: Line) -> None:
        super().__init__(session._connection, session._answer_s)
        self.line = line

    async def _run(
        self, sql: str, parameters: Mapping[str, Any] | None, *, at_least_s: float, fence: Fence | None = None
    ) -> list[tuple[Any, ...]]:
        run = functools.partial(super()._run, sql, parameters, at_least_s=at_least_s, fence=fence)
        if not at_least_s:
            self._fail(self.line.fault("observe"))
            return await run()
        verb: Verb = next((verb for text, verb in _VERBS if text in sql), "update")
        if verb == "create" and self.line.before_create is not None:
            act, self.line.before_create = self.line.before_create, None
            act()
        self.line.sent.append(f"{verb} {' '.join(sql.split())[:60]}")
        mode = self.line.fault(verb)
        if mode != "unanswered":
            self._fail(mode)
        rows = await self.line.gate.passed(run(), "cloud")
        self._fail(mode)
        return rows

    def _fail(self, mode: Mode | None) -> None:
        if mode == "unanswered":
            raise psycopg.OperationalError("the connection was lost")
        if mode is not None:
            raise psycopg.errors.lookup(_CODES[mode])("it is refused")
