"""The platform team's PostgreSQL server in memory: the provider's sessions lead to it, with faults on the way."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import psycopg

from fairlead.simulation.calls import PROVIDER, STRANGER, Made, Weather
from fairlead.simulation.logins import authority
from fairlead.simulation.postgres.engine import execute
from fairlead.simulation.postgres.refusals import refusal
from fairlead.simulation.postgres.rows import Database, Role
from fairlead.simulation.postgres.server import ADMIN, ADMIN_DATABASE, SUPERUSER, Backend, Server, new_server
from fairlead.simulation.postgres.sessions import (
    SHUT,
    TOO_MANY,
    Line,
    Listener,
    MemorySession,
    NotLoggedInError,
    log_in,
)
from fairlead.simulation.process_life import ProcessLife
from providers.external.client import Fence
from providers.external.credential import Credential
from providers.external.sql.scram import verifier
from providers.onprem.client import OnPremCloud, connect
from providers.onprem.session import Transport
from runtime import clock

HOST, SERVER = "pg.example.org", "pg"
_PASSWORD: Final = "Administrators-password-1"
SECRET: Final = {"username": ADMIN, "password": _PASSWORD, "host": HOST}
CONFIG: Final[Mapping[str, Any]] = {
    "host": HOST,
    "database": ADMIN_DATABASE,
    "adminSecretRef": {"name": "onprem-admin"},
    "caBundle": authority().decode(),
}
_NAME: Final = re.compile(r'"([^"]+)"')
_CHANGE: Final = re.compile(r'(CREATE|ALTER|DROP) DATABASE "([^"]+)"( RENAME)?')
_VERBS: Final = {"CREATE": "create", "ALTER": "change", "DROP": "delete"}


@dataclass(slots=True)
class OnPrem:
    """One server; `emit` takes lines into the trace."""

    emit: Callable[..., None]
    chance: random.Random
    weather: Weather = field(default_factory=Weather)
    history: list[Made] = field(default_factory=list)
    server: Server = field(init=False)

    def __post_init__(self) -> None:
        self.server = new_server(self.chance, verifier(_PASSWORD, b"salt of a server"))

    async def run(self) -> None:
        """Let happen what happens by itself: nothing does."""
        await asyncio.Event().wait()

    def transport(self, life: ProcessLife) -> Transport:
        """Return what one process reaches the server by."""
        return Listener(self.server, _Line(self, life), partial(_Session, self)).transport

    def connector(self, life: ProcessLife) -> Any:
        """Return what a provider connects by, as `providers.onprem.client.connect`."""

        @asynccontextmanager
        async def connected(config: Any, secrets: Any, recorded: Any, meter: Any) -> AsyncIterator[OnPremCloud]:
            async with connect(config, secrets, recorded, meter, self.transport(life)) as cloud:
                yield cloud

        return connected

    def databases(self) -> dict[str, Database]:
        """Return the databases that are not the platform team's own, by name."""
        own = {"postgres", "template0", "template1", ADMIN_DATABASE}
        return {known.name: known for known in self.server.catalogs.databases.values() if known.name not in own}

    def roles(self) -> dict[str, Role]:
        """Return the roles that are not the platform team's own, by name."""
        own = {"postgres", ADMIN}
        roles = self.server.catalogs.roles.values()
        return {role.name: role for role in roles if role.name not in own and not role.name.startswith("pg_")}

    def servers(self) -> list[str]:
        """Return the one server."""
        return [SERVER]

    def left(self) -> set[str]:
        """Return the server and the databases that are there."""
        return {SERVER} | {f"{SERVER}/{name}" for name in self.databases()}

    def backups(self) -> list[str]:
        """Return that there are none."""
        return []

    def runs(self, server: str) -> bool:
        """Return whether it is the one server."""
        return server == SERVER

    def size_of(self, server: str, database: str) -> object:
        """Return the connection limit of a database."""
        del server
        return self.databases()[database].limit

    def number_of(self, server: str, database: str) -> int:
        """Return the oid of a database, 0 where it is not there."""
        known = self.databases().get(database)
        return 0 if known is None or server != SERVER else known.oid

    def admits(self, server: str, user: str, password: str, database: str) -> bool:
        """Return whether a login succeeds."""
        if server != SERVER:
            return False
        try:
            log_in(self.server, Credential(user, password), database).end()
        except NotLoggedInError:
            return False
        return True

    def session_in(self, database: str) -> Backend | None:
        """Return a session of the server's superuser, None where the database takes none."""
        place = self.server.database_or_none(database)
        if place is None or not place.allows or place.is_invalid:
            return None
        backend = Backend(self.server, SUPERUSER, place.oid, SUPERUSER, SUPERUSER)
        self.server.backends.append(backend)
        return backend

    def disown(self, database: str) -> None:
        """Lose what the server remembers of a database's owner."""
        rows = self.server.catalogs.ownership
        if rows is not None and rows.pop(database, None) is not None:
            self.history.append(Made(clock.monotonic(), STRANGER, "databases.disown", SERVER, database, had=True))

    def ask(self, sql: str, database: str = "postgres") -> str:
        """Carry out a statement of the server's superuser; return what the server says."""
        backend = self.session_in(database)
        if backend is None:
            return f"{sql}: no session in {database}"
        try:
            self.carry_out(backend, sql, None, STRANGER)
        except psycopg.Error as error:
            return f"{sql}: {error}"
        finally:
            backend.end()
        if _CHANGE.match(sql) is None:
            role = _NAME.search(sql)
            name = role[1] if role else ""
            self.history.append(Made(clock.monotonic(), STRANGER, "roles.change", SERVER, name, had=True))
        return sql

    def carry_out(
        self, backend: Backend, sql: str, parameters: Mapping[str, Any] | None, principal: str
    ) -> list[tuple[Any, ...]]:
        """Carry out a statement, and write down what it changes in the cloud."""
        change = _CHANGE.match(sql)
        had = change is not None and change[2] in self.databases()
        try:
            rows = execute(backend, sql, parameters)
        except psycopg.Error as error:
            self.emit(round(clock.monotonic(), 6), principal, sql[:100], error.sqlstate)
            raise
        self.emit(round(clock.monotonic(), 6), principal, sql[:100])
        if change is not None:
            # What has another name is not there any more for whoever looks for it.
            verb = "delete" if change[3] else _VERBS[change[1]]
            self.history.append(Made(clock.monotonic(), principal, f"databases.{verb}", SERVER, change[2], had))
        return rows


