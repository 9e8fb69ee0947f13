"""A developer's home: a claim, and a row of data in its database by which that database is known again."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from tests.support.api import JsonObject
from tests.support.kinds import CLAIM, DATABASE, SECRET, condition, in_trouble, is_ready
from tests.support.kinds import claim as new_claim
from tests.support.system import System
from tests.support.waiting import eventually

_TABLE = sql.Identifier("keepsake")
LIMIT_S = 90.0


@dataclass(frozen=True, slots=True)
class Home:
    """One claim and what was planted in its database.

    Attributes:
        row: The text that only this database holds.
        database: The database's full name on the server.
        oid: Its object id: another database under the same name has another one.
    """

    system: System
    namespace: str
    name: str
    row: str
    database: str
    oid: str

    @property
    def path(self) -> str:
        return CLAIM.path(self.namespace, self.name)

    # What the claim sees

    async def rows(self) -> list[str]:
        """Read through the published Secret, where the claim lives now."""
        async with await self.system.login(self.namespace, self.name) as connection:
            cursor = await connection.execute(sql.SQL("SELECT note FROM {}").format(_TABLE))
            return [str(note) for (note,) in await cursor.fetchall()]

    async def until_home(self) -> JsonObject:
        """Wait until the claim is Ready and in sync, and prove that the row is found there."""
        claim = await self.system.until(CLAIM, self.namespace, self.name, is_ready, limit_s=LIMIT_S)
        assert await self.rows() == [self.row]
        return claim

    async def until_stalled(self, *reasons: str) -> JsonObject:
        """Wait until the claim is Stalled for one of these reasons."""

        def stalled(claim: JsonObject) -> bool:
            stalled = condition(claim, "Stalled")
            return stalled.get("status") == "True" and stalled["reason"] in reasons

        return await self.system.until(CLAIM, self.namespace, self.name, stalled, limit_s=LIMIT_S)

    async def until_out_of_sync(self, reason: str) -> JsonObject:
        """Wait until the claim says Synced=False for this reason."""
        return await self.system.until(CLAIM, self.namespace, self.name, in_trouble(reason), limit_s=LIMIT_S)

    # Its child

    async def children(self) -> list[JsonObject]:
        """Return the managed resources that say they are this claim's."""
        items = await self.system.api.items(DATABASE.path(self.namespace))
        # One whose annotations were just taken away is nobody's for a moment.
        names = [item["metadata"].get("annotations", {}).get("fairlead.dev/claim-name") for item in items]
        return [item for item, name in zip(items, names, strict=True) if name == self.name]

    async def child(self) -> JsonObject:
        children = await self.children()
        assert len(children) == 1, [child["metadata"]["name"] for child in children]
        return children[0]

    async def secret_path(self, suffix: str) -> str:
        """Return the path of the claim's Secret `connection`, or of its child's Secret of another name."""
        name = self.name if suffix == "connection" else (await self.child())["metadata"]["name"]
        return SECRET.path(self.namespace, f"{name}-{suffix}")

    # Its end

    async def delete(self, *, propagation: str = "Background") -> None:
        """Ask for the claim's deletion and wait until it and its child are gone."""
        await self.system.delete(CLAIM, self.namespace, self.name, propagation=propagation)
        assert await self.children() == []

    async def secret(self, suffix: str) -> JsonObject | None:
        name = self.name if suffix == "connection" else (await self.child())["metadata"]["name"]
        return await self.system.api.find(SECRET.path(self.namespace, f"{name}-{suffix}"))

    # What the server has, seen by its superuser

    def drops(self) -> int:
        """Count the DROP DATABASE statements for this database in the server's log, also those that failed."""
        return self._count("DROP", self.system.sql.statements())

    def drops_carried_out(self) -> int:
        """Count the DROP DATABASE statements for this database that the server did not refuse (as `in use`)."""
        return self._count("DROP", self.system.sql.carried_out())

    def creates(self) -> int:
        """Count the CREATE DATABASE statements for this database in the server's log, also those that failed."""
        return self._count("CREATE", self.system.sql.statements())

    def _count(self, verb: str, statements: list[str]) -> int:
        pattern = re.compile(rf'{verb}\s+DATABASE\b[^;]*"?\b{re.escape(self.database)}\b', re.IGNORECASE)
        return sum(bool(pattern.search(statement)) for statement in statements)

    async def names(self) -> list[str]:
        """Return the names of the databases that are the planted one, whatever it is called now."""
        rows = await self._execute("SELECT oid::text, datname FROM pg_catalog.pg_database")
        return [str(name) for oid, name in rows if oid == self.oid]

    async def rows_behind(self) -> list[str]:
        """Read the row as superuser, wherever the planted database is now, connections allowed or not.

        A database whose drop has begun has no rows: its `datconnlimit` is -2 (PostgreSQL manual, pg_database).
        """
        names = await self.names()
        assert len(names) == 1, f"database {self.database} (oid {self.oid}) is gone"
        if (names[0],) in await self._execute("SELECT datname FROM pg_catalog.pg_database WHERE datconnlimit = -2"):
            return []
        open_ones = await self._execute("SELECT datname FROM pg_catalog.pg_database WHERE datallowconn")
        is_shut = (names[0],) not in open_ones
        if is_shut:
            await self._execute(f'ALTER DATABASE "{names[0]}" ALLOW_CONNECTIONS true')
        rows = await self.system.server.server.execute("SELECT note FROM keepsake", database=names[0])
        if is_shut:
            await self._execute(f'ALTER DATABASE "{names[0]}" ALLOW_CONNECTIONS false')
        return [str(note) for (note,) in rows]

    async def logins(self) -> list[str]:
        """Return the roles of this claim that may log in."""
        stem = _stem(self.namespace, self.name)
        rows = await self._execute("SELECT rolname FROM pg_catalog.pg_roles WHERE rolcanlogin ORDER BY 1")
        return [str(name) for (name,) in rows if str(name).startswith(stem)]

    async def untouched(self) -> None:
        """Prove that the planted database is there under its name, with its row, and was never dropped or made anew."""
        assert await self.names() == [self.database]
        assert await self.rows_behind() == [self.row]
        assert (self.creates(), self.drops()) == (1, 0)

    async def _execute(self, statement: str) -> list[tuple[object, ...]]:
        return await self.system.server.server.execute(statement)


