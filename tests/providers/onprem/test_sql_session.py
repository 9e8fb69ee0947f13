"""Sessions that get no answer or whose fence is over; SQLSTATE codes as failures, of which one is raised."""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.external.client import Fence, FenceClosed
from providers.external.sql.errors import failure_of
from providers.external.sql.session import NoAnswerError, Session
from providers.onprem.refused_statements import Refusals
from providers.onprem.removal import end_sessions
from runtime.errors import Blocked, Conflict, Failure, Terminal, Transient

_FENCE = Fence(float("inf"), lambda: True, time.monotonic)
_GREETING = struct.pack("!cII", b"R", 8, 0) + struct.pack("!cIII", b"K", 12, 1, 1) + struct.pack("!cIc", b"Z", 5, b"I")
"""AuthenticationOk, BackendKeyData, ReadyForQuery (PostgreSQL manual, "Message Formats")."""


_DONE = struct.pack("!cI10s", b"C", 14, b"DROP ROLE\0") + struct.pack("!cIc", b"Z", 5, b"I")
"""CommandComplete, ReadyForQuery."""


@dataclass
class SilentServer:
    """Lets a client in and answers no statement of it; holds every line that was opened."""

    lines: list[asyncio.StreamWriter] = field(default_factory=list)
    statement: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Greet one client; note when its first statement has come."""
        self.lines.append(writer)
        (length,) = struct.unpack("!I", await reader.readexactly(4))
        await reader.readexactly(length - 4)
        writer.write(_GREETING)
        await reader.readexactly(1)
        self.statement.set()

    @asynccontextmanager
    async def session(self, answer_s: float) -> AsyncIterator[Session]:
        """Yield a session on this server."""
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        where = f"host=127.0.0.1 port={port} user=u dbname=d sslmode=disable gssencmode=disable"
        session = Session(await psycopg.AsyncConnection.connect(where, autocommit=True), answer_s)
        try:
            yield session
        finally:
            await session.close()
            for line in self.lines:
                line.close()
            server.close()


async def test_session_without_an_answer_in_time_asks_nothing_more() -> None:
    server = SilentServer()
    async with server.session(answer_s=0.1) as session:
        with pytest.raises(NoAnswerError, match="no answer"):
            await session.rows("SELECT 1")
        assert session.broken
    assert len(server.lines) == 1


@pytest.mark.parametrize("changes", [False, True])
async def test_session_that_is_given_up_asks_nothing_more(*, changes: bool) -> None:
    server = SilentServer()
    async with server.session(answer_s=3600) as session:
        work = asyncio.create_task(session.change("DROP ROLE x", _FENCE) if changes else session.rows("SELECT 1"))
        await server.statement.wait()
        session.give_up()
        with pytest.raises(NoAnswerError, match="no answer"):
            await work
    assert len(server.lines) == 1


async def test_session_lets_a_change_be_answered_in_its_first_seconds() -> None:
    server = SilentServer()
    async with server.session(answer_s=3600) as session:
        change = asyncio.create_task(session.change("DROP ROLE x", _FENCE))
        await server.statement.wait()
        session.give_up()
        server.lines[0].write(_DONE)
        assert await change == []


async def test_session_that_is_cancelled_ends_at_once_and_asks_nothing_more() -> None:
    server = SilentServer()
    async with server.session(answer_s=3600) as session:
        work = asyncio.create_task(session.rows("SELECT 1"))
        await server.statement.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert session.broken
    # A second line is a request to end the statement, which the server does not answer for five seconds.
    assert len(server.lines) == 1


async def test_session_that_is_given_up_between_two_statements_sends_no_other() -> None:
    server = SilentServer()
    async with server.session(answer_s=3600) as session:
        session.give_up()
        with pytest.raises(NoAnswerError, match="no answer"):
            await session.rows("SELECT 1")
        with pytest.raises(NoAnswerError, match="no answer"):
            await session.change("DROP ROLE x", _FENCE)
        assert session.broken
    assert not server.statement.is_set()


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


@dataclass(frozen=True)
class Case:
    """A code, where it came up, and what it means."""

    code: str
    failure: type[Failure]
    at_home: bool = False


CASES: dict[str, Case] = {
    "a tenant's database vanished": Case("3D000", Conflict),
    "the administrator's own database is not there": Case("3D000", Terminal, at_home=True),
    "a role was made by somebody else meanwhile": Case("42710", Conflict),
    "the disk is full": Case("53100", Blocked),
    "sessions are in the way": Case("55006", Blocked),
    "the server starts": Case("57P03", Transient),
    "nothing answers": Case("", Transient),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_code_has_its_class(case: Case) -> None:
    failure = failure_of(psycopg.OperationalError("x"), "look", code=case.code, at_home=case.at_home)

    assert isinstance(failure, case.failure)
    assert str(failure).count("cannot look: ") == 1


_AT = 'connection failed: connection to server at "10.0.0.1", port 5432 failed:'
_MULTIPLE = f"""Multiple connection attempts failed. All failures were:
- host: 'pg1', port: None, hostaddr: '10.0.0.1': {_AT} No route to host
- host: 'pg1', port: None, hostaddr: '10.0.0.2': {_AT} Connection refused
\tIs the server running on that host and accepting TCP/IP connections?"""
_NO_HOST = "failed to resolve host 'nosuch.invalid': [Errno -2] Name or service not known"
_OTHER_NAME = 'server certificate for "pg1" does not match host name "pg2"'
CAUSES: dict[str, tuple[str, str, str]] = {
    "nobody listens": (f"{_AT} Connection refused\n\tIs the server running?", "", "Connection refused"),
    "no such host": (_NO_HOST, "", _NO_HOST),
    "another authority": (f"{_AT} SSL error: certificate verify failed", "", "SSL error: certificate verify failed"),
    "another name": (f"{_AT} {_OTHER_NAME}", "", _OTHER_NAME),
    "several addresses": (_MULTIPLE, "", "Connection refused"),
    "the line was cut": ("server closed the connection unexpectedly\n\tThis probably means", "", "server closed the"),
    "all connections are taken": ("connection failed: FATAL", "53300", "max_connections"),
    "the server starts": ("connection failed: FATAL", "57P03", "starting"),
}


@pytest.mark.parametrize(("text", "code", "cause"), CAUSES.values(), ids=CAUSES.keys())
def test_failed_connection_has_its_cause(text: str, code: str, cause: str) -> None:
    failure = failure_of(psycopg.OperationalError(text), "log in", code=code)

    assert isinstance(failure, Transient)
    assert cause in str(failure)
    assert "\n" not in str(failure)


def test_unknown_collation_is_an_invalid_value() -> None:
    failure = failure_of(psycopg.errors.WrongObjectType("no such collation"), "create")

    assert isinstance(failure, Terminal)
    assert failure.reason == "InvalidValue"


FAILURES: list[Failure] = [
    Transient("a lock is held"),
    Terminal("InvalidValue", "no such value"),
    Terminal("AccessDenied", "no right"),
    Blocked("DeleteBlocked", "in use"),
    Conflict("made meanwhile"),
]
ORDER: list[type[Failure]] = [Transient, Terminal, Blocked, Conflict]


@given(st.lists(st.sampled_from(FAILURES), min_size=1))
def test_refusal_that_may_end_by_itself_is_raised_first_with_the_text_of_all(failures: list[Failure]) -> None:
    with pytest.raises(Failure) as raised:
        Refusals("change it", list(failures)).raise_if_any()

    expected = next(kind for kind in ORDER if any(type(failure) is kind for failure in failures))
    assert type(raised.value) is expected
    message = str(raised.value)
    assert all(str(failure) in message for failure in failures)
    assert all(message.count(str(failure)) == 1 for failure in failures)


def test_refusals_raise_nothing_where_nothing_was_refused() -> None:
    Refusals("change it").raise_if_any()


def test_refusals_beyond_the_first_are_counted() -> None:
    refusals = Refusals("change it", [Terminal("AccessDenied", f"no right {number}") for number in range(9)])

    with pytest.raises(Terminal, match="and 4 more"):
        refusals.raise_if_any()
