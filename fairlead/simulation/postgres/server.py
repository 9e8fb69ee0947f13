"""A PostgreSQL 16 in memory: what its catalogs hold, who is connected, and what follows from memberships."""

from __future__ import annotations

import random
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final

from fairlead.simulation.postgres.access_lists import PUBLIC, SCHEMA_RIGHTS, Item
from fairlead.simulation.postgres.refusals import NO_DATABASE, NO_OBJECT, refusal
from fairlead.simulation.postgres.rows import Database, Member, Owned, Role, Schema

SUPERUSER, DATABASE_OWNER, SIGNAL_BACKEND = 10, 6171, 4200
ADMIN, ADMIN_DATABASE = "fairlead_admin", "fairlead"
VERSION, NUMBER = "16.14", 160014
_FIRST_OID: Final = 16384
# Counted apart from the oids, so that no version is ever taken for an oid.
_FIRST_VERSION: Final = 1_000_000


@dataclass(slots=True)
class Catalogs:
    """All that a transaction changes; settings are those of pg_db_role_setting, by database and role."""

    roles: dict[int, Role] = field(default_factory=dict)
    databases: dict[int, Database] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)
    settings: dict[tuple[int, int], tuple[str, ...]] = field(default_factory=dict)
    ownership: dict[str, Owned] | None = None
    last_oid: int = _FIRST_OID
    last_version: int = _FIRST_VERSION


@dataclass(slots=True)
class Server:
    """One server: its catalogs, and who is connected."""

    chance: random.Random
    identifier: str = "7300000000000000001"
    catalogs: Catalogs = field(default_factory=Catalogs)
    backends: list[Backend] = field(default_factory=list)
    is_in_recovery: bool = False

    def new_oid(self) -> int:
        """Return an oid that nothing had before."""
        self.catalogs.last_oid += 1
        return self.catalogs.last_oid

    def new_version(self) -> int:
        """Return the number of a transaction."""
        self.catalogs.last_version += 1
        return self.catalogs.last_version

    def new_random(self) -> str:
        """Return what a row of fairlead.ownership gets by default."""
        return f"{self.chance.getrandbits(48):012x}"

    def role(self, name: str) -> Role:
        """Return a role by name. Raises where there is none."""
        role = self.role_or_none(name)
        if role is None:
            raise refusal(NO_OBJECT, f'role "{name}" does not exist')
        return role

    def role_or_none(self, name: str) -> Role | None:
        """Return a role by name."""
        return next((role for role in self.catalogs.roles.values() if role.name == name), None)

    def database(self, name: str) -> Database:
        """Return a database by name. Raises where there is none."""
        database = self.database_or_none(name)
        if database is None:
            raise refusal(NO_DATABASE, f'database "{name}" does not exist')
        return database

    def database_or_none(self, name: str) -> Database | None:
        """Return a database by name."""
        return next((database for database in self.catalogs.databases.values() if database.name == name), None)

    def name_of(self, role: int) -> str:
        """Return the name of a role, in the server's words where it is gone."""
        known = self.catalogs.roles.get(role)
        return f"unknown (OID={role})" if known is None else known.name

    def connected_to(self, database: int) -> list[Backend]:
        """Return who is connected to a database."""
        return [backend for backend in self.backends if backend.database == database]

    def setting(self, database: int, role: int, name: str) -> str | None:
        """Return the value that a setting has in one row of pg_db_role_setting."""
        lines = self.catalogs.settings.get((database, role), ())
        return next((line.partition("=")[2] for line in lines if line.startswith(f"{name}=")), None)