def _stem(namespace: str, name: str) -> str:
    return re.sub(r"[^a-z0-9]", "_", f"{namespace}_{name}")


def claim(namespace: str, name: str, **spec: Any) -> JsonObject:
    """Return a small claim whose database and login are named after it."""
    stem = _stem(namespace, name)
    return new_claim(namespace, name, **({"databaseName": stem, "username": stem} | spec))


async def move_in(system: System, body: JsonObject) -> Home:
    """Create a claim, wait for its database, and plant a row."""
    meta = body["metadata"]
    await system.create(CLAIM, body)
    await system.until(CLAIM, meta["namespace"], meta["name"], is_ready, limit_s=LIMIT_S)
    return await furnish(system, meta["namespace"], meta["name"])


async def furnish(system: System, namespace: str, name: str) -> Home:
    """Plant a row in the database of a claim that is Ready."""
    row = f"{namespace}/{name} {secrets.token_hex(8)}"
    async with await system.login(namespace, name) as connection:
        await connection.execute(sql.SQL("CREATE TABLE {} AS SELECT {} AS note").format(_TABLE, sql.Literal(row)))
        cursor = await connection.execute(
            "SELECT datname, oid::text FROM pg_catalog.pg_database WHERE datname = current_database()"
        )
        [(database, oid)] = await cursor.fetchall()
    return Home(system, namespace, name, row, str(database), str(oid))


async def poke(system: System, path: str) -> None:
    """Ask the controllers to look at an object now."""
    token = {"fairlead.dev/reconcile-requested-at": secrets.token_hex(4)}
    await system.api.merge(path, {"metadata": {"annotations": token}})


async def until_gone(system: System, path: str) -> None:
    async def gone() -> bool:
        return await system.api.find(path) is None

    await eventually(gone, f"{path} is gone", limit_s=LIMIT_S)
