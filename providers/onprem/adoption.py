"""Making the administrator the owner of a database that is taken over, without loss for the former one.

Impure: it speaks SQL.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import psycopg

from providers.external.client import Fence
from providers.external.observation import Change
from providers.external.sql.session import Session
from providers.external.sql.text import quoted
from providers.onprem.facts import PRIVILEGES, Facts, right_text
from runtime.errors import Terminal

_DATABASE_OWNER = "pg_database_owner"


def former_owner_rights(facts: Facts) -> tuple[Change, ...]:
    """Return what the former owner of a database is granted when the administrator becomes the owner."""
    database = facts.database
    if database is None or database.owner == facts.admin:
        return ()
    return tuple(Change(("grants", database.owner, word), "granted", "as its owner") for word in PRIVILEGES)


async def take_ownership(
    session: Session, inside: AbstractAsyncContextManager[Session], facts: Facts, fence: Fence
) -> tuple[str, ...]:
    """Make the administrator the owner; the former owner keeps what it could do. Return its rights by `right_text`.

    Raises:
        Terminal: `AccessDenied`: only the owner or a superuser can give the database away.
    """
    database = facts.database
    if database is None or database.owner == facts.admin:
        return ()
    former = database.owner
    try:
        if facts.inside is not None and facts.inside.schema_owner == _DATABASE_OWNER:
            async with inside as within:
                await within.change(f"GRANT USAGE, CREATE ON SCHEMA public TO {quoted(former)}", fence)
        # One transaction: nobody remembers the former owner between the two.
        await session.change(
            f"ALTER DATABASE {quoted(database.name)} OWNER TO CURRENT_USER;"
            f" GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {quoted(database.name)} TO {quoted(former)}",
            fence,
        )
    except psycopg.errors.InsufficientPrivilege:
        raise Terminal(
            "AccessDenied",
            f"database {database.name} belongs to {former}, and only {former} or a superuser can give it to"
            f" {facts.admin}; nothing was changed. As superuser: ALTER DATABASE {quoted(database.name)} OWNER TO"
            f" {quoted(facts.admin)}; then GRANT {quoted(former)} what it still needs",
        ) from None
    return tuple(right_text(change) for change in former_owner_rights(facts))
