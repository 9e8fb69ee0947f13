"""Sessions of the administrator: few in its own database, kept; short ones in a tenant's, hardened.

In a tenant's database everything that the tenant can own is hostile: sessions start with search_path=pg_catalog, no
role, time-outs on statements and locks, and never use a name without its schema.
"""

from __future__ import annotations

import asyncio
import math
import select
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from providers.cloud import Credential, Fence, ServerUnreachable
from providers.login import Server, try_login
from providers.onprem.errors import failure_of
from providers.passwords import Login
from runtime.errors import Failure, Terminal, Transient

_OPTIONS = (
    "-c search_path=pg_catalog -c role=none -c default_transaction_read_only=off -c statement_timeout=15s"
    " -c lock_timeout=5s -c idle_in_transaction_session_timeout=30s -c row_security=off -c client_min_messages=error"
)
_WHO = """
SELECT system_identifier::pg_catalog.text, pg_catalog.pg_is_in_recovery() FROM pg_catalog.pg_control_system()
"""
_CONNECT_SECONDS = 5
# Longer than the server's own time-out on a statement: only a line that went silent is cut by it.
_ANSWER_SECONDS = 20
# How libpq begins to say that `require_auth` is not met; it ships without translations.
_OTHER_METHOD = 'authentication method requirement "scram-sha-256" failed'
# As many as passes of one ProviderConfig run at once, so that a statement that waits holds up nobody else; few stay
# open after that.
_AT_ONCE = 16
_KEPT = 4
# How long nobody dials again a server that gave no answer; then one does, and the others are told at once meanwhile.
_REMEMBERED_SECONDS = 5.0


# SQLSTATE of a server that is starting, stopping or in recovery (PostgreSQL manual, appendix A).
_CANNOT_CONNECT_NOW = "57P03"


class Unreached(ServerUnreachable):
    """No session came about or answered: the server gave no reason, or that it takes no login now."""


class _NoAnswerError(psycopg.OperationalError):
    """A statement got no answer in time."""


@dataclass(frozen=True, slots=True)
class Account:
    """Where and as whom to log in; `ca_file` holds the PEM for libpq, `answer_s` is how long an answer may take."""

    server: Server
    database: str
    admin: Credential
    ca_file: Path
    answer_s: float = _ANSWER_SECONDS


