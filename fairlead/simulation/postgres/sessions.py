"""The provider's sessions on a server in memory, and logins to it as an application has them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from fairlead.simulation.logins import is_proven
from fairlead.simulation.postgres.engine import execute
from fairlead.simulation.postgres.refusals import DENIED, IN_USE, NO_DATABASE, WRONG_STATE, refusal
from fairlead.simulation.postgres.rows import Database, Role
from fairlead.simulation.postgres.server import Backend, Server
from providers.external.client import Fence
from providers.external.credential import Credential, Login, LoginAnswer
from providers.external.endpoint import Endpoint
from providers.external.sql.errors import failure_of
from providers.external.sql.session import ConnectionSettings, NoAnswerError, Session, Unreached
from providers.onprem.session import Transport
from runtime import clock
from runtime.errors import Failure, Terminal

WRONG_PASSWORD, NOT_ADMITTED, TOO_MANY, SHUT = "28P01", "28000", "53300", "57P03"
_ENDED: Final = "57P01"
# The server waits so long for the sessions of a database to end by themselves.
_PATIENCE_S: Final = 5.0


class Line:
    """The way to a server: at once, and nothing is lost on it."""

    patience_s: float = _PATIENCE_S

    async def go(self, statement: str, *, changes: bool) -> None:
        """Bring a statement or a login to the server."""

    async def come_back(self, statement: str, *, changes: bool) -> None:
        """Bring the answer back."""


class MemorySession(Session):
    """A session of the provider on a server in memory."""

    def __init__(self, backend: Backend, line: Line) -> None:
        self.backend = backend
        self.line = line
        self._is_given_up = False

    async def _run(
        self, sql: str, parameters: Mapping[str, Any] | None, *, at_least_s: float, fence: Fence | None = None
    ) -> list[tuple[Any, ...]]:
        self._refuse_given_up()
        changes = at_least_s > 0
        await self.line.go(sql, changes=changes)
        self._refuse_given_up()
        if fence is not None:
            fence.check()
        rows = await self._answer(sql, parameters)
        await self.line.come_back(sql, changes=changes)
        return rows

    def _refuse_given_up(self) -> None:
        if self._is_given_up:
            raise NoAnswerError("no answer")
        if self.backend.has_ended:
            raise refusal(_ENDED, "terminating connection due to administrator command")

    async def _answer(self, sql: str, parameters: Mapping[str, Any] | None) -> list[tuple[Any, ...]]:
        try:
            return self._carried_out(sql, parameters)
        except psycopg.Error as error:
            if error.sqlstate != IN_USE or not self.line.patience_s:
                raise
        await asyncio.sleep(self.line.patience_s)
        return self._carried_out(sql, parameters)

    def _carried_out(self, sql: str, parameters: Mapping[str, Any] | None) -> list[tuple[Any, ...]]:
        return execute(self.backend, sql, parameters)

    def give_up(self) -> None:
        """Have nobody wait for an answer any more."""
        self._is_given_up = True

    @property
    def broken(self) -> bool:
        """Return whether it is of no more use."""
        return self._is_given_up or self.backend.has_ended

    async def close(self) -> None:
        """End it."""
        self.backend.end()


@dataclass(slots=True)
class Listener:
    """Where logins come in; `session` makes the provider's sessions."""

    server: Server
    line: Line = field(default_factory=Line)
    session: Callable[[Backend, Line], MemorySession] = MemorySession

    @property
    def transport(self) -> Transport:
        """What the provider reaches the server by."""
        return Transport(self.dial, self.log_in)

    async def dial(self, settings: ConnectionSettings, database: str) -> Session:
        """Log in as the administrator, as `open_session` does. Raises Failure."""
        action = f"log in to {settings.endpoint.host}:{settings.endpoint.port} as {settings.admin.username}"
        try:
            await self.line.go(f"login to {database}", changes=False)
            backend = log_in(self.server, settings.admin, database, role="none")
        except psycopg.OperationalError as error:
            raise _failure(error, action, at_home=database == settings.endpoint.database) from None
        try:
            await self.line.come_back(f"login to {database}", changes=False)
        except psycopg.OperationalError as error:
            backend.end()
            raise _failure(error, action, at_home=database == settings.endpoint.database) from None
        except BaseException:
            # Nobody has the session: its line is cut.
            backend.end()
            raise
        return self.session(backend, self.line)

    async def log_in(self, endpoint: Endpoint, credential: Credential) -> LoginAnswer:
        """Try a login as `try_login` does."""
        try:
            await self.line.go(f"login of {credential.username}", changes=False)
            log_in(self.server, credential, endpoint.database).end()
        except psycopg.OperationalError as error:
            code = error.sqlstate or ""
            return LoginAnswer(Login.REFUSED if code in {WRONG_PASSWORD, NOT_ADMITTED} else Login.UNKNOWN, code)
        return LoginAnswer(Login.OK)


