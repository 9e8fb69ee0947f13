"""Two logins of an application in one owner role of a server: their names, what keeps them true, and the SQL. Pure.

The administrator of a managed server is no superuser, and since PostgreSQL 16 no role administers itself: who makes a
role has ADMIN OPTION of it, and grants itself INHERIT and SET as well (manual, "CREATE ROLE", "GRANT").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from providers.external.client import Target
from providers.external.observation import Change, SpecT
from providers.external.sql.roles import MEMBERSHIPS, Membership
from providers.external.sql.text import literal, quoted

OLDEST_MAJOR = 16
PRIVILEGES = ("CONNECT", "CREATE", "TEMPORARY")
_LONGEST_STEM = 55
_RIGHTS = ("createdb", "createrole")

ROLES_QUERY = f"""
SELECT pg_catalog.json_build_object(
    'admin', current_user,
    'roles', (SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
        'name', r.rolname, 'login', r.rolcanlogin, 'createdb', r.rolcreatedb, 'createrole', r.rolcreaterole,
        'settings', (SELECT coalesce(pg_catalog.json_agg(c.line), '[]') FROM pg_catalog.pg_db_role_setting s,
            LATERAL pg_catalog.unnest(s.setconfig) AS c(line) WHERE s.setrole = r.oid AND s.setdatabase = 0))
            ORDER BY r.rolname), '[]')
        FROM pg_catalog.pg_roles r WHERE r.rolname = ANY(%(roles)s)),
    {MEMBERSHIPS},
    'privileges', (SELECT coalesce(pg_catalog.json_agg(a.privilege_type), '[]')
        FROM pg_catalog.pg_database d, LATERAL pg_catalog.aclexplode(d.datacl) a
        WHERE d.datname = pg_catalog.current_database() AND pg_catalog.pg_get_userbyid(a.grantee) = %(owner)s),
    'schema_owner', (SELECT pg_catalog.pg_get_userbyid(n.nspowner) FROM pg_catalog.pg_namespace n
        WHERE n.nspname = 'public'),
    'owned', (SELECT pg_catalog.count(*) FROM pg_catalog.pg_shdepend s
        WHERE s.deptype = 'o' AND s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass
        AND s.refobjid = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)
        AND s.dbid = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())
        AND s.classid <> 'pg_catalog.pg_user_mapping'::pg_catalog.regclass),
    'databases', (SELECT coalesce(pg_catalog.json_agg(d.datname ORDER BY d.datname), '[]')
        FROM pg_catalog.pg_database d WHERE pg_catalog.pg_get_userbyid(d.datdba) = current_user),
    'stands_in', EXISTS (SELECT FROM pg_catalog.pg_db_role_setting s
        JOIN pg_catalog.pg_roles r ON r.oid = s.setrole JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase
        WHERE r.rolname = current_user AND d.datname = pg_catalog.current_database()))
"""  # noqa: S608 - a constant of ours
END_SESSIONS = """
SELECT pg_catalog.pg_terminate_backend(a.pid) FROM pg_catalog.pg_stat_activity a
WHERE a.usename = %(login)s AND a.pid <> pg_catalog.pg_backend_pid()
"""


@dataclass(frozen=True, slots=True)
class Names:
    """`owner` cannot log in and owns what the application makes; `logins` are its members and alternate.

    All follow from the name of the administrator, as each server has its own: what is restored has them already.
    """

    administrator: str
    owner: str
    logins: tuple[str, str]


class Role(msgspec.Struct, frozen=True):
    """One role as the server has it; `settings` are those of ALTER ROLE ... SET."""

    name: str
    login: bool
    createdb: bool
    createrole: bool
    settings: tuple[str, ...] = ()


class Roles(msgspec.Struct, frozen=True):
    """What the administrator sees in the application's database.

    `privileges` are the owner role's on the database, `owned` counts what the administrator itself owns there,
    `databases` are those that it owns; `stands_in`: its sessions there begin with a setting of their own.
    """

    admin: str
    roles: tuple[Role, ...] = ()
    memberships: tuple[Membership, ...] = ()
    privileges: tuple[str, ...] = ()
    schema_owner: str | None = None
    owned: int = 0
    databases: tuple[str, ...] = ()
    stands_in: bool = False

    def role(self, name: str) -> Role | None:
        """Return a role by name, None when the server has none."""
        return next((role for role in self.roles if role.name == name), None)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be true: `working` are the logins that may log in; `is_moving`: the administrator still works, too.

    `database` is the application's; empty while there is none, when roles alone can be made.
    """

    names: Names
    database: str
    working: frozenset[str]
    is_moving: bool = False


