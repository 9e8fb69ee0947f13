"""Sessions of the administrator: few in its own database, kept; short ones in a tenant's.

An address may lead elsewhere tomorrow: each session is proven to be at the very server that was met first.

Impure: it opens sessions.
"""

from __future__ import annotations

import asyncio
import functools
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import psycopg

from providers.external import retries
from providers.external.credential import NO_ANSWER, Credential, LoginAnswer
from providers.external.endpoint import Endpoint
from providers.external.login import try_login
from providers.external.provider import NO_ACCOUNT
from providers.external.sql.errors import failure_of
from providers.external.sql.session import ConnectionSettings, NoAnswerError, Session, Unreached, open_session
from runtime import clock
from runtime.errors import Terminal, Transient

_WHO = """
SELECT system_identifier::pg_catalog.text, pg_catalog.pg_is_in_recovery() FROM pg_catalog.pg_control_system()
"""
# As many as passes of one ProviderConfig run at once, so that a statement that waits holds up nobody else; few stay
# open after that.
_AT_ONCE = 16
_KEPT = 4
# How long nobody dials again a server that gave no answer; then one does, and the others fail at once meanwhile.
_REMEMBERED_SECONDS = 5.0


async def prove(session: Session, identifier: str, host: str, accept: Callable[[str], str]) -> None:
    """Raise Failure unless the session is at the very server that was met first, and that server is a primary.

    An address may lead elsewhere tomorrow: what is absent on another server is not absent. `accept` returns the command
    by which a person accepts another server in its place.
    """
    ((present, recovery),) = await session.rows(_WHO)
    if present != identifier:
        raise Terminal(
            "AccountChanged",
            f"{host} leads to server {present}, not to {identifier} where the databases are; nothing is absent and"
            " nothing is changed until it leads there again. To accept it, where it is that server after an upgrade:"
            f" {accept(present)}",
        )
    if recovery:
        raise Transient(f"server {host} is in recovery and takes no change")


@dataclass(frozen=True, slots=True)
class Transport:
    """How a server is reached: `dial` opens the administrator's sessions, `log_in` tries an application's login."""

    dial: Callable[[ConnectionSettings, str], Awaitable[Session]] = open_session
    log_in: Callable[[Endpoint, Credential], Awaitable[LoginAnswer]] = try_login


OVER_TLS = Transport()


@dataclass(slots=True)
class Sessions:
    """The administrator's sessions in its own database: one for each worker at most, a few kept open.

    `identifier` is the system_identifier that every new session must find, empty until the server was met; `accept` is
    of `prove`. `dial`, `log_in` and `monotonic` are replaced by tests.
    """

    settings: ConnectionSettings
    identifier: str = ""
    accept: Callable[[str], str] = NO_ACCOUNT.accept
    dial: Callable[[ConnectionSettings, str], Awaitable[Session]] = OVER_TLS.dial
    log_in: Callable[[Endpoint, Credential], Awaitable[LoginAnswer]] = OVER_TLS.log_in
    monotonic: Callable[[], float] = clock.monotonic
    _unreached: str = ""
    _unreached_at: float = 0.0
    _probing: bool = False
    _idle: list[Session] = field(default_factory=list)
    # In the order in which they came, which a set has not: whoever is woken first is the same in every run.
    _lent: dict[Session, None] = field(default_factory=dict)
    _waits: dict[asyncio.Timeout, None] = field(default_factory=dict)
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    @asynccontextmanager
    async def own(self, action: str) -> AsyncIterator[Session]:
        """Lend a session in the administrator's own database; errors come out as Failures that say `action`."""
        async with self._room:
            session = await self._take()
            self._lent[session] = None
            try:
                yield session
            except psycopg.Error as error:
                # Whatever state it was left in, nobody else meets it.
                await session.close()
                if isinstance(error, NoAnswerError) and not self._unreached:
                    # The statement or the server: the next dial shows, and takes one worker.
                    self._unreached, self._unreached_at = str(failure_of(error, action)), -math.inf
                raise failure_of(error, action) from None
            except BaseException:
                await session.close()
                raise
            finally:
                self._lent.pop(session, None)
            if len(self._idle) < _KEPT:
                self._idle.append(session)
            else:
                await session.close()

    @asynccontextmanager
    async def inside(self, database: str, action: str) -> AsyncIterator[Session]:
        """Open a session in a tenant's database for a moment."""
        session = await self._open(database)
        self._lent[session] = None
        try:
            yield session
        except psycopg.Error as error:
            raise failure_of(error, action) from None
        finally:
            self._lent.pop(session, None)
            await session.close()

    async def try_login(self, endpoint: Endpoint, credential: Credential) -> LoginAnswer:
        """Try an application's login; unknown where the server is known to take none."""
        if self._unreached:
            return NO_ANSWER
        try:
            async with self._until_given_up():
                return await self.log_in(endpoint, credential)
        except TimeoutError:
            return NO_ANSWER

    async def probe(self) -> None:
        """Log in once more, apart from all sessions. Raises Failure.

        While a server takes no login, every call to it fails at once; a call that waits for its answer ends.
        """
        try:
            session = await self.dial(self.settings, self.settings.endpoint.database)
        except Unreached as failure:
            self._remember(str(failure))
            self._give_up()
            raise
        self._unreached = ""
        await session.close()

    def _give_up(self) -> None:
        for session in self._lent:
            session.give_up()
        now = clock.loop_time()
        for wait in self._waits:
            wait.reschedule(now)

    @asynccontextmanager
    async def _until_given_up(self) -> AsyncIterator[None]:
        """Raise TimeoutError once the server is known to take no login."""
        async with asyncio.timeout(None) as wait:
            self._waits[wait] = None
            try:
                yield
            finally:
                self._waits.pop(wait, None)

    async def _take(self) -> Session:
        # While the server is unreached, a session that is still open gets no answer either.
        while self._idle and not self._unreached:
            session = self._idle.pop()
            if not session.broken:
                return session
            await session.close()
        return await self._open(self.settings.endpoint.database)

    def _remember(self, text: str) -> None:
        self._unreached, self._unreached_at = text, self.monotonic()

    async def _dialled(self, database: str) -> Session:
        """Dial unless that failed a moment ago or another one tries again just now: a hung server takes one worker."""
        was_unreached = self._unreached
        if was_unreached:
            if self._probing or self.monotonic() - self._unreached_at < _REMEMBERED_SECONDS:
                raise Unreached(was_unreached)
            self._probing = True
        dial = functools.partial(self.dial, self.settings, database)
        try:
            # Of a server that was lost already one request shows as much as three.
            async with self._until_given_up():
                session = await dial() if was_unreached else await retries.repeated(dial, retries.CONNECTS)
        except TimeoutError:
            raise Unreached(self._unreached) from None
        except Unreached as failure:
            if database == self.settings.endpoint.database or was_unreached:
                self._remember(str(failure))
            raise
        finally:
            if was_unreached:
                self._probing = False
        self._unreached = ""
        return session

    async def _open(self, database: str) -> Session:
        session = await self._dialled(database)
        if not self.identifier:
            return session
        host = self.settings.endpoint.host
        # Its first answer may be the one that never comes.
        self._lent[session] = None
        try:
            await prove(session, self.identifier, host, self.accept)
        except psycopg.Error as error:
            await session.close()
            raise failure_of(error, f"ask {host} which server it is") from None
        except BaseException:
            await session.close()
            raise
        finally:
            self._lent.pop(session, None)
        return session

    async def close(self) -> None:
        """End all sessions."""
        while self._idle:
            await self._idle.pop().close()