class _Session(MemorySession):
    """A session of the provider; one whose line was cut is of no more use."""

    def __init__(self, cloud: OnPrem, backend: Backend, line: Line) -> None:
        super().__init__(backend, line)
        self._cloud = cloud

    async def _run(
        self, sql: str, parameters: Mapping[str, Any] | None, *, at_least_s: float, fence: Fence | None = None
    ) -> list[tuple[Any, ...]]:
        try:
            return await super()._run(sql, parameters, at_least_s=at_least_s, fence=fence)
        except psycopg.OperationalError as error:
            if error.sqlstate is None:
                self.backend.end()
            raise

    def _carried_out(self, sql: str, parameters: Mapping[str, Any] | None) -> list[tuple[Any, ...]]:
        return self._cloud.carry_out(self.backend, sql, parameters, PROVIDER)


@dataclass(slots=True)
class _Line(Line):
    """The way of one process to the server, in all weathers."""

    cloud: OnPrem
    life: ProcessLife

    async def go(self, statement: str, *, changes: bool) -> None:
        chance, weather = self.cloud.chance, self.cloud.weather
        await self.life.outlive()
        await asyncio.sleep(0.001 + chance.random() * 0.02)
        await self.life.outlive()
        drawn = chance.random()
        if drawn < weather.cut_before or (changes and chance.random() < weather.write_cut):
            raise _lost()
        if statement.startswith("login") and drawn < weather.cut_before + weather.unavailable:
            raise NotLoggedInError.of(SHUT)
        if statement.startswith("login") and drawn < weather.cut_before + weather.unavailable + weather.throttled:
            raise NotLoggedInError.of(TOO_MANY)
        if changes and drawn < weather.cut_before + weather.throttled:
            raise refusal("55P03", "canceling statement due to lock timeout")
        if changes:
            await self.life.before_effect()

    async def come_back(self, statement: str, *, changes: bool) -> None:
        del statement
        if changes:
            await self.life.after_effect()
        await asyncio.sleep(0.001 + self.cloud.chance.random() * 0.02)
        await self.life.outlive()
        if self.cloud.chance.random() < self.cloud.weather.cut_after:
            raise _lost()


def _lost() -> psycopg.OperationalError:
    return psycopg.OperationalError("the connection was lost")
