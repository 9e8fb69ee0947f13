"""The two servers that are compared: PostgreSQL, and the one in memory."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
import psycopg

from devcloud.onprem import OnPremServer
from fairlead.simulation.postgres.access_lists import AccessList
from fairlead.simulation.postgres.engine import execute
from fairlead.simulation.postgres.server import SUPERUSER, Backend, Server, new_server
from fairlead.simulation.postgres.sessions import Line, Listener, MemorySession, NotLoggedInError, log_in
from providers.external.credential import Credential
from providers.external.sql.scram import verifier
from providers.external.sql.session import _OPTIONS, ConnectionSettings, Session, open_session
from providers.external.sql.text import quoted
from providers.onprem.client import connect
from providers.onprem.models import ProviderConfigSpec
from providers.onprem.session import Transport
from tests.simulation.postgres.acting import Recording, Side
from tests.simulation.postgres.sequences import Names

_REFUSED = "not let in"
_ROLES = """SELECT rolname, rolcanlogin, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls, rolinherit,
    rolconnlimit, rolvaliduntil::text, rolpassword IS NOT NULL
    FROM pg_authid WHERE rolname LIKE %(like)s ORDER BY rolname
"""
_MEMBERS = """SELECT g.rolname, u.rolname, pg_get_userbyid(m.grantor), m.admin_option, m.inherit_option, m.set_option
    FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid JOIN pg_roles u ON u.oid = m.member
    WHERE g.rolname LIKE %(like)s OR u.rolname LIKE %(like)s ORDER BY 1, 2, 3
"""
_SETTINGS = """SELECT coalesce(d.datname, ''), coalesce(r.rolname, ''), s.setconfig FROM pg_db_role_setting s
    LEFT JOIN pg_database d ON d.oid = s.setdatabase LEFT JOIN pg_roles r ON r.oid = s.setrole
    WHERE d.datname LIKE %(like)s OR r.rolname LIKE %(like)s ORDER BY 1, 2
"""
_DATABASES = """SELECT datname, pg_get_userbyid(datdba), datallowconn, datconnlimit, datistemplate, datacl::text
    FROM pg_database WHERE datname LIKE %(like)s ORDER BY datname
"""
_WITHIN = """SELECT (SELECT pg_get_userbyid(nspowner) || ' ' || coalesce(nspacl::text, '') FROM pg_namespace
    WHERE nspname = 'public'), (SELECT array_agg(extname::text ORDER BY extname) FROM pg_extension)
