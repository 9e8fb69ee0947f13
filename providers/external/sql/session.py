"""A session as a server's administrator: over verified TLS, SCRAM only, hardened against what a tenant can own.

In a tenant's database everything that the tenant can own is hostile: sessions start with search_path=pg_catalog, no
role, time-outs on statements and locks, and never use a name without its schema.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg

from providers.external.client import Fence
from providers.external.credential import Credential, Login
from providers.external.endpoint import Endpoint
from providers.external.login import try_login
from providers.external.observation import ServerUnreachable
from providers.external.sql.errors import failure_of
from runtime import clock
from runtime.errors import Blocked, Failure, Terminal, Transient

_OPTIONS = (
    "-c search_path=pg_catalog -c role=none -c default_transaction_read_only=off -c statement_timeout=15s"
    " -c lock_timeout=5s -c idle_in_transaction_session_timeout=30s -c row_security=off -c client_min_messages=error"
)
_CONNECT_SECONDS = 5
# For so long a change may be answered by a server that takes no login.
_CHANGE_SECONDS = 2
# Longer than the server's own time-out on a statement: only a line that went silent is cut by it.
_ANSWER_SECONDS = 20
# How libpq begins to say that `require_auth` is not met; it ships without translations.
_OTHER_METHOD = 'authentication method requirement "scram-sha-256" failed'


# SQLSTATE of a server that is starting, stopping or in recovery (PostgreSQL manual, appendix A).
_CANNOT_CONNECT_NOW = "57P03"


class Unreached(ServerUnreachable):
    """No session came about or answered: the server gave no reason, or that it takes no login now."""


class NoAnswerError(psycopg.OperationalError):
    """A statement got no answer in time."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Where and as whom to connect; `ca_file` is of `roots_of`, `answer_s` is how long an answer may take."""

    endpoint: Endpoint
    admin: Credential
    ca_file: Path
    answer_s: float = _ANSWER_SECONDS
    application: str = "fairlead-provider-onprem"


