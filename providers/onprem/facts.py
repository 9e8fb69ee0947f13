"""What the server's catalogs say about one database, and the rules it must meet whatever its spec says. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from providers.external.observation import Change
from providers.external.sql.roles import Membership
from providers.onprem.names import Names

PRIVILEGES = ("CONNECT", "CREATE", "TEMPORARY")
TO_SET = "granted for SET ROLE"
_INVALID = -2  # DATCONNLIMIT_INVALID_DB


class Row(msgspec.Struct, frozen=True):
    """Our row in fairlead.ownership; `oid` is None until the database was made, `incarnation` the row's random.

    `kept_rights` are those of others that an adoption left to them, each a text of `right_text`.
    """

    database: str
    installation: str
    identity: str
    claim: str
    state: str
    oid: str | None = None
    incarnation: str = ""
    namespace: str = ""
    name: str = ""
    resource: str = ""
    kept_as: str | None = None
    kept_rights: tuple[str, ...] = ()


class Grant(msgspec.Struct, frozen=True):
    """One privilege on the database."""

    grantee: str
    privilege: str
    grantable: bool = False


class Database(msgspec.Struct, frozen=True):
    """One row of pg_database with its privileges and settings."""

    name: str
    oid: str
    owner: str
    allows: bool
    limit: int
    template: bool
    encoding: str
    collate: str | None = None
    ctype: str | None = None
    grants: tuple[Grant, ...] = ()
    settings: tuple[str, ...] = ()

    @property
    def is_invalid(self) -> bool:
        """Whether a DROP DATABASE of it was cut off: it takes nothing but another one (manual, "DROP DATABASE")."""
        return self.limit == _INVALID


class Role(msgspec.Struct, frozen=True):
    """One role with its attributes; `version` is the row's xmin.

    `settings` are those of ALTER ROLE ... SET, `set_in` the databases for which it has settings of their own: any role
    may have some in any database, be it allowed to connect there or not.
    """

    name: str
    version: str
    login: bool
    superuser: bool
    createdb: bool
    createrole: bool
    replication: bool
    bypassrls: bool
    inherit: bool
    limit: int
    until: str | None = None
    settings: tuple[str, ...] = ()
    set_in: tuple[str, ...] = ()


class Inside(msgspec.Struct, frozen=True):
    """What only a session within the database sees; `schema_owner` is None when schema public is gone."""

    schema_owner: str | None = None
    extensions: tuple[str, ...] = ()


class Facts(msgspec.Struct, frozen=True):
    """All of it; `inside` is None while no session can be opened there, which is not the same as nothing there.

    `elsewhere` is the name of a database that has our oid and not our name. `kept` are rights of others that are no
    difference, each a text of `right_text`.
    """

    admin: str
    server_version: str
    major: int
    row: Row | None = None
    database: Database | None = None
    roles: tuple[Role, ...] = ()
    memberships: tuple[Membership, ...] = ()
    inside: Inside | None = None
    elsewhere: str | None = None
    kept: tuple[str, ...] = ()

    @property
    def renamed(self) -> str:
        """Return the name that somebody gave the database, empty where it has its own or was retired by us."""
        retiring = self.row is not None and self.row.state == "retiring"
        return "" if retiring or self.database is not None else self.elsewhere or ""

    @property
    def is_row_of_database(self) -> bool:
        """Whether row and database belong together: by the oid; before it is recorded, where our login made it.

        The row is written before CREATE DATABASE: in between somebody else may make a database of that name.
        """
        if self.row is None or self.database is None:
            return False
        is_made_by_us = self.row.oid is None and self.database.owner == self.admin
        return is_made_by_us or self.row.oid == self.database.oid

    def role(self, name: str) -> Role | None:
        """Return a role by name, None when the server has none."""
        return next((role for role in self.roles if role.name == name), None)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the rules are made for: `active` is the login that is published, `retiring` one in its grace.

    Both are among the names by rule. Where nobody remembers which login was published, `active` is empty: each stays
    as it is.
    """

    names: Names
    active: str
    retiring: str = ""
    allowed_settings: frozenset[str] = frozenset()

    @property
    def working(self) -> frozenset[str]:
        """The logins that may log in and belong to the owner role; no other role ever gets either."""
        return frozenset(self.names.logins) & {self.active, self.retiring}


@dataclass(frozen=True, slots=True)
class Revocation(Change):
    """A membership that is to be revoked; `grantor` gave it."""

    grantor: str = ""


def broken_rules(wanted: Wanted, facts: Facts) -> tuple[Change, ...]:
    """Return each difference from the rules; none for a database that is as it must be."""
    database = facts.database
    if database is None:
        return ()
    changes: list[Change] = []
    changes += _ownership(facts, database)
    changes += _grants(wanted, database)
    changes += _roles(wanted, facts)
    changes += _members(wanted, facts)
    changes += _settings(wanted, database)
    if facts.inside is not None and facts.inside.schema_owner != wanted.names.owner:
        changes.append(Change(("schemas", "public", "owner"), wanted.names.owner, facts.inside.schema_owner))
    return tuple(change for change in changes if change.want is not None or right_text(change) not in facts.kept)


def right_text(change: Change) -> str:
    """Return how a right that somebody has is written down: its path as JSON, as names may hold any character."""
    return msgspec.json.encode(change.path).decode()