@dataclass(slots=True, eq=False)
class Backend:
    """One connection: who logged in, who it acts as now, and who it acts as after RESET ROLE."""

    server: Server
    session_user: int
    database: int
    user: int
    reset_user: int
    has_ended: bool = False

    @property
    def is_superuser(self) -> bool:
        """Whether it acts as one."""
        return self._is_superuser(self.user)

    def _is_superuser(self, role: int) -> bool:
        known = self.server.catalogs.roles.get(role)
        return known is not None and known.superuser

    @property
    def acting(self) -> Role:
        """The role that it acts as."""
        return self.server.catalogs.roles[self.user]

    def end(self) -> None:
        """End it."""
        self.has_ended = True
        if self in self.server.backends:
            self.server.backends.remove(self)

    def has(self, attribute: str) -> bool:
        """Return whether it has the attribute that allows something, as createdb; superusers have all."""
        return self.is_superuser or bool(getattr(self.acting, attribute))

    def inherits(self, role: int) -> bool:
        """Return whether it has the rights of a role (has_privs_of_role)."""
        return self.is_superuser or role in self.inherited(self.user)

    def inherited(self, member: int) -> list[int]:
        """Return the roles whose rights somebody has, those that are nearest first."""
        return list(self._walk(member, "inherit"))

    def may_set(self, role: int, *, of_session: bool = False) -> bool:
        """Return whether it, or who logged in, may act as a role (member_can_set_role)."""
        member = self.session_user if of_session else self.user
        return self._is_superuser(member) or role in list(self._walk(member, "set"))

    def administers(self, role: int) -> bool:
        """Return whether it has ADMIN on a role, by any membership."""
        return self.is_superuser or self._administrator(self.user, role, "") is not None

    def grantor_of(self, role: int) -> int | None:
        """Return in whose name it grants memberships of a role: the bootstrap superuser, or who has ADMIN on it."""
        return SUPERUSER if self.is_superuser else self.best_administrator(self.user, role)

    def best_administrator(self, member: int, role: int) -> int | None:
        """Return who of those whose rights somebody has is nearest and has ADMIN on a role."""
        return self._administrator(member, role, "inherit")

    def belongs(self, member: int, role: int) -> bool:
        """Return whether somebody is a member of a role in any way, and not by being a superuser."""
        return role in list(self._walk(member, ""))

    def _administrator(self, member: int, role: int, by: str) -> int | None:
        if member == role:
            return None
        for known in self._walk(member, by):
            rows = self.server.catalogs.members
            if any(row.member == known and row.role == role and row.admin for row in rows):
                return known
        return None

    def _walk(self, member: int, by: str) -> Iterator[int]:
        """Yield a role and those that it belongs to by an option of the membership, or by any without one."""
        known = [member]
        owner = self.server.catalogs.databases[self.database].owner if self.database else 0
        for role in known:
            yield role
            rows = sorted(self.server.catalogs.members, key=lambda row: (row.member, row.role, row.grantor))
            for row in rows:
                if row.member == role and row.role not in known and (not by or getattr(row, by)):
                    known.append(row.role)
            if role == owner and DATABASE_OWNER not in known:
                known.append(DATABASE_OWNER)


def snapshot(server: Server) -> Catalogs:
    """Return a copy of what a transaction may change."""
    return deepcopy(server.catalogs)


def new_server(chance: random.Random, verifier: str) -> Server:
    """Return a server as the platform team hands it over (devcloud.onprem)."""
    server = Server(chance)
    roles, databases = server.catalogs.roles, server.catalogs.databases
    roles[SUPERUSER] = Role(
        SUPERUSER, "postgres", login=True, superuser=True, createdb=True, createrole=True, replication=True,
        bypassrls=True,
    )  # fmt: skip
    for oid, name in ((DATABASE_OWNER, "pg_database_owner"), (SIGNAL_BACKEND, "pg_signal_backend")):
        roles[oid] = Role(oid, name)
    admin = Role(server.new_oid(), ADMIN, login=True, createdb=True, createrole=True, verifier=verifier)
    roles[admin.oid] = admin
    for oid, name in ((1, "template1"), (4, "template0"), (5, "postgres")):
        databases[oid] = Database(oid, name, SUPERUSER, allows=oid != 4, template=oid != 5)
    own = server.new_oid()
    databases[own] = Database(own, ADMIN_DATABASE, admin.oid)
    for database in databases.values():
        database.public, database.extensions = first_schema(), {"plpgsql": SUPERUSER}
        database.access = tuple(item for item in database.whole_access if item.grantee)
    return server


def first_schema() -> Schema:
    """Return schema public of a new database."""
    usage = frozenset({"USAGE"})
    items = (Item(DATABASE_OWNER, DATABASE_OWNER, SCHEMA_RIGHTS), Item(PUBLIC, DATABASE_OWNER, usage))
    return Schema(DATABASE_OWNER, items)