class Session:
    """One connection; each statement is its own transaction."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], answer_s: float) -> None:
        self._connection = connection
        self._answer_s = answer_s
        # What cuts the line of the statement under way, and from when on (by the loop's clock) that may be early.
        self._cut: tuple[asyncio.TimerHandle, float] | None = None
        self._is_cut = False
        self._is_given_up = False

    async def rows(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """Run one reading statement."""
        return await self._run(sql, parameters, at_least_s=0.0)

    async def change(
        self, sql: str, fence: Fence, parameters: Mapping[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        """Run one changing statement; the fence is asked at once, and again at the last moment."""
        fence.check()
        return await self._run(sql, parameters, at_least_s=_CHANGE_SECONDS, fence=fence)

    async def _run(
        self, sql: str, parameters: Mapping[str, Any] | None, *, at_least_s: float, fence: Fence | None = None
    ) -> list[tuple[Any, ...]]:
        if self._is_given_up:
            raise NoAnswerError("no answer")
        # Bytes, as psycopg's texts must be literals: each name in them was quoted by statements.py.
        loop = asyncio.get_running_loop()
        began = clock.loop_time()
        self._cut = loop.call_at(began + self._answer_s, self._cut_line), began + at_least_s
        try:
            cursor = await self._executed(sql, parameters, fence)
            return await cursor.fetchall() if cursor.description else []
        except psycopg.OperationalError:
            if self._is_cut:
                raise NoAnswerError("no answer") from None
            raise
        finally:
            timer, _ = self._cut
            timer.cancel()
            self._cut = None

    async def _executed(
        self, sql: str, parameters: Mapping[str, Any] | None, fence: Fence | None
    ) -> psycopg.AsyncCursor[Any]:
        """Execute a statement in a task of its own: a cancellation cuts the line and never reaches psycopg."""

        async def execute() -> psycopg.AsyncCursor[Any]:
            if fence is not None:
                fence.check()
            return await self._connection.execute(sql.encode(), parameters)

        statement = asyncio.create_task(execute())
        try:
            await asyncio.wait((statement,))
        except asyncio.CancelledError:
            self._cut_line()
            await asyncio.wait((statement,))
            # What it says is of no more use, and is to be taken.
            statement.exception()
            raise
        return statement.result()

    def give_up(self) -> None:
        """End the wait for an answer, as the server is known to give none; a change has its first seconds before.

        No later statement is sent either: between two statements nobody waits yet, and the next one would wait in vain.
        """
        self._is_given_up = True
        if self._cut is not None:
            timer, earliest = self._cut
            timer.cancel()
            self._cut = asyncio.get_running_loop().call_at(earliest, self._cut_line), earliest

    def _cut_line(self) -> None:
        """Shut the socket, which ends the wait at once.

        Cancelled, psycopg would first ask the server to end the statement and wait for its answer, 5 s each; the
        server's own time-out ends it as well.
        """
        self._is_cut = True
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self._connection.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)

    @property
    def broken(self) -> bool:
        """Return whether the connection is of no more use.

        A server says nothing to an idle session but its end: bytes that wait to be read are that end.
        """
        if self._is_given_up or self._connection.closed or self._connection.broken:
            return True
        poll = select.poll()
        poll.register(self._connection.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    async def close(self) -> None:
        """End the session."""
        await self._connection.close()


async def open_session(settings: ConnectionSettings, database: str) -> Session:
    """Log in to a database of the server as its administrator.

    Raises:
        Terminal: `CredentialsForbidden`: nothing proves who answers, and nothing was sent.
        Failure: By the server's SQLSTATE, which libpq hides and a second, bare login finds out.
    """
    if not settings.endpoint.is_verified:
        text = f"cannot log in to {settings.endpoint}: nothing proves who answers there; nothing was sent"
        raise Terminal("CredentialsForbidden", text)
    try:
        connection = await psycopg.AsyncConnection.connect(
            host=settings.endpoint.host,
            port=settings.endpoint.port,
            dbname=database,
            user=settings.admin.username,
            password=settings.admin.password,
            sslmode=settings.endpoint.sslmode,
            sslrootcert=str(settings.ca_file),
            # Whoever answers gets proofs of the password, never the password, whatever it asks for.
            require_auth="scram-sha-256",
            gssencmode="disable",
            connect_timeout=_CONNECT_SECONDS,
            options=_OPTIONS,
            application_name=settings.application,
            keepalives_idle=_CONNECT_SECONDS,
            tcp_user_timeout=_ANSWER_SECONDS * 1000,
            autocommit=True,
        )
    except psycopg.Error as error:
        raise await _why(settings, database, error) from None
    return Session(connection, settings.answer_s)


async def _why(settings: ConnectionSettings, database: str, error: psycopg.Error) -> Failure:
    action = f"log in to {settings.endpoint.host}:{settings.endpoint.port} as {settings.admin.username}"
    if isinstance(error, psycopg.errors.ConnectionTimeout):
        # A second login would hang as long.
        return Unreached(f"cannot {action}: no answer within {_CONNECT_SECONDS} s")
    if _OTHER_METHOD in str(error):
        remedy = (
            "the server asks for the password in another form than SCRAM-SHA-256, and got none; have its pg_hba.conf"
            " say scram-sha-256 for this login, and set the password anew where it was stored as md5"
        )
        return Terminal("CredentialsForbidden", f"cannot {action}: {remedy}")
    answer, code, _ = await try_login(replace(settings.endpoint, database=database), settings.admin)
    if answer is Login.REFUSED:
        remedy = "the server refused it; renew username and password in the administrator's Secret"
        return Terminal("CredentialsInvalid", f"cannot {action}: {remedy}")
    if answer is Login.OK:
        # Its password, or its right to log in, has just begun to count.
        return Transient(f"cannot {action}: it works since, which the next try uses")
    failure = failure_of(error, action, code=code, at_home=database == settings.endpoint.database)
    is_shut = not code or code == _CANNOT_CONNECT_NOW
    if not isinstance(failure, Transient) or not is_shut:
        return failure
    # Without a code nobody took the connection: a listener that restarts, or an address that moves.
    return Unreached(str(failure), is_momentary=not code)


@contextmanager
def roots_of(endpoint: Endpoint) -> Iterator[Path]:
    """Yield the file of the certificates by which libpq verifies an endpoint: its own authority's, else the system's.

    The system's are those of this process's OpenSSL, as SSL_CERT_FILE may say, by which `try_login` goes as well.
    libpq's own word for them (`sslrootcert=system`, from libpq 16 on) means the folders of the machine that built its
    wheel.

    Raises:
        Blocked: `CredentialsMissing`: this machine has no such file.
    """
    if endpoint.ca:
        with as_file(endpoint.ca) as file:
            yield file
        return
    system = ssl.get_default_verify_paths().cafile
    if not system:
        text = "there is no file of public authorities; install ca-certificates, or name one in SSL_CERT_FILE"
        raise Blocked("CredentialsMissing", f"cannot verify {endpoint}: {text}")
    yield Path(system)


@contextmanager
def as_file(text: str) -> Iterator[Path]:
    """Give libpq, which takes certificates by path alone, a file in memory: no disk, and no crash leaves it behind."""
    with os.fdopen(os.memfd_create("authority.crt"), "wb", buffering=0) as file:
        file.write(text.encode())
        yield Path(f"/proc/self/fd/{file.fileno()}")