def kept_rights(wanted: Wanted, facts: Facts, *, is_ours: bool, is_recorded: bool) -> tuple[str, ...]:
    """Return which rights of others are no difference, as texts of `right_text`.

    Of a database that is ours those that its adoption recorded; of any other all that it has, as nobody asked to have
    them taken. `is_recorded`: the resource knows this database as its own although the row is lost; where the name
    shows that it was made here, it had none.
    """
    if is_ours and facts.row is not None:
        return facts.row.kept_rights
    if is_recorded and wanted.names.database == wanted.names.owner:
        return ()
    return tuple(right_text(change) for change in foreign_rights(wanted, facts))


def foreign_rights(wanted: Wanted, facts: Facts) -> tuple[Change, ...]:
    """Return the revocations that the rules ask for: rights of strangers on the database or in its owner role."""
    changes = broken_rules(wanted, msgspec.structs.replace(facts, kept=()))
    return tuple(change for change in changes if change.want is None and _is_foreign(change, wanted))


def _is_foreign(change: Change, wanted: Wanted) -> bool:
    match change.path:
        case ("grants", *_):
            return True
        case ("members", role, member):
            return role == wanted.names.owner and member not in wanted.names.logins
        case _:
            return False


def _ownership(facts: Facts, database: Database) -> Iterable[Change]:
    row = facts.row
    if row is None or row.oid != database.oid:
        yield Change(("ownership", "oid"), database.oid, row.oid if row else None)
    if row is None or row.state != "ready":
        yield Change(("ownership", "state"), "ready", row.state if row else None)
    if database.owner != facts.admin:
        yield Change(("database", "owner"), facts.admin, database.owner)
    if not database.allows:
        yield Change(("database", "allowConnections"), want=True, have=False)
    if database.template:
        yield Change(("database", "isTemplate"), want=False, have=True)


def _grants(wanted: Wanted, database: Database) -> Iterable[Change]:
    owner = wanted.names.owner
    held = {grant.privilege: grant for grant in database.grants if grant.grantee == owner}
    for privilege in PRIVILEGES:
        if privilege not in held:
            yield Change(("grants", owner, privilege), "granted", None)
        elif held[privilege].grantable:
            yield Change(("grants", owner, privilege), "granted", "granted with grant option")
    for grant in database.grants:
        if grant.grantee not in {owner, database.owner}:
            yield Change(("grants", grant.grantee, grant.privilege), None, "granted")


def _roles(wanted: Wanted, facts: Facts) -> Iterable[Change]:
    names = wanted.names
    yield from _role(names.owner, facts.role(names.owner), login=False, settings=())
    for login in names.logins:
        role, is_working = facts.role(login), login in wanted.working
        # A login that has no password yet is the password's matter, not the rules'.
        if role is None and login != wanted.active:
            continue
        if role is not None and not wanted.active:
            is_working = role.login
        yield from _role(login, role, login=is_working, settings=(f"role={names.owner}",))


def _role(name: str, role: Role | None, *, login: bool, settings: tuple[str, ...]) -> Iterable[Change]:
    if role is None:
        yield Change(("roles", name), "present", None)
        return
    rules: tuple[tuple[str, bool, bool], ...] = (
        ("login", login, role.login),
        ("superuser", False, role.superuser),
        ("createdb", False, role.createdb),
        ("createrole", False, role.createrole),
        ("replication", False, role.replication),
        ("bypassrls", False, role.bypassrls),
        ("inherit", True, role.inherit),
    )
    for attribute, want, have in rules:
        if want != have:
            yield Change(("roles", name, attribute), want, have)
    if role.limit != -1:
        yield Change(("roles", name, "connectionLimit"), -1, role.limit)
    if role.until not in {None, "infinity"}:
        yield Change(("roles", name, "validUntil"), "infinity", role.until)
    if tuple(sorted(role.settings)) != settings:
        yield Change(("roles", name, "settings"), settings, role.settings)
    for database in role.set_in:
        yield Change(("roles", name, "settingsIn", database), None, "set")


def _members(wanted: Wanted, facts: Facts) -> Iterable[Change]:
    names, admin = wanted.names, facts.admin
    ours = {names.owner, *names.logins}
    members = wanted.working if wanted.active else frozenset(names.logins)
    rightful = set()
    for grant in facts.memberships:
        if grant.member == admin and grant.role in ours:
            continue
        if grant.role == names.owner and grant.member in members and not grant.admin:
            if grant.inherit and grant.set:
                rightful.add(grant.member)
            continue
        path = ("members", grant.role, grant.member)
        yield Revocation(path, None, f"granted by {grant.grantor}", grantor=grant.grantor)
    seats = [grant for grant in facts.memberships if (grant.role, grant.member) == (names.owner, admin)]
    if facts.role(names.owner) is not None and not any(grant.set for grant in seats):
        # What ALTER SCHEMA ... OWNER TO asks of the administrator.
        yield Change(("members", names.owner, admin), TO_SET, None)
    for login in sorted(wanted.working - rightful):
        if facts.role(login) is not None or login == wanted.active:
            yield Change(("members", names.owner, login), "granted", None)


def _settings(wanted: Wanted, database: Database) -> Iterable[Change]:
    for name, value in parsed_settings(database.settings).items():
        if name not in wanted.allowed_settings:
            yield Change(("settings", name), None, value)


def parsed_settings(settings: Iterable[str]) -> dict[str, str]:
    """Split `name=value` texts of pg_db_role_setting; names mean the same in either case (TimeZone, timezone)."""
    pairs = (setting.split("=", 1) for setting in settings)
    return {name.lower(): value for name, value in pairs}
