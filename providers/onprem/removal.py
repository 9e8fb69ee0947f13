"""Taking a database away, and nothing else: what is owned elsewhere stays, DROP OWNED is never used."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import psycopg

from providers.cloud import Fence
from providers.onprem import catalog
from providers.onprem.names import Names, quoted, retired_name
from providers.onprem.session import Session
from providers.onprem.statements import disable
from runtime.errors import Blocked, Conflict

_LOOKS = 40
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


async def drop(session: Session, doomed: Doomed, fence: Fence) -> None:
    """Drop the database, then its logins and its owner role, then the row; each step may be a repetition."""
    database = doomed.names.database
    await _claim(session, doomed, "dropping", fence)
    if doomed.oid is not None:
        if not doomed.invalid:
            await _close(session, doomed, fence)
        await session.change(f"DROP DATABASE {quoted(database)}", fence)
    for role in (*doomed.names.logins, doomed.names.owner):
        await _drop_role(session, role, fence)
    await session.change(catalog.FORGET, fence, {**doomed.tags, "database": database})


async def retire(session: Session, doomed: Doomed, date: str, fence: Fence) -> None:
    """Switch the logins off, close the database, rename it, and keep it with its row."""
    database = doomed.names.database
    if doomed.invalid:
        text = (
            f"database {database} is invalid, as a DROP DATABASE of it was cut off; only the policy Delete can end it"
        )
        raise Blocked("BackupImpossible", text)
    await _claim(session, doomed, "retiring", fence)
    await _close(session, doomed, fence)
    kept = retired_name(database, date)
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
        raise Conflict(f"no row of ours names database {doomed.names.database} with this oid; nothing was removed")


async def _close(session: Session, doomed: Doomed, fence: Fence) -> None:
    database, present = doomed.names.database, await _present(session, doomed.names.logins)
    # An open transaction of the tenant may hold the very rows that shut it out: its sessions go first.
    await end_sessions(session, present, fence)
    await session.change(f"ALTER DATABASE {quoted(database)} ALLOW_CONNECTIONS false", fence)
    for login in present:
        await session.change(disable(login).sql, fence)
    await end_sessions(session, present, fence)
    for _ in range(_LOOKS):
        if not await session.rows(catalog.BUSY, {"database": database}):
            return
        await asyncio.sleep(_PAUSE_SECONDS)
    raise Blocked("DeleteBlocked", f"sessions of others are still open in database {database}; end them")


async def _present(session: Session, roles: tuple[str, ...]) -> tuple[str, ...]:
    rows = await session.rows(catalog.ROLES, {"roles": list(roles)})
    return tuple(str(name) for (name,) in rows)


async def end_sessions(session: Session, logins: tuple[str, ...], fence: Fence) -> None:
    """End the sessions of these logins, as each of them: the administrator has no right over others' sessions."""
    for login in logins:
        await session.change(f"GRANT {quoted(login)} TO CURRENT_USER WITH INHERIT FALSE, SET TRUE", fence)
        await session.change(f"SET ROLE {quoted(login)}", fence)
        try:
            await session.rows(catalog.TERMINATE, {"login": login})
        finally:
            await session.rows("RESET ROLE")


async def _drop_role(session: Session, role: str, fence: Fence) -> None:
    try:
        await session.change(f"DROP ROLE IF EXISTS {quoted(role)}", fence)
    except psycopg.errors.DependentObjectsStillExist:
        # Another tenant named this role in a grant of its own: it must not hold our deletion up.
        await session.change(disable(role).sql, fence)