class Session:
    """One connection; each statement is its own transaction."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], answer_s: float) -> None:
        self._connection = connection
        self._answer_s = answer_s
        # The wait for an answer, and from when on (by the loop's clock) it may be ended early.
        self._wait: tuple[asyncio.Timeout, float] | None = None

    async def rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one reading statement."""
        return await self._run(sql, parameters, at_least_s=0.0)

    async def change(
        self, sql: str, fence: Fence, parameters: Mapping[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        """Run one changing statement; the fence is asked at the last moment."""
        fence.check()
        return await self._run(sql, parameters, at_least_s=_CONNECT_SECONDS)

    async def _run(self, sql: str, parameters: Mapping[str, Any] | None, *, at_least_s: float) -> list[tuple[Any, ...]]:
        # Bytes, as psycopg's texts must be literals: each name in them was quoted by statements.py.
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._answer_s) as wait:
                self._wait = wait, began + at_least_s
                cursor = await self._connection.execute(sql.encode(), parameters)
                return await cursor.fetchall() if cursor.description else []
        except TimeoutError:
            raise _NoAnswerError("no answer") from None
        finally:
            self._wait = None

    def give_up(self) -> None:
        """End the wait for an answer, as the server is known to give none; a change has its first seconds before."""
        if self._wait is not None:
            wait, earliest = self._wait
            wait.reschedule(max(earliest, asyncio.get_running_loop().time()))

    @property
    def broken(self) -> bool:
        """Tell whether the connection is of no more use.

        A server says nothing to an idle session but its end: bytes that wait to be read are that end.
        """
        if self._connection.closed or self._connection.broken:
            return True
        poll = select.poll()
        poll.register(self._connection.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    async def close(self) -> None:
        """End the session."""
        await self._connection.close()


async def open_session(account: Account, database: str) -> Session:
    """Log in as administrator.

    Raises:
        Failure: By the server's SQLSTATE, which libpq hides and a second, bare login finds out.
    """
    try:
        connection = await psycopg.AsyncConnection.connect(
            host=account.server.host,
            port=account.server.port,
            dbname=database,
            user=account.admin.username,
            password=account.admin.password,
            sslmode="verify-full",
            sslrootcert=str(account.ca_file),
            # Whoever answers gets proofs of the password, never the password, whatever it asks for.
            require_auth="scram-sha-256",
            gssencmode="disable",
            connect_timeout=_CONNECT_SECONDS,
            options=_OPTIONS,
            application_name="fairlead-provider-onprem",
            keepalives_idle=_CONNECT_SECONDS,
            tcp_user_timeout=_ANSWER_SECONDS * 1000,
            autocommit=True,
        )
    except psycopg.Error as error:
        raise await _why(account, database, error) from None
    return Session(connection, account.answer_s)


async def _why(account: Account, database: str, error: psycopg.Error) -> Failure:
    what = f"log in to {account.server.host}:{account.server.port} as {account.admin.username}"
    if isinstance(error, psycopg.errors.ConnectionTimeout):
        # A second login would hang as long.
        return Unreached(f"cannot {what}: no answer within {_CONNECT_SECONDS} s")
    if _OTHER_METHOD in str(error):
        advice = (
            "the server asks for the password in another form than SCRAM-SHA-256, and got none; have its pg_hba.conf"
            " say scram-sha-256 for this login, and set the password anew where it was stored as md5"
        )
        return Terminal("CredentialsForbidden", f"cannot {what}: {advice}")
    answer, code = await try_login(account.server, database, account.admin)
    if answer is Login.REFUSED:
        advice = "the server refused it; renew username and password in the administrator's Secret"
        return Terminal("CredentialsInvalid", f"cannot {what}: {advice}")
    failure = failure_of(error, what, code=code, at_home=database == account.database)
    is_shut = not code or code == _CANNOT_CONNECT_NOW
    return Unreached(str(failure)) if isinstance(failure, Transient) and is_shut else failure


async def prove(session: Session, identifier: str, host: str) -> None:
    """Raise Failure unless the session is at the very server that was met first, and that server is a primary.

    An address may lead elsewhere tomorrow: what is absent on another server is not absent.
    """
    ((found, recovery),) = await session.rows(_WHO)
    if found != identifier:
        raise Terminal(
            "AccountChanged",
            f"{host} leads to server {found}, not to {identifier} where the databases are; nothing is absent and"
            " nothing is changed until it leads there again. If it is that server after an upgrade, annotate the"
            f" ProviderConfig fairlead.dev/consent=account={found}",
        )
    if recovery:
        raise Transient(f"server {host} is in recovery and takes no change")


@dataclass(slots=True)
class Sessions:
    """The administrator's sessions in its own database: one for each worker at most, a few kept open.

    `identifier` is the system_identifier that every new session must find, empty until the server was met. `dial` and
    `monotonic` are replaced by tests.
    """

    account: Account
    identifier: str = ""
    dial: Callable[[Account, str], Awaitable[Session]] = open_session
    monotonic: Callable[[], float] = time.monotonic
    _unreached: str = ""
    _unreached_at: float = 0.0
    _probing: bool = False
    _idle: list[Session] = field(default_factory=list)
    _lent: set[Session] = field(default_factory=set)
    _logins: set[asyncio.Timeout] = field(default_factory=set)
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    @asynccontextmanager
    async def own(self, what: str) -> AsyncIterator[Session]:
        """Lend a session in the administrator's own database; errors come out as Failures that say `what`."""
        async with self._room:
            session = await self._take()
            self._lent.add(session)
            try:
                yield session
            except psycopg.Error as error:
                # Whatever state it was left in, nobody else meets it.
                await session.close()
                if isinstance(error, _NoAnswerError) and not self._unreached:
                    # The statement or the server: the next dial tells, and takes one worker.
                    self._unreached, self._unreached_at = str(failure_of(error, what)), -math.inf
                raise failure_of(error, what) from None
            except BaseException:
                await session.close()
                raise
            finally:
                self._lent.discard(session)
            if len(self._idle) < _KEPT:
                self._idle.append(session)
            else:
                await session.close()

    @asynccontextmanager
    async def inside(self, database: str, what: str) -> AsyncIterator[Session]:
        """Open a session in a tenant's database for a moment."""
        session = await self._open(database)
        self._lent.add(session)
        try:
            yield session
        except psycopg.Error as error:
            raise failure_of(error, what) from None
        finally:
            self._lent.discard(session)
            await session.close()

    async def login(self, database: str, credential: Credential) -> Login:
        """Try an application's login; not known where the server is known to take none."""
        if self._unreached:
            return Login.UNKNOWN
        try:
            async with asyncio.timeout(None) as wait:
                self._logins.add(wait)
                try:
                    answer, _ = await try_login(self.account.server, database, credential)
                finally:
                    self._logins.discard(wait)
        except TimeoutError:
            return Login.UNKNOWN
        return answer

    async def probe(self) -> None:
        """Log in anew beside all sessions. Raises Failure.

        Of a server that takes no login everybody is told at once until it takes one again, and who waits for its answer
        waits no longer.
        """
        try:
            session = await self.dial(self.account, self.account.database)
        except Unreached as failure:
            self._remember(str(failure))
            self._give_up()
            raise
        self._unreached = ""
        await session.close()

    def _give_up(self) -> None:
        for session in self._lent:
            session.give_up()
        now = asyncio.get_running_loop().time()
        for wait in self._logins:
            wait.reschedule(now)

    async def _take(self) -> Session:
        # While the server is unreached, a session that is still open gets no answer either.
        while self._idle and not self._unreached:
            session = self._idle.pop()
            if not session.broken:
                return session
            await session.close()
        return await self._open(self.account.database)

    def _remember(self, text: str) -> None:
        self._unreached, self._unreached_at = text, self.monotonic()

    async def _dialled(self, database: str) -> Session:
        """Dial unless that failed a moment ago or another one tries again just now: a hung server takes one worker."""
        was_unreached = self._unreached
        if was_unreached:
            if self._probing or self.monotonic() - self._unreached_at < _REMEMBERED_SECONDS:
                raise Unreached(was_unreached)
            self._probing = True
        try:
            session = await self.dial(self.account, database)
        except Unreached as failure:
            if database == self.account.database or was_unreached:
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
        host = self.account.server.host
        try:
            await prove(session, self.identifier, host)
        except psycopg.Error as error:
            await session.close()
            raise failure_of(error, f"ask {host} which server it is") from None
        except Failure:
            await session.close()
            raise
        return session

    async def close(self) -> None:
        """End all sessions."""
        while self._idle:
            await self._idle.pop().close()
