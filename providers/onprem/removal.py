"""Taking a database away, and nothing else: what is owned elsewhere stays, DROP OWNED is never used.

Impure: it speaks SQL.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import psycopg

from providers.external.client import Fence
from providers.external.sql.session import Session
from providers.external.sql.text import literal, quoted
from providers.onprem import catalog
from providers.onprem.names import Names, retired_name
from providers.onprem.session import Sessions
from providers.onprem.statements import disable
from runtime.errors import Blocked

_LOOKS = 40
_MOST_NAMES = 100
_PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Doomed:
    """What is taken away; `oid` is None when only the rest of an interrupted create or delete is left.

    `invalid`: a DROP DATABASE was cut off, and nothing but another one is taken.
    """

    names: Names
    tags: dict[str, str]
    oid: str | None
    invalid: bool = False


async def drop(sessions: Sessions, session: Session, doomed: Doomed, fence: Fence) -> None:
    """Drop the database, then its logins and its owner role, then the row; each step may be a repetition."""
    database = doomed.names.database
    await _claim(session, doomed, "dropping", fence)
    if doomed.oid is not None:
        if not doomed.invalid:
            await _close(sessions, session, doomed, fence)
        await session.change(f"DROP DATABASE {quoted(database)}", fence)
    for role in (*doomed.names.logins, doomed.names.owner):
        await _drop_role(session, role, fence)
    await session.change(catalog.FORGET, fence, {**doomed.tags, "database": database})


async def retire(sessions: Sessions, session: Session, doomed: Doomed, date: str, fence: Fence) -> None:
    """Switch the logins off, close the database, rename it, and keep it with its row."""
    database = doomed.names.database
    if doomed.invalid:
        text = (
            f"database {database} is invalid, as a DROP DATABASE of it was cut off; only the policy Delete can end it"
        )
        raise Blocked("BackupImpossible", text)
    await _claim(session, doomed, "retiring", fence)
    await _close(sessions, session, doomed, fence)
    kept = await _free_name(session, database, date)
    await session.change(f"ALTER DATABASE {quoted(database)} RENAME TO {quoted(kept)}", fence)
    await finish_retiring(session, doomed, fence)


async def finish_retiring(session: Session, doomed: Doomed, fence: Fence) -> None:
    """Bring the row to the name that the database has by now; also after a crash between the two."""
    await session.change(catalog.RETIRE, fence, {**doomed.tags, "database": doomed.names.database})


async def _claim(session: Session, doomed: Doomed, state: str, fence: Fence) -> None:
    rows = await session.change(
        catalog.DOOM, fence,
        {**doomed.tags, "database": doomed.names.database, "state": state, "oid": doomed.oid},
    )  # fmt: skip
    if not rows:
        raise Blocked(
            "DeleteBlocked",
            f"no row of fairlead.ownership names database {doomed.names.database}, with its oid, as this resource's;"
            " nothing was removed. Restore the table, or delete the resource with the policy Orphan and drop the"
            " database by hand",
        )


async def _free_name(session: Session, database: str, date: str) -> str:
    names = [retired_name(database, date, number) for number in range(_MOST_NAMES)]
    taken = {name for (name,) in await session.rows(catalog.NAMES, {"names": names})}
    for name in names:
        if name not in taken:
            return name
    raise Blocked("DeleteBlocked", f"the names {names[0]} to {names[-1]} are all taken; rename or drop one of them")


async def _close(sessions: Sessions, session: Session, doomed: Doomed, fence: Fence) -> None:
    database, present = doomed.names.database, await _present(session, doomed.names.logins)
    # An open transaction of the tenant may hold the very rows that shut it out: its sessions go first.
    await end_sessions(session, present, fence)
    await _roll_back_prepared(sessions, session, doomed, fence)
    await session.change(f"ALTER DATABASE {quoted(database)} ALLOW_CONNECTIONS false", fence)
    for login in present:
        await session.change(disable(login).sql, fence)
    await end_sessions(session, present, fence)
    users: list[str] = []
    for _ in range(_LOOKS):
        # Workers of the server itself, as autovacuum's, have no user: the server ends them by itself.
        users = [str(user) for (user,) in await session.rows(catalog.BUSY, {"database": database})]
        if not users:
            return
        await asyncio.sleep(_PAUSE_SECONDS)
    raise Blocked(
        "DeleteBlocked", f"sessions are still open in database {database}: {', '.join(users)[:200]}; end them"
    )


async def _roll_back_prepared(sessions: Sessions, session: Session, doomed: Doomed, fence: Fence) -> None:
    """End the prepared transactions of the tenant, which keep a database from going and can be ended only within it."""
    database, names = doomed.names.database, doomed.names
    prepared = [(str(gid), str(owner)) for gid, owner in await session.rows(catalog.PREPARED, {"database": database})]
    if not prepared:
        return
    ours = [(gid, owner) for gid, owner in prepared if owner in {names.owner, *names.logins}]
    if len(ours) < len(prepared):
        strangers = ", ".join(f"{gid} of {owner}" for gid, owner in prepared if (gid, owner) not in ours)[:200]
        text = f"prepared transactions of others are in database {database}: {strangers}; ROLLBACK PREPARED them there"
        raise Blocked("DeleteBlocked", text)
    # Closed before by a deletion that met them later; its logins are off.
    await session.change(f"ALTER DATABASE {quoted(database)} ALLOW_CONNECTIONS true", fence)
    async with sessions.inside(database, f"end the prepared transactions of database {database}") as inside:
        for gid, owner in ours:
            await session.change(f"GRANT {quoted(owner)} TO CURRENT_USER WITH INHERIT FALSE, SET TRUE", fence)
            await inside.change(f"SET ROLE {quoted(owner)}", fence)
            await inside.change(f"ROLLBACK PREPARED {literal(gid)}", fence)
            await inside.rows("RESET ROLE")


async def _present(session: Session, roles: tuple[str, ...]) -> tuple[str, ...]:
    rows = await session.rows(catalog.ROLES, {"roles": list(roles)})
    return tuple(str(name) for (name,) in rows)


async def end_sessions(session: Session, logins: tuple[str, ...], fence: Fence) -> None:
    """End the sessions of these logins, as each of them: the administrator has no right over others' sessions."""
    for login in logins:
        await session.change(f"GRANT {quoted(login)} TO CURRENT_USER WITH INHERIT FALSE, SET TRUE", fence)
        await session.change(f"SET ROLE {quoted(login)}", fence)
        try:
            await session.change(catalog.TERMINATE, fence, {"login": login})
        finally:
            await session.rows("RESET ROLE")


async def _drop_role(session: Session, role: str, fence: Fence) -> None:
    try:
        await session.change(f"DROP ROLE IF EXISTS {quoted(role)}", fence)
    except psycopg.errors.DependentObjectsStillExist:
        # Another tenant named this role in a grant of its own: it must not hold our deletion up.
        await session.change(disable(role).sql, fence)
