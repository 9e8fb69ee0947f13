"""A server that hangs is dialled by one at a time: everybody else fails at once, and goes on with other servers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from providers.external.credential import NO_ANSWER, Credential
from providers.external.endpoint import VERIFIED, Endpoint
from providers.external.sql.session import ConnectionSettings, NoAnswerError, Unreached
from providers.onprem.session import Sessions
from runtime.errors import Transient

ENDPOINT = Endpoint("pg1.example.org", 5432, "fairlead", VERIFIED)
SETTINGS = ConnectionSettings(ENDPOINT, Credential("admin", "secret"), Path("/nowhere"))


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

    async def __call__(self, _settings: ConnectionSettings, database: str) -> Any:
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
        return Sessions(SETTINGS, dial=self, monotonic=lambda: self.now)


async def use(sessions: Sessions, database: str = "") -> None:
    async with sessions.inside(database, "look") if database else sessions.own("look"):
        pass


async def let_run() -> None:
    """Let every task go on until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def tasks_that_wait(sessions: Sessions, number: int) -> list[asyncio.Task[None]]:
    tasks = [asyncio.create_task(use(sessions)) for _ in range(number)]
    await let_run()
    return tasks


async def hung(dialler: Dialler) -> Sessions:
    """Return the sessions after the first dials met a server that hangs."""
    sessions = dialler.sessions()
    tasks = await tasks_that_wait(sessions, 3)
    dialler.time_out()
    assert [type(result) for result in await asyncio.gather(*tasks, return_exceptions=True)] == [Unreached] * 3
    dialler.begun.clear()
    return sessions


async def test_second_dial_is_made_by_one_while_the_others_fail_at_once() -> None:
    dialler = Dialler()
    sessions = await hung(dialler)
    dialler.now += 5.1

    (probe,) = await tasks_that_wait(sessions, 1)
    others = await asyncio.gather(*await tasks_that_wait(sessions, 15), return_exceptions=True)

    assert [type(result) for result in others] == [Unreached] * 15
    assert dialler.begun == ["fairlead"]
    assert not probe.done()
    dialler.time_out()
    with pytest.raises(Unreached):
        await probe


async def test_database_that_hangs_is_no_matter_of_the_server() -> None:
    dialler = Dialler()
    sessions = dialler.sessions()
    task = asyncio.create_task(use(sessions, "orders"))
    await let_run()
    dialler.time_out()
    with pytest.raises(Unreached):
        await task
    dialler.hangs = False

    await use(sessions)


async def test_cancelled_dial_lets_the_next_one_dial() -> None:
    dialler = Dialler()
    sessions = await hung(dialler)
    dialler.now += 5.1
    (probe,) = await tasks_that_wait(sessions, 1)
    probe.cancel()
    await asyncio.gather(probe, return_exceptions=True)
    dialler.hangs = False

    await use(sessions)


async def test_statement_without_an_answer_is_followed_by_one_dial_at_once() -> None:
    dialler = Dialler(hangs=False)
    sessions = dialler.sessions()

    class Silent(Alive):
        async def rows(self, _sql: str) -> None:
            raise NoAnswerError("no answer")

    async def silent(_settings: ConnectionSettings, _database: str) -> Any:
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


async def test_failed_probe_fails_every_call_at_once_and_ends_what_waits() -> None:
    dialler = Dialler(hangs=False)
    sessions = dialler.sessions()
    await use(sessions)
    async with sessions.own("wait for an answer") as lent:
        dialler.hangs = True
        probe = asyncio.create_task(sessions.probe())
        await let_run()
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
    assert await sessions.try_login(ENDPOINT, SETTINGS.admin) == NO_ANSWER
    assert dialler.begun == []


async def test_failed_probe_ends_the_wait_of_a_new_session_for_its_first_answer() -> None:
    is_asked = asyncio.Event()

    class Mute(Alive):
        """Was dialled before its server hung."""

        def __init__(self) -> None:
            self.answer: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()

        async def rows(self, _sql: str) -> list[Any]:
            is_asked.set()
            return await self.answer

        def give_up(self) -> None:
            self.answer.set_exception(NoAnswerError("no answer"))

    async def mute(_settings: ConnectionSettings, _database: str) -> Any:
        return Mute()

    dialler = Dialler()
    sessions = dialler.sessions()
    sessions.identifier, sessions.dial = "4711", mute
    waiting = asyncio.create_task(use(sessions, "orders"))
    await asyncio.wait_for(is_asked.wait(), 5)
    sessions.dial = dialler
    probe = asyncio.create_task(sessions.probe())
    await let_run()
    dialler.time_out()
    with pytest.raises(Unreached):
        await probe

    with pytest.raises(Transient, match="no answer"):
        await asyncio.wait_for(waiting, 5)


async def test_a_failed_probe_ends_the_dials_under_way() -> None:
    dialler = Dialler()
    sessions = dialler.sessions()
    waiting = [*await tasks_that_wait(sessions, 2), asyncio.create_task(use(sessions, "orders"))]
    probe = asyncio.create_task(sessions.probe())
    await let_run()

    dialler.waiting.pop().set_exception(Unreached("no answer"))
    with pytest.raises(Unreached):
        await probe
    ended = await asyncio.gather(*waiting, return_exceptions=True)

    assert [(type(failure), str(failure)) for failure in ended] == [(Unreached, "no answer")] * 3


@dataclass
class Flapping:
    """A server whose first dials find no listener."""

    refused: int
    is_momentary: bool = True
    dials: int = 0

    async def __call__(self, _settings: ConnectionSettings, _database: str) -> Any:
        self.dials += 1
        if self.dials <= self.refused:
            raise Unreached("connection refused", is_momentary=self.is_momentary)
        return Alive()


@pytest.mark.parametrize(
    ("server", "dials", "is_reached"),
    [
        (Flapping(refused=0), 1, True),
        (Flapping(refused=1), 2, True),
        (Flapping(refused=9), 3, False),
        (Flapping(refused=1, is_momentary=False), 1, False),
    ],
    ids=["it listens", "it restarts its listener", "it is down", "it hangs or starts"],
)
async def test_a_server_that_nobody_knows_as_lost_is_dialled_again(
    server: Flapping, dials: int, *, is_reached: bool
) -> None:
    sessions = Sessions(SETTINGS, dial=server)
    if is_reached:
        await use(sessions)
    else:
        with pytest.raises(Unreached):
            await use(sessions)

    assert server.dials == dials


async def test_a_server_that_is_known_as_lost_is_dialled_once_a_time() -> None:
    now, server = 0.0, Flapping(refused=9)
    sessions = Sessions(SETTINGS, dial=server, monotonic=lambda: now)
    with pytest.raises(Unreached):
        await use(sessions)
    server.dials = 0
    now += 5.1

    with pytest.raises(Unreached):
        await use(sessions)
    with pytest.raises(Unreached):
        await sessions.probe()

    assert server.dials == 2
