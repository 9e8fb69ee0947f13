"""A session as a server's administrator: over verified TLS, SCRAM only, hardened against what a tenant can own.

In a tenant's database everything that the tenant can own is hostile: sessions start with search_path=pg_catalog, no
role, time-outs on statements and locks, and never use a name without its schema.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from providers.external.client import Fence
from providers.external.credential import Credential, Login
from providers.external.login import Server, try_login
from providers.external.observation import ServerUnreachable
from providers.external.sql_errors import failure_of
from runtime.errors import Failure, Terminal, Transient

_OPTIONS = (
    "-c search_path=pg_catalog -c role=none -c default_transaction_read_only=off -c statement_timeout=15s"
    " -c lock_timeout=5s -c idle_in_transaction_session_timeout=30s -c row_security=off -c client_min_messages=error"
)
_CONNECT_SECONDS = 5
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
class Account:
    """Where and as whom to log in; `ca_file` holds the PEM for libpq, `answer_s` is how long an answer may take."""

    server: Server
    database: str
    admin: Credential
    ca_file: Path
    answer_s: float = _ANSWER_SECONDS
    application: str = "fairlead-provider-onprem"


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
            raise NoAnswerError("no answer") from None
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
            application_name=account.application,
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


@contextmanager
def as_file(text: str) -> Iterator[Path]:
    """Give libpq, which takes certificates by path alone, a file in memory: no disk, and no crash leaves it behind."""
    with os.fdopen(os.memfd_create("authority.crt"), "wb", buffering=0) as file:
        file.write(text.encode())
        yield Path(f"/proc/self/fd/{file.fileno()}")
