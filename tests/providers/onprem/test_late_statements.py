"""The fence of a call is asked before every statement that does something, not before the first alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from providers.external.client import Fence, FenceClosed
from providers.onprem.removal import end_sessions

_LOGINS = ("app_a", "app_b")


@dataclass
class _Session:
    """Takes down what is sent, and whether the fence was still open then."""

    is_open: bool = True
    left: int = 0
    late: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)

    async def rows(self, sql: str, _parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        self.sent.append(sql)
        if not self.is_open:
            self.late.append(sql)
        self.left -= 1
        self.is_open = self.left > 0
        return []

    async def change(
        self, sql: str, fence: Fence, parameters: Mapping[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        fence.check()
        return await self.rows(sql, parameters)


def _does_something(sql: str) -> bool:
    return not sql.startswith("RESET ROLE")


@pytest.mark.parametrize("left", range(1, 7))
async def test_session_is_never_ended_after_the_leadership(left: int) -> None:
    session: Any = _Session(left=left)
    fence = Fence(1.0, lambda: session.is_open, lambda: 0.0)

    with pytest.raises(FenceClosed):
        await end_sessions(session, _LOGINS, fence)

    assert [sql for sql in session.late if _does_something(sql)] == []
    # A session that goes on has the administrator's own rights.
    assert not session.sent[-1].startswith("SET ROLE")


async def test_sessions_of_each_login_are_ended_as_that_login() -> None:
    session: Any = _Session(left=99)

    await end_sessions(session, _LOGINS, Fence(1.0, lambda: True, lambda: 0.0))

    kinds = [next(word for word in ("GRANT", "RESET", "SET ROLE", "terminate") if word in sql) for sql in session.sent]
    assert kinds == ["GRANT", "SET ROLE", "terminate", "RESET"] * 2
