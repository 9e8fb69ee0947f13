"""The SQL that makes a change true. Pure: a change in, statements out, in an order that never opens what is not closed.

Names are quoted and texts escaped here; nothing of a tenant's reaches the server unquoted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from providers.external.observation import Change, Value
from providers.external.ownership import Owner
from providers.external.sql.text import literal, quoted
from providers.onprem.facts import PRIVILEGES, TO_SET, Revocation, Wanted
from providers.onprem.models import PostgresDatabaseParameters
from providers.onprem.names import Names, is_owner_by_rule

SETTABLE = frozenset({
    "array_nulls", "bytea_output", "constraint_exclusion", "cursor_tuple_fraction", "datestyle",
    "default_statistics_target", "default_text_search_config", "default_transaction_deferrable",
    "default_transaction_isolation", "effective_cache_size", "effective_io_concurrency", "extra_float_digits",
    "from_collapse_limit", "geqo", "geqo_threshold", "gin_fuzzy_search_limit", "gin_pending_list_limit",
    "hash_mem_multiplier", "idle_in_transaction_session_timeout", "idle_session_timeout", "intervalstyle", "jit",
    "jit_above_cost", "join_collapse_limit", "lock_timeout", "maintenance_work_mem", "max_parallel_workers_per_gather",
    "plan_cache_mode", "random_page_cost", "seq_page_cost", "statement_timeout", "temp_buffers", "timezone", "work_mem",
    "xmlbinary", "xmloption",
})  # fmt: skip
"""Settings of a database that can harm nobody else: no search_path, no role, no preload, no logging."""

# Rights that no role of a database's ever gets here: they are taken away, never given.
_RIGHTS = ("superuser", "createdb", "createrole", "replication", "bypassrls")

# First what closes, then what repairs, last what opens and what says that all is done.
_RANK = {
    ("ownership", "oid"): 0,
    ("database", "owner"): 1,
    ("database", "isTemplate"): 1,
    ("grants",): 3,
    ("roles",): 3,
    ("members",): 4,
    ("settings",): 5,
    ("parameters",): 5,
    ("connectionLimit",): 5,
    ("schemas",): 6,
    ("extensions",): 7,
    ("database", "allowConnections"): 8,
    ("ownership", "state"): 9,
}


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement; `inside` runs it in the tenant's database, else in the administrator's own."""

    sql: str
    inside: bool = False


# A missing owner role: what follows names it.
_RANK_OF_OWNER_ROLE = 2
_CLOSING = frozenset({"grants", "members", "roles"})
_OPENING = ("database", "allowConnections")


def _rank(change: Change, owner: str) -> int:
    if change.path == ("roles", owner):
        return _RANK_OF_OWNER_ROLE
    return _RANK.get(change.path, _RANK.get(change.path[:1], 5))


def by_change(changes: Iterable[Change], wanted: Wanted) -> tuple[tuple[Change, tuple[Statement, ...]], ...]:
    """Return each change with what to run for it, in order; what the ownership table needs has no statements."""
    ordered = sorted(changes, key=lambda change: _rank(change, wanted.names.owner))
    return tuple((change, tuple(_statements(change, wanted))) for change in ordered)


def statements(changes: Iterable[Change], wanted: Wanted) -> tuple[Statement, ...]:
    """Return what to run for these changes, in order; what the ownership table needs is not among them."""
    return tuple(statement for _, group in by_change(changes, wanted) for statement in group)


def is_opening(change: Change) -> bool:
    """Return whether a change lets connections in."""
    return change.path == _OPENING


def is_closing(change: Change) -> bool:
    """Return whether a change takes a right away: nothing is opened while one is refused."""
    return change.path[0] in _CLOSING and (change.want is None or change.want is False)


