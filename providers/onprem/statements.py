"""The SQL that makes a change true. Pure: a change in, statements out, in an order that never opens what is not closed.

Names are quoted and texts escaped here; nothing of a tenant's reaches the server unquoted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from providers.identity import Owner
from providers.managed import Change, Value
from providers.onprem.facts import PRIVILEGES, TO_SET, Wanted
from providers.onprem.models import PostgresDatabaseParameters
from providers.onprem.names import Names, literal, quoted

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

_ATTRIBUTES = ("login", "superuser", "createdb", "createrole", "replication", "bypassrls", "inherit")

# First what closes, then what repairs, last what opens and what says that all is done.
_RANK = {
    "ownership.oid": 0,
    "database.owner": 1,
    "database.isTemplate": 1,
    "grants": 2,
    "roles": 3,
    "members": 4,
    "settings": 5,
    "parameters": 5,
    "connectionLimit": 5,
    "schemas": 6,
    "extensions": 7,
    "database.allowConnections": 8,
    "ownership.state": 9,
}


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement; `inside` runs it in the tenant's database, else in the administrator's own."""

    sql: str
    inside: bool = False


def _rank(change: Change) -> int:
    return _RANK.get(change.path, _RANK.get(change.path.split(".", 1)[0], 5))


def statements(changes: Iterable[Change], wanted: Wanted) -> tuple[Statement, ...]:
    """Return what to run for these changes, in order; what the ownership table needs is not among them."""
    found: list[Statement] = []
    for change in sorted(changes, key=_rank):
        found += _statements(change, wanted)
    return tuple(found)


def _statements(  # noqa: C901 - one arm for each kind of change
    change: Change, wanted: Wanted
) -> Iterable[Statement]:
    database = quoted(wanted.names.database)
    match change.path.split("."):
        case ["connectionLimit"]:
            yield Statement(f"ALTER DATABASE {database} CONNECTION LIMIT {_number(change.want)}")
        case ["database", "allowConnections"]:
            yield Statement(f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")
        case ["database", "isTemplate"]:
            yield Statement(f"ALTER DATABASE {database} IS_TEMPLATE false")
        case ["database", "owner"]:
            yield Statement(f"ALTER DATABASE {database} OWNER TO CURRENT_USER")
        case ["parameters" | "settings", name]:
            yield Statement(_setting(database, name, change.want))
        case ["grants", *grantee, privilege]:
            yield Statement(_grant(database, ".".join(grantee), privilege, change))
        case ["roles", *_]:
            yield from _role(change, wanted)
        case ["members", role, member]:
            yield Statement(_member(role, member, change, wanted.names))
        case ["extensions", name]:
            yield Statement(f"CREATE EXTENSION IF NOT EXISTS {quoted(name)} SCHEMA public", inside=True)
        case ["schemas", "public", "owner"]:
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


def _role(change: Change, wanted: Wanted) -> Iterable[Statement]:
    name, _, attribute = change.path.removeprefix("roles.").partition(".")
    role, owner = quoted(name), wanted.names.owner
    match attribute:
        case "" if name == owner:
            yield Statement(f"CREATE ROLE {role} NOLOGIN")
            # ADMIN comes with the creation; SET is what ALTER SCHEMA ... OWNER TO asks for.
            yield Statement(f"GRANT {role} TO CURRENT_USER WITH INHERIT FALSE, SET TRUE")
            yield from (Statement(f"GRANT {one} ON DATABASE {quoted(wanted.names.database)} TO {role}")
                        for one in PRIVILEGES)  # fmt: skip
        case "":
            yield Statement(f"CREATE ROLE {role} LOGIN")
            yield Statement(f"ALTER ROLE {role} SET role TO {quoted(owner)}")
        case "settings":
            yield Statement(f"ALTER ROLE {role} RESET ALL")
            if name != owner:
                yield Statement(f"ALTER ROLE {role} SET role TO {quoted(owner)}")
        case _ if attribute.startswith("settingsIn."):
            database = quoted(attribute.removeprefix("settingsIn."))
            yield Statement(f"ALTER ROLE {role} IN DATABASE {database} RESET ALL")
        case "connectionLimit":
            yield Statement(f"ALTER ROLE {role} CONNECTION LIMIT -1")
        case "validUntil":
            yield Statement(f"ALTER ROLE {role} VALID UNTIL 'infinity'")
        case _ if attribute in _ATTRIBUTES:
            yield Statement(f"ALTER ROLE {role} {'' if change.want else 'NO'}{attribute.upper()}")
        case _:
            raise ValueError(f"a role has no attribute {attribute!r}")


def _member(role: str, member: str, change: Change, names: Names) -> str:
    if change.want is None:
        grantor = str(change.have).removeprefix("granted by ")
        return f"REVOKE {quoted(role)} FROM {quoted(member)} GRANTED BY {quoted(grantor)}"
    if change.want == TO_SET:
        return f"GRANT {quoted(names.owner)} TO CURRENT_USER WITH INHERIT FALSE, SET TRUE"
    return f"GRANT {quoted(names.owner)} TO {quoted(member)} WITH ADMIN FALSE, INHERIT TRUE, SET TRUE"


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
    yield Statement(f"ALTER SCHEMA public OWNER TO {owner}", inside=True)


def password_statements(login: str, verifier: str, wanted: Wanted) -> tuple[Statement, ...]:
    """Return what gives a login its password and its place; `verifier` is a SCRAM verifier, never a password."""
    role, owner = quoted(login), quoted(wanted.names.owner)
    return (
        Statement(f"ALTER ROLE {role} LOGIN PASSWORD {literal(verifier)}"),
        Statement(f"GRANT {owner} TO {role} WITH ADMIN FALSE, INHERIT TRUE, SET TRUE"),
        Statement(f"ALTER ROLE {role} SET role TO {owner}"),
    )


def disable(login: str) -> Statement:
    """Return what takes a login away without taking its role."""
    return Statement(f"ALTER ROLE {quoted(login)} NOLOGIN PASSWORD NULL")


def birth(spec: PostgresDatabaseParameters, names: Names, *, template: str | None) -> Statement:
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
