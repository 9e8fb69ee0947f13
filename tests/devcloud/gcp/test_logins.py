"""The simulated Cloud SQL with real databases: its wire for instances and users, psycopg for what is in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from devcloud import addresses
from devcloud.addresses import Lease
from devcloud.gcp.databases import CLOUD_SQL
from devcloud.gcp.server import Options, serving
from devcloud.simulator import databases
from devcloud.simulator.databases import discard, open_databases
from tests.devcloud.gcp.conftest import QUICK, Cloud, Json, cloud_of, query

pytestmark = pytest.mark.postgres

HERE = {"authorizedNetworks": [{"name": "here", "value": "127.0.0.0/8"}]}


@asynccontextmanager
async def cloud_in(folder: Path, lease: Lease) -> AsyncIterator[Cloud]:
    """Run a Cloud SQL with databases for the length of a block; its files stay."""
    options = databases.Options(folder=folder / "databases", octet=lease.octet)
    async with (
        open_databases(CLOUD_SQL, options) as opened,
        serving(Options(durations=QUICK, databases=opened, state=folder / "state.json")) as served,
    ):
        yield await asyncio.to_thread(cloud_of, served)


@pytest.fixture
def lease(tmp_path: Path) -> Iterator[Lease]:
    lease = addresses.lease()
    yield lease
    discard(tmp_path / "databases")
    lease.release()


@pytest.fixture
async def cloud(tmp_path: Path, lease: Lease) -> AsyncIterator[Cloud]:
    async with cloud_in(tmp_path, lease) as cloud:
        yield cloud


async def created(cloud: Cloud, name: str = "db-1", **settings: Any) -> Json:
    return await asyncio.to_thread(lambda: cloud.created(name, **{"ipConfiguration": HERE, **settings}))


async def done(cloud: Cloud, method: str, path: str, body: object = None) -> Json:
    return await asyncio.to_thread(lambda: cloud.done(cloud.call(method, path, body)))


async def rows(
    shown: Json, folder: Path, user: str, password: str, *statements: str, database: str = "postgres"
) -> Any:
    """Return the last statement's rows in a session that trusts the instance's own authority."""
    trust = folder / "trust.pem"
    await asyncio.to_thread(trust.write_text, shown["serverCaCert"]["cert"])
    async with await psycopg.AsyncConnection.connect(
        host=shown["ipAddresses"][0]["ipAddress"],
        port=5432,
        user=user,
        password=password,
        dbname=database,
        sslmode="verify-ca",
        sslrootcert=str(trust),
        connect_timeout=30,
        autocommit=True,
    ) as session:
        result: Any = []
        for statement in statements:
            cursor = await session.execute(statement)
            result = await cursor.fetchall() if cursor.description else []
        return result


async def test_user_that_owns_something_and_database_with_sessions_are_not_deleted(
    cloud: Cloud, tmp_path: Path
) -> None:
    shown = await created(cloud)
    await done(cloud, "POST", "instances/db-1/users", {"name": "app", "password": "app-pass"})
    await rows(shown, tmp_path, "app", "app-pass", "CREATE SCHEMA AUTHORIZATION app")
    path = f"instances/db-1/users{query(name='app')}"

    operation = await asyncio.to_thread(lambda: cloud.ended(cloud.call("DELETE", path)))

    (error,) = operation["error"]["errors"]
    assert error["message"].startswith("failed to delete user app: . ")
    assert "cannot be dropped because some objects depend on it" in error["message"]
    assert await rows(shown, tmp_path, "app", "app-pass", "SELECT 1") == [(1,)]

    # Neither is a database with sessions.
    await done(cloud, "POST", "instances/db-1/databases", {"name": "app"})
    path = "instances/db-1/databases/app"
    await asyncio.to_thread((tmp_path / "trust.pem").write_text, shown["serverCaCert"]["cert"])
    async with await psycopg.AsyncConnection.connect(
        host=shown["ipAddresses"][0]["ipAddress"],
        user="postgres",
        password="first-pass",
        dbname="app",
        sslmode="verify-ca",
        sslrootcert=str(tmp_path / "trust.pem"),
    ):
        operation = await asyncio.to_thread(lambda: cloud.ended(cloud.call("DELETE", path)))

    assert "is being accessed by other users" in operation["error"]["errors"][0]["message"]
    await done(cloud, "DELETE", path)