def _statements(  # noqa: C901 - one arm for each kind of change
    change: Change, wanted: Wanted
) -> Iterable[Statement]:
    database = quoted(wanted.names.database)
    match change.path:
        case ("connectionLimit",):
            yield Statement(f"ALTER DATABASE {database} CONNECTION LIMIT {_number(change.want)}")
        case ("database", "allowConnections"):
            yield Statement(f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")
        case ("database", "isTemplate"):
            yield Statement(f"ALTER DATABASE {database} IS_TEMPLATE false")
        case ("database", "owner"):
            yield Statement(f"ALTER DATABASE {database} OWNER TO CURRENT_USER")
        case ("parameters" | "settings", name):
            yield Statement(_setting(database, name, change.want))
        case ("grants", grantee, privilege):
            yield Statement(_grant(database, grantee, privilege, change))
        case ("roles", name, *attribute):
            yield from _role(name, tuple(attribute), change, wanted)
        case ("members", role, member):
            yield Statement(_member(role, member, change, wanted))
        case ("extensions", name):
            yield Statement(f"CREATE EXTENSION IF NOT EXISTS {quoted(name)} SCHEMA public", inside=True)
        case ("schemas", "public", "owner"):
            yield from _schema(change, wanted)
        case _:
            return


def _number(value: Value) -> int:
    if not isinstance(value, int):
        raise TypeError("a connection limit is a number")
    return value


def _setting(database: str, name: str, value: Value) -> str:
    if value is None:
        return f"ALTER DATABASE {database} RESET {quoted(name)}"
    return f"ALTER DATABASE {database} SET {quoted(name)} TO {literal(str(value))}"


def _grant(database: str, grantee: str, privilege: str, change: Change) -> str:
    if privilege not in PRIVILEGES:
        raise ValueError(f"a database has no privilege {privilege!r}")
    role = "PUBLIC" if grantee == "PUBLIC" else quoted(grantee)
    if change.want is None:
        return f"REVOKE {privilege} ON DATABASE {database} FROM {role}"
    if change.have is not None:
        return f"REVOKE GRANT OPTION FOR {privilege} ON DATABASE {database} FROM {role}"
    return f"GRANT {privilege} ON DATABASE {database} TO {role}"


def _role(name: str, attribute: tuple[str, ...], change: Change, wanted: Wanted) -> Iterable[Statement]:
    role, owner = quoted(name), wanted.names.owner
    if name != owner and name not in wanted.names.logins:
        raise ValueError(f"{name!r} is no role of database {wanted.names.database}")
    match attribute:
        case ():
            yield from _new_role(name, wanted)
        case ("settings",):
            yield Statement(f"ALTER ROLE {role} RESET ALL")
            if name != owner:
                yield Statement(f"ALTER ROLE {role} SET role TO {quoted(owner)}")
        case ("settingsIn", database):
            yield Statement(f"ALTER ROLE {role} IN DATABASE {quoted(database)} RESET ALL")
        case ("connectionLimit",):
            yield Statement(f"ALTER ROLE {role} CONNECTION LIMIT -1")
        case ("validUntil",):
            yield Statement(f"ALTER ROLE {role} VALID UNTIL 'infinity'")
        case (word,):
            yield _attribute(name, word, wanted, is_wanted=bool(change.want))
        case _:
            raise ValueError(f"a role has no attribute {'.'.join(attribute)!r}")


def _attribute(name: str, word: str, wanted: Wanted, *, is_wanted: bool) -> Statement:
    match word:
        case "login" if not is_wanted:
            return disable(name)
        case "login" if name in wanted.working:
            return Statement(f"ALTER ROLE {quoted(name)} LOGIN")
        case "inherit" if is_wanted:
            return Statement(f"ALTER ROLE {quoted(name)} INHERIT")
        case _ if word in _RIGHTS and not is_wanted:
            return Statement(f"ALTER ROLE {quoted(name)} NO{word.upper()}")
        case _:
            raise ValueError(f"role {name!r} never gets {word!r}")


def _new_role(name: str, wanted: Wanted) -> Iterable[Statement]:
    role, owner = quoted(name), wanted.names.owner
    if name == owner:
        yield Statement(f"CREATE ROLE {role} NOLOGIN")
        # ADMIN comes with the creation; SET is what ALTER SCHEMA ... OWNER TO asks for.
        yield Statement(f"GRANT {role} TO CURRENT_USER WITH INHERIT FALSE, SET TRUE")
        yield from (Statement(f"GRANT {privilege} ON DATABASE {quoted(wanted.names.database)} TO {role}")
                    for privilege in PRIVILEGES)  # fmt: skip
        return
    yield Statement(f"CREATE ROLE {role} {'LOGIN' if name in wanted.working else 'NOLOGIN'}")
    yield Statement(f"ALTER ROLE {role} SET role TO {quoted(owner)}")


def _member(role: str, member: str, change: Change, wanted: Wanted) -> str:
    owner = wanted.names.owner
    if isinstance(change, Revocation):
        return f"REVOKE {quoted(role)} FROM {quoted(member)} GRANTED BY {quoted(change.grantor)}"
    if role == owner and change.want == TO_SET:
        return f"GRANT {quoted(owner)} TO CURRENT_USER WITH INHERIT FALSE, SET TRUE"
    if role != owner or member not in wanted.working:
        raise ValueError(f"{member!r} never becomes a member of {role!r}")
    return _membership(member, owner)


def _membership(login: str, owner: str) -> str:
    return f"GRANT {quoted(owner)} TO {quoted(login)} WITH ADMIN FALSE, INHERIT TRUE, SET TRUE"


def _schema(change: Change, wanted: Wanted) -> Iterable[Statement]:
    owner = quoted(wanted.names.owner)
    if change.have is None:
        yield Statement(f"CREATE SCHEMA IF NOT EXISTS public AUTHORIZATION {owner}", inside=True)
        return
    if change.have in wanted.names.logins:
        # Made by a login that stepped out of the owner role: only as that login may it be given back.
        yield Statement(f"GRANT {quoted(str(change.have))} TO CURRENT_USER WITH INHERIT FALSE, SET TRUE")
        yield Statement(f"SET ROLE {quoted(str(change.have))}", inside=True)
        yield Statement(f"ALTER SCHEMA public OWNER TO {owner}", inside=True)
        yield Statement("RESET ROLE", inside=True)
        return
    is_former = isinstance(change.have, str) and is_owner_by_rule(change.have)
    if is_former:
        # Made here for a database that was orphaned or retired since; its ADMIN came with its creation.
        yield Statement(f"GRANT {quoted(str(change.have))} TO CURRENT_USER WITH INHERIT TRUE, SET TRUE", inside=True)
    yield Statement(f"ALTER SCHEMA public OWNER TO {owner}", inside=True)
    if is_former:
        yield Statement(f"GRANT {quoted(str(change.have))} TO CURRENT_USER WITH INHERIT FALSE, SET TRUE", inside=True)


def password_statements(login: str, verifier: str, wanted: Wanted) -> tuple[Statement, ...]:
    """Return what gives a login its password and its place; `verifier` is a SCRAM verifier, never a password.

    Raises ValueError for a role that is no login of this database by rule.
    """
    refuse_stranger(login, wanted.names)
    role, owner = quoted(login), wanted.names.owner
    return (
        Statement(f"ALTER ROLE {role} LOGIN PASSWORD {literal(verifier)}"),
        Statement(_membership(login, owner)),
        Statement(f"ALTER ROLE {role} SET role TO {quoted(owner)}"),
    )


def retirement(login: str, names: Names) -> tuple[Statement, ...]:
    """Return what takes a login away, its place in the owner role too; raises ValueError for any other role."""
    refuse_stranger(login, names)
    return disable(login), Statement(f"REVOKE {quoted(names.owner)} FROM {quoted(login)}")


def refuse_stranger(login: str, names: Names) -> None:
    """Raise ValueError unless the name is a login of this database by rule."""
    if login not in names.logins:
        raise ValueError(f"{login!r} is no login of database {names.database}")


def shut_logins(changes: Iterable[Change], names: Names) -> tuple[str, ...]:
    """Return the roles that these changes switch off: their sessions are to be ended."""
    paths = {change.path for change in changes if change.want is False}
    return tuple(role for role in (*names.logins, names.owner) if ("roles", role, "login") in paths)


def disable(login: str) -> Statement:
    """Return what takes a login away without taking its role."""
    return Statement(f"ALTER ROLE {quoted(login)} NOLOGIN PASSWORD NULL")


def create_database(spec: PostgresDatabaseParameters, names: Names, *, template: str | None) -> Statement:
    """Return the CREATE DATABASE: nobody can connect before the rest is in place."""
    parts = [f"CREATE DATABASE {quoted(names.database)} TEMPLATE {quoted(template or 'template0')}"]
    for word, value in (("ENCODING", spec.encoding), ("LC_COLLATE", spec.lc_collate), ("LC_CTYPE", spec.lc_ctype)):
        if value is not None:
            parts.append(f"{word} {literal(value)}")
    limit = -1 if spec.connection_limit is None else spec.connection_limit
    parts.append(f"ALLOW_CONNECTIONS false CONNECTION LIMIT {limit}")
    return Statement(" ".join(parts))


def tags_of(owner: Owner) -> dict[str, str]:
    """Return the columns of fairlead.ownership that say whose a database is."""
    return {
        "installation": owner.installation,
        "identity": owner.identity,
        "claim": owner.claim,
        "namespace": owner.namespace,
        "name": owner.name,
        "resource": owner.resource,
    }
