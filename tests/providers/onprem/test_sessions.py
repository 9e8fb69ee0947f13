"""A server that hangs is dialled by one at a time: everybody else is told at once, and goes on with other servers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from providers.external.client import Fence
from providers.external.credential import Credential, Login
from providers.external.login import Server
from providers.external.sql_session import Account, NoAnswerError, Session, Unreached
from providers.onprem.session import Sessions
from runtime.errors import Transient

ACCOUNT = Account(Server("pg1.example.org", 5432, ""), "fairlead", Credential("admin", "secret"), Path("/nowhere"))


class Alive:
    """A session of a server that answers."""

    broken = False
    gave_up = False

    def give_up(self) -> None:
        """Take note that nobody waits for an answer any more."""
        self.gave_up = True

    async def close(self) -> None:
        """End it."""


@dataclass
class Dialler:
    """Answers a dial once it is let; counts those under way and those that were begun."""

    hangs: bool = True
    begun: list[str] = field(default_factory=list)
    waiting: list[asyncio.Future[Any]] = field(default_factory=list)
    now: float = 0.0

    async def __call__(self, _account: Account, database: str) -> Any:
        self.begun.append(database)
        if self.hangs:
            future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self.waiting.append(future)
            await future
        return Alive()

    def time_out(self) -> None:
        """Let every dial under way end as a hung server's does."""
        while self.waiting:
            self.waiting.pop().set_exception(Unreached("no answer"))

    def sessions(self) -> Sessions:
        """Make sessions that dial by this one."""
        return Sessions(ACCOUNT, dial=self, monotonic=lambda: self.now)


async def use(sessions: Sessions, database: str = "") -> None:
    async with sessions.inside(database, "look") if database else sessions.own("look"):
        pass


async def tasks_that_wait(sessions: Sessions, number: int) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(use(sessions)) for _ in range(number)]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


async def hung(dialler: Dialler) -> Sessions:
    """Return the sessions after the first dials met a server that hangs."""
    sessions = dialler.sessions()
    tasks = await tasks_that_wait(sessions, 3)
    dialler.time_out()
    assert [type(one) for one in await asyncio.gather(*tasks, return_exceptions=True)] == [Unreached] * 3
    dialler.begun.clear()
    return sessions


async def test_a_failed_dial_is_remembered_for_a_moment() -> None:
    dialler = Dialler()
    sessions = await hung(dialler)

    for database in ("", "orders"):
        with pytest.raises(Transient, match="no answer"):
            await use(sessions, database)
    assert dialler.begun == []


async def test_one_dials_again_while_the_others_are_told_at_once() -> None:
    dialler = Dialler()
    sessions = await hung(dialler)
    dialler.now += 5.1

    (probe,) = await tasks_that_wait(sessions, 1)
    others = await asyncio.gather(*await tasks_that_wait(sessions, 15), return_exceptions=True)

    assert [type(one) for one in others] == [Unreached] * 15
    assert dialler.begun == ["fairlead"]
    assert not probe.done()
    dialler.time_out()
    with pytest.raises(Unreached):
        await probe


async def test_a_server_that_answers_again_is_used_by_all_at_once() -> None:
    dialler = Dialler()
    sessions = await hung(dialler)
    dialler.now += 5.1
    dialler.hangs = False

    await use(sessions)
    await asyncio.gather(*(use(sessions, "orders") for _ in range(4)))

    assert dialler.begun == ["fairlead", *["orders"] * 4]


async def test_what_one_database_does_is_no_matter_of_the_server() -> None:
    dialler = Dialler()
    sessions = dialler.sessions()
    task = asyncio.create_task(use(sessions, "orders"))
    for _ in range(5):
        await asyncio.sleep(0)
    dialler.time_out()
    with pytest.raises(Unreached):
        await task
    dialler.hangs = False

    await use(sessions)


async def test_a_cancelled_dial_lets_the_next_one_dial() -> None:
    dialler = Dialler()
    sessions = await hung(dialler)
    dialler.now += 5.1
    (probe,) = await tasks_that_wait(sessions, 1)
    probe.cancel()
    await asyncio.gather(probe, return_exceptions=True)
    dialler.hangs = False

    await use(sessions)


async def test_after_a_statement_without_an_answer_one_dials_at_once() -> None:
    dialler = Dialler(hangs=False)
    sessions = dialler.sessions()

    class Silent(Alive):
        async def rows(self, _sql: str) -> None:
            raise NoAnswerError("no answer")

    async def silent(_account: Account, _database: str) -> Any:
        return Silent()

    sessions.dial = silent
    with pytest.raises(Transient, match=r"cannot look: .*no answer"):
        async with sessions.own("look") as session:
            await session.rows("SELECT 1")
    sessions.dial, dialler.hangs = dialler, True

    (probe,) = await tasks_that_wait(sessions, 1)
    with pytest.raises(Unreached, match="no answer"):
        await use(sessions)
    assert dialler.begun == ["fairlead"]
    dialler.hangs = False
    dialler.waiting.pop().set_result(None)
    await probe
    await use(sessions)


async def test_a_failed_probe_tells_everybody_at_once_and_ends_what_waits() -> None:
    dialler = Dialler(hangs=False)
    sessions = dialler.sessions()
    await use(sessions)
    async with sessions.own("wait for an answer") as lent:
        dialler.hangs = True
        probe = asyncio.create_task(sessions.probe())
        for _ in range(5):
            await asyncio.sleep(0)
        dialler.time_out()
        with pytest.raises(Unreached):
            await probe
        assert isinstance(lent, Alive)
        assert lent.gave_up
    dialler.begun.clear()

    # Not even by the sessions that are open still.
    for database in ("", "orders"):
        with pytest.raises(Unreached, match="no answer"):
            await use(sessions, database)
    assert await sessions.login("orders", ACCOUNT.admin) is Login.UNKNOWN
    assert dialler.begun == []


async def test_a_probe_that_succeeds_lets_everybody_in_again() -> None:
    dialler = Dialler()
    sessions = await hung(dialler)
    dialler.hangs = False

    await sessions.probe()
    await use(sessions)


class Silent:
    """A connection that never answers."""

    closed = broken = False

    async def execute(self, _sql: bytes, _parameters: object) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize(("is_change", "gone_after_s"), [(False, 0.0), (True, 0.3)])
async def test_who_waits_for_an_answer_gives_up_and_a_change_after_its_first_seconds(
    monkeypatch: pytest.MonkeyPatch, *, is_change: bool, gone_after_s: float
) -> None:
    monkeypatch.setattr("providers.external.sql_session._CONNECT_SECONDS", 0.3)
    loop, connection = asyncio.get_running_loop(), cast("Any", Silent())
    session, fence = Session(connection, 20.0), Fence(float("inf"), lambda: True, lambda: 0.0)
    began = loop.time()
    statement = session.change("UPDATE x", fence) if is_change else session.rows("SELECT 1")
    task = asyncio.create_task(statement)
    for _ in range(5):
        await asyncio.sleep(0)

    session.give_up()

    with pytest.raises(NoAnswerError):
        await asyncio.wait_for(task, timeout=5)
    assert gone_after_s <= loop.time() - began < 5