def names_of(administrator: str) -> Names:
    """Return the names by rule."""
    stem = administrator[:_LONGEST_STEM]
    return Names(administrator, f"{stem}_owner", (f"{stem}_a", f"{stem}_b"))


def logins_of(target: Target[SpecT], administrator: str, *, may_alternate: bool) -> tuple[str, str]:
    """Return the logins that alternate, or twice the administrator where it is the only one.

    A server keeps to one until a rotation moves it, and to two from then on, whatever the ProviderConfig says later.
    One that was taken over, or whose status is lost, begins with what it may have: one.
    """
    names = names_of(administrator)
    if target.active in names.logins:
        return names.logins
    if not (target.alternates and may_alternate):
        return names.administrator, names.administrator
    if target.active == names.administrator:
        return names.administrator, names.logins[0]
    return (names.administrator, names.administrator) if target.incarnation else names.logins


def wanted_of(target: Target[SpecT], administrator: str, database: str, *, setting: str = "") -> Wanted:
    """Return what is to be true of a server's roles; `setting` is the login whose password is being set."""
    names = names_of(administrator)
    working = {target.active, target.retiring, target.coming, setting} & set(names.logins)
    is_moving = names.administrator in {target.active, target.retiring}
    return Wanted(names, database, frozenset(working), is_moving)


def is_shared(target: Target[SpecT], administrator: str) -> bool:
    """Return whether applications may still come as the administrator, whose password is theirs until then."""
    return administrator in {target.active, target.retiring}


def broken(wanted: Wanted, seen: Roles) -> tuple[Change, ...]:
    """Return each difference from what is to be true."""
    return tuple(change for change, _ in _differences(wanted, seen))


def in_order(wanted: Wanted, seen: Roles) -> str:
    """Return the statements that end all differences, to be run at once as one transaction; empty for none."""
    return "; ".join(sql for _, group in _differences(wanted, seen) for sql in group)


def password(login: str, verifier: str, names: Names) -> str:
    """Return the statement that gives a login its SCRAM verifier.

    Raises ValueError for a role that is no login by rule.
    """
    _refuse_stranger(login, names)
    return f"ALTER ROLE {quoted(login)} LOGIN PASSWORD {literal(verifier)}"


def retirement(login: str, names: Names) -> str:
    """Return the statements that take a login away; raises ValueError for a role that is no login by rule."""
    _refuse_stranger(login, names)
    return "; ".join(_shut(login, names))


def _refuse_stranger(login: str, names: Names) -> None:
    if login not in names.logins:
        raise ValueError(f"{login!r} is no login of this server by rule")


def _shut(login: str, names: Names) -> tuple[str, ...]:
    role = quoted(login)
    return f"ALTER ROLE {role} NOLOGIN PASSWORD NULL", f"REVOKE {quoted(names.owner)} FROM {role}"


_Difference = tuple[Change, tuple[str, ...]]


def _differences(wanted: Wanted, seen: Roles) -> Iterator[_Difference]:
    """Yield each difference with its statements, in an order in which each finds what it names."""
    yield from _owner_role(wanted, seen)
    for login in wanted.names.logins:
        yield from _login(wanted, seen, login)
    yield from _foreign_memberships(wanted, seen)
    if wanted.database:
        yield from _property(wanted, seen)


def _owner_role(wanted: Wanted, seen: Roles) -> Iterator[_Difference]:
    names, owner = wanted.names, quoted(wanted.names.owner)
    role = seen.role(names.owner)
    if role is None:
        yield Change(("roles", names.owner), "present", None), (f"CREATE ROLE {owner} NOLOGIN",)
    elif role.login:
        yield Change(("roles", names.owner, "login"), want=False, have=True), (f"ALTER ROLE {owner} NOLOGIN",)
    yield from _rights(role)
    seats = [seat for seat in seen.memberships if (seat.role, seat.member) == (names.owner, seen.admin)]
    if not (any(seat.set for seat in seats) and any(seat.inherit for seat in seats)):
        grant = f"GRANT {owner} TO CURRENT_USER WITH INHERIT TRUE, SET TRUE"
        yield Change(("members", names.owner, seen.admin), "granted", None), (grant,)
    for privilege in PRIVILEGES if wanted.database else ():
        if privilege not in seen.privileges:
            grant = f"GRANT {privilege} ON DATABASE {quoted(wanted.database)} TO {owner}"
            yield Change(("grants", names.owner, privilege), "granted", None), (grant,)