"""


class _RealSession(Recording):
    pass


class _MemorySession(Recording, MemorySession):
    pass


@dataclass
class Real(Side):
    """PostgreSQL; `superuser` is the session of whoever else acts there."""

    server: OnPremServer = field(kw_only=True)
    superuser: psycopg.AsyncConnection[Any] = field(kw_only=True)

    async def run(self, sql: str, database: str) -> str:
        if database == "postgres":
            came = await _run(self.superuser, sql)
            if self.superuser.broken:
                self.superuser = await _superuser(self.server)
            return came
        try:
            conninfo = self.server.server.superuser_conninfo(database)
            async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
                return await _run(connection, sql)
        except psycopg.OperationalError:
            return _REFUSED

    async def hold(self, login: Credential, database: str) -> bool:
        where = psycopg.conninfo.make_conninfo(
            self.server.server.superuser_conninfo(database), user=login.username, password=login.password
        )
        try:
            self.held.append(await psycopg.AsyncConnection.connect(where, autocommit=True))
        except psycopg.OperationalError:
            return False
        return True

    async def end_sessions(self) -> None:
        while self.held:
            await self.held.pop().close()

    async def catalogs(self) -> list[str]:
        like, lines = {"like": f"%{self.names.tail}%"}, []
        for question in (_ROLES, _MEMBERS, _SETTINGS, _DATABASES):
            cursor = await self.superuser.execute(question.encode(), like)
            lines += [str(row) for row in await cursor.fetchall()]
        cursor = await self.superuser.execute(
            b"SELECT datname FROM pg_database WHERE datname LIKE %(like)s AND datallowconn AND datconnlimit <> -2"
            b" ORDER BY 1",
            like,
        )
        for (name,) in await cursor.fetchall():
            conninfo = self.server.server.superuser_conninfo(name)
            async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
                lines.append(f"{name}: {await (await connection.execute(_WITHIN.encode())).fetchone()}")
        return lines

    async def clear(self) -> None:
        """Drop all that is there of the sequence."""
        await self.end_sessions()
        like = {"like": f"%{self.names.tail}%"}
        cursor = await self.superuser.execute(b"SELECT datname FROM pg_database WHERE datname LIKE %(like)s", like)
        for (name,) in await cursor.fetchall():
            await _run(self.superuser, f"UPDATE pg_database SET datistemplate = false WHERE datname = '{name}'")  # noqa: S608 - names of this sequence
            await _run(self.superuser, f"DROP DATABASE {quoted(name)} WITH (FORCE)")
        cursor = await self.superuser.execute(b"SELECT rolname FROM pg_roles WHERE rolname LIKE %(like)s", like)
        roles = ", ".join(quoted(name) for (name,) in await cursor.fetchall())
        if roles:
            await _run(self.superuser, f"DROP ROLE {roles}")


async def _superuser(server: OnPremServer) -> psycopg.AsyncConnection[Any]:
    return await psycopg.AsyncConnection.connect(server.server.superuser_conninfo(), autocommit=True)


async def _run(connection: psycopg.AsyncConnection[Any], sql: str) -> str:
    try:
        await connection.execute(sql.encode())
    except psycopg.Error as error:
        return f"{error.sqlstate} {error.diag.message_primary}"
    return "done"


@dataclass
class Memory(Side):
    """The server in memory."""

    server: Server = field(kw_only=True)

    async def run(self, sql: str, database: str) -> str:
        place = self.server.database_or_none(database)
        if place is None or not place.allows or place.is_invalid:
            return _REFUSED
        backend = Backend(self.server, SUPERUSER, place.oid, SUPERUSER, SUPERUSER)
        self.server.backends.append(backend)
        try:
            execute(backend, sql, None)
        except psycopg.Error as error:
            return f"{error.sqlstate} {error.diag.message_primary}"
        finally:
            backend.end()
        return "done"

    async def hold(self, login: Credential, database: str) -> bool:
        try:
            self.held.append(log_in(self.server, login, database))
        except NotLoggedInError:
            return False
        return True

    async def end_sessions(self) -> None:
        while self.held:
            self.held.pop().end()

    async def catalogs(self) -> list[str]:
        return [str(line) for line in _dumped(self.server, self.names.tail)]


def _dumped(server: Server, tail: str) -> list[Any]:
    catalogs, name = server.catalogs, server.name_of
    lines: list[Any] = [
        (role.name, role.login, role.superuser, role.createdb, role.createrole, role.replication, role.bypassrls,
         role.inherit, role.limit, role.until, role.verifier is not None)
        for role in catalogs.roles.values()
        if tail in role.name
    ]  # fmt: skip
    lines.sort()
    lines += sorted(
        (name(row.role), name(row.member), name(row.grantor), row.admin, row.inherit, row.set)
        for row in catalogs.members
        if tail in name(row.role) or tail in name(row.member)
    )
    settings = []
    for (database, role), values in catalogs.settings.items():
        names = (catalogs.databases[database].name if database else "", name(role) if role else "")
        settings += [(*names, list(values))] if tail in "".join(names) else []
    lines += sorted(settings)
    databases = sorted((known for known in catalogs.databases.values() if tail in known.name), key=lambda of: of.name)
    for known in databases:
        access = None if known.access is None else _text(server, known.access)
        lines.append((known.name, name(known.owner), known.allows, known.limit, known.template, access))
    for known in databases:
        if known.allows and not known.is_invalid:
            public = known.public
            shown = None if public is None else f"{name(public.owner)} {_text(server, public.access or ())}"
            if public is not None and public.access is None:
                shown = f"{name(public.owner)} "
            lines.append(f"{known.name}: {(shown, sorted(known.extensions))}")
    return lines


def _text(server: Server, access: AccessList) -> str:
    letters = {"USAGE": "U", "CREATE": "C", "TEMPORARY": "T", "CONNECT": "c"}
    items = []
    for item in access:
        rights = "".join(
            letter + ("*" if right in item.options else "") for right, letter in letters.items() if right in item.rights
        )
        items.append(f"{server.name_of(item.grantee) if item.grantee else ''}={rights}/{server.name_of(item.grantor)}")
    return "{" + ",".join(items) + "}"


def config_of(server: OnPremServer) -> ProviderConfigSpec:
    """Return the ProviderConfig of both."""
    fields = {
        "host": server.host, "port": server.port, "database": server.database, "adminSecretRef": {"name": "admin"},
        "caBundle": server.authority_pem.decode(),
    }  # fmt: skip
    return msgspec.convert(fields, ProviderConfigSpec)


def secrets_of(server: OnPremServer) -> dict[str, dict[str, str]]:
    """Return the Secrets that it names."""
    return {"admin": {"username": server.username, "password": server.password, "host": server.host}}


async def _dialled(server: OnPremServer, settings: ConnectionSettings, database: str) -> psycopg.AsyncConnection[Any]:
    """Log in at the socket, which costs less than TLS; what is refused is refused as the provider meets it."""
    where = psycopg.conninfo.make_conninfo(
        server.server.superuser_conninfo(database),
        user=settings.admin.username,
        password=settings.admin.password,
        options=_OPTIONS,
    )
    try:
        return await psycopg.AsyncConnection.connect(where, autocommit=True)
    except psycopg.OperationalError:
        return (await open_session(settings, database))._connection


@asynccontextmanager
async def real(server: OnPremServer, names: Names) -> AsyncIterator[Real]:
    """Yield PostgreSQL with the provider connected to it; what the sequence made there goes with it."""
    record: list[str] = []

    async def dial(settings: ConnectionSettings, database: str) -> Session:
        session = _RealSession(await _dialled(server, settings, database), settings.answer_s)
        session.record, session.names = record, names
        return session

    async with connect(config_of(server), secrets_of(server), transport=Transport(dial=dial)) as cloud:
        side = Real(names, cloud, record, server=server, superuser=await _superuser(server))
        try:
            yield side
        finally:
            with suppress(psycopg.Error):
                await side.clear()
            await side.superuser.close()


@asynccontextmanager
async def memory(server: OnPremServer, names: Names) -> AsyncIterator[Memory]:
    """Yield a new server in memory with the provider connected to it."""
    record: list[str] = []
    made = new_server(random.Random(names.tail), verifier(server.password, b"salt of a model."))  # noqa: S311 - the same draws each time
    line = Line()
    line.patience_s = 0.0
    listener = Listener(made, line)

    async def dial(settings: ConnectionSettings, database: str) -> Session:
        opened = await listener.dial(settings, database)
        assert isinstance(opened, MemorySession)
        session = _MemorySession(opened.backend, line)
        session.record, session.names = record, names
        return session

    async with connect(config_of(server), secrets_of(server), transport=Transport(dial, listener.log_in)) as cloud:
        yield Memory(names, cloud, record, server=made)