def _failure(error: psycopg.OperationalError, action: str, *, at_home: bool) -> Failure:
    code = error.sqlstate or ""
    if code in {WRONG_PASSWORD, NOT_ADMITTED}:
        remedy = "the server refused it; renew username and password in the administrator's Secret"
        return Terminal("CredentialsInvalid", f"cannot {action}: {remedy}")
    failure = failure_of(psycopg.OperationalError(), action, code=code, at_home=at_home)
    return Unreached(str(failure), is_momentary=not code) if code in {"", SHUT} else failure


class NotLoggedInError(psycopg.OperationalError):
    """A login that the server refused; libpq says nothing of why but in words."""

    @classmethod
    def of(cls, code: str) -> NotLoggedInError:
        """Return one with the server's code."""
        error = cls("the login was refused")
        error.sqlstate = code
        return error


def log_in(server: Server, credential: Credential, database: str, *, role: str = "") -> Backend:
    """Return a new connection; `role` is the setting of that name that the client sends along.

    Raises:
        NotLoggedInError: With the server's code.
    """
    user = server.role_or_none(credential.username)
    if user is None or not _is_proven(user, credential.password):
        raise NotLoggedInError.of(WRONG_PASSWORD)
    if not user.login:
        raise NotLoggedInError.of(NOT_ADMITTED)
    _refuse_full(user.limit, [other for other in server.backends if other.session_user == user.oid], user)
    place = server.database_or_none(database)
    if place is None:
        raise NotLoggedInError.of(NO_DATABASE)
    backend = Backend(server, user.oid, place.oid, user.oid, user.oid)
    _refuse_database(backend, place, user)
    backend.user = backend.reset_user = _first_user(backend, role)
    server.backends.append(backend)
    return backend


def _refuse_database(backend: Backend, place: Database, user: Role) -> None:
    if place.is_invalid or not place.allows:
        raise NotLoggedInError.of(WRONG_STATE)
    if user.superuser:
        return
    ours = {*backend.inherited(user.oid), 0}
    if not any(item.grantee in ours and "CONNECT" in item.rights for item in place.whole_access):
        raise NotLoggedInError.of(DENIED)
    _refuse_full(place.limit, backend.server.connected_to(place.oid), user)


def _refuse_full(limit: int, others: list[Backend], user: Role) -> None:
    if not user.superuser and 0 <= limit <= len(others):
        raise NotLoggedInError.of(TOO_MANY)


def _first_user(backend: Backend, role: str) -> int:
    """Return who somebody acts as at first: by the client's setting, else by that of login or database."""
    server, user = backend.server, backend.session_user
    keys = ((backend.database, user), (0, user), (backend.database, 0))
    values = [role, *(server.setting(*key, "role") for key in keys)]
    name = next((value for value in values if value), "none")
    wanted = server.role_or_none(name)
    # A setting that cannot be had is a warning.
    return wanted.oid if wanted is not None and backend.may_set(wanted.oid, of_session=True) else user


def _is_proven(user: Role, password: str) -> bool:
    is_late = user.until not in {None, "infinity"} and str(user.until)[:10] <= clock.now().date().isoformat()
    return not is_late and is_proven(password, user.verifier or "")