def _rights(role: Role | None) -> Iterator[_Difference]:
    """Yield the rights that no role of an application's has."""
    for right in _RIGHTS:
        if role is not None and getattr(role, right):
            statement = f"ALTER ROLE {quoted(role.name)} NO{right.upper()}"
            yield Change(("roles", role.name, right), want=False, have=True), (statement,)


def _login(wanted: Wanted, seen: Roles, login: str) -> Iterator[_Difference]:
    owner, name, role = quoted(wanted.names.owner), quoted(login), seen.role(login)
    is_working = login in wanted.working
    if not is_working:
        if role is not None and role.login:
            yield Change(("roles", login, "login"), want=False, have=True), _shut(login, wanted.names)
        return
    if role is None:
        yield Change(("roles", login), "present", None), (f"CREATE ROLE {name} LOGIN",)
    elif not role.login:
        yield Change(("roles", login, "login"), want=True, have=False), (f"ALTER ROLE {name} LOGIN",)
    yield from _rights(role)
    setting = (f"role={wanted.names.owner}",)
    if role is None or role.settings != setting:
        put = (f"ALTER ROLE {name} RESET ALL", f"ALTER ROLE {name} SET role TO {owner}")
        yield Change(("roles", login, "settings"), setting, None if role is None else role.settings), put
    if not any(_is_rightful(wanted, grant) and grant.member == login for grant in seen.memberships):
        grant = f"GRANT {owner} TO {name} WITH ADMIN FALSE, INHERIT TRUE, SET TRUE"
        yield Change(("members", wanted.names.owner, login), "granted", None), (grant,)


def _is_rightful(wanted: Wanted, grant: Membership) -> bool:
    is_member = grant.role == wanted.names.owner and grant.member in wanted.working
    return is_member and grant.inherit and grant.set and not grant.admin


def _foreign_memberships(wanted: Wanted, seen: Roles) -> Iterator[_Difference]:
    """Yield memberships that nobody is to have: of an application's role in another one, or of others in its roles."""
    ours = {wanted.names.owner, *wanted.names.logins}
    for grant in seen.memberships:
        if (grant.member == seen.admin and grant.role in ours) or _is_rightful(wanted, grant):
            continue
        is_shut = grant.role == wanted.names.owner and grant.member in wanted.names.logins
        if is_shut and grant.grantor == seen.admin and not grant.admin:
            # Taken with the login, or granted anew above.
            continue
        path = ("members", grant.role, grant.member)
        revoke = f"REVOKE {quoted(grant.role)} FROM {quoted(grant.member)} GRANTED BY {quoted(grant.grantor)}"
        yield Change(path, None, f"granted by {grant.grantor}"), (revoke,)


def _property(wanted: Wanted, seen: Roles) -> Iterator[_Difference]:
    """Yield what belongs to another than the owner role: what the administrator made while it was the one login."""
    owner = quoted(wanted.names.owner)
    if seen.owned:
        # The databases themselves stay the administrator's: their owner may drop them, and set what its sessions obey.
        back = (f"ALTER DATABASE {quoted(name)} OWNER TO CURRENT_USER" for name in seen.databases)
        yield Change(("owned",), 0, seen.owned), (f"REASSIGN OWNED BY CURRENT_USER TO {owner}", *back)
    if seen.schema_owner not in {None, wanted.names.owner}:
        put = f"ALTER SCHEMA public OWNER TO {owner}"
        yield Change(("schemas", "public", "owner"), wanted.names.owner, seen.schema_owner), (put,)
    stand_in = f"ALTER ROLE {quoted(seen.admin)} IN DATABASE {quoted(wanted.database)}"
    if wanted.is_moving and not seen.stands_in:
        # Whoever still comes as the administrator makes what the next login can use.
        yield Change(("roles", seen.admin, "settings"), "set", None), (f"{stand_in} SET role TO {owner}",)
    if not wanted.is_moving and seen.stands_in:
        yield Change(("roles", seen.admin, "settings"), None, "set"), (f"{stand_in} RESET ALL",)


def is_of_roles(change: Change) -> bool:
    """Return whether a change is made by SQL, and not by the cloud's API."""
    return change.path[0] in {"roles", "members", "grants", "owned", "schemas"}


def logins_in(roles: Iterable[str], names: Names) -> tuple[str, ...]:
    """Return those of the names that are logins by rule."""
    return tuple(login for login in names.logins if login in set(roles))
