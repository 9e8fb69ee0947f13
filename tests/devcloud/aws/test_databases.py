"""The databases behind simulated RDS instances: real logins over TLS, copies that hold what the source held."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio

from devcloud import addresses
from devcloud.addresses import Lease
from devcloud.aws.databases import RDS
from devcloud.simulator.databases import Databases, Options, discard, open_databases
from devcloud.simulator.dataplane import Address, Database

pytestmark = [pytest.mark.postgres, pytest.mark.asyncio(loop_scope="module")]


@dataclass(frozen=True, slots=True)
class World:
    databases: Databases
    folder: Path
    options: Options

    async def login(self, address: Address, password: str, **changed: object) -> psycopg.AsyncConnection:
        parameters: dict[str, object] = {
            "host": address.host,
            "port": address.port,
            "dbname": "app",
            "user": "boss",
            "password": password,
            "sslmode": "verify-full",
            "sslrootcert": str(self.folder / "rds-ca.crt"),
            "connect_timeout": 30,
        }
        return await psycopg.AsyncConnection.connect(autocommit=True, **parameters | changed)  # type: ignore[arg-type]  # libpq's words


@pytest.fixture(scope="module")
def lease() -> Iterator[Lease]:
    held = addresses.lease()
    yield held
    held.release()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory, lease: Lease) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("rds")
    options = Options(folder=folder, octet=lease.octet)
    async with open_databases(RDS, options) as databases:
        yield World(databases, folder, options)
    discard(folder)


def database(name: str, **changed: object) -> Database:
    fields: dict[str, object] = {
        "resource_id": f"db-{name.upper()}",
        "identifier": name,
        "port": 5432,
        "username": "boss",
        "password": "first-pass",
        "db_name": "app",
        "version": "16.9",
    }
    return Database(**fields | changed)  # type: ignore[arg-type]  # each of its own type


async def value(connection: psycopg.AsyncConnection, statement: str) -> object:
    row = await (await connection.execute(statement.encode())).fetchone()
    return None if row is None else row[0]


async def refused(world: World, address: Address, password: str, **changed: object) -> str:
    with pytest.raises(psycopg.OperationalError) as caught:
        await world.login(address, password, **changed)
    return str(caught.value)


async def test_the_master_user_has_rds_rights_over_verified_tls_and_is_no_superuser(world: World) -> None:
    address = await world.databases.create(database("rights"))

    async with await world.login(address, "first-pass") as session:
        assert session.pgconn.ssl_in_use
        assert await value(session, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
        assert await value(session, "SELECT pg_has_role('rds_superuser', 'MEMBER')") is True
        await session.execute("CREATE ROLE app LOGIN PASSWORD 'app-pass'")
        await session.execute("CREATE DATABASE other OWNER boss")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await session.execute("CREATE ROLE rival SUPERUSER")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await session.execute("SELECT rolpassword FROM pg_authid")
    async with await world.login(address, "app-pass", user="app") as session:
        assert await value(session, "SELECT current_user") == "app"

    assert "no encryption" in await refused(world, address, "first-pass", sslmode="disable")
    for user in ("boss", "app", "nobody", "rdsadmin"):
        assert f'password authentication failed for user "{user}"' in await refused(world, address, "wrong", user=user)


async def test_the_master_user_has_one_password_and_sessions_outlive_its_change(world: World) -> None:
    address = await world.databases.create(database("resets"))
    await world.databases.set_password("db-RESETS", "before-any-login")
    assert "authentication failed" in await refused(world, address, "first-pass")

    async with await world.login(address, "before-any-login") as session:
        await world.databases.set_password("db-RESETS", "second-pass")
        assert await value(session, "SELECT 1") == 1
    assert "authentication failed" in await refused(world, address, "before-any-login")

    async with await world.login(address, "second-pass") as session:
        await session.execute("ALTER ROLE boss PASSWORD 'by-hand-1'")
    async with await world.login(address, "by-hand-1"):
        pass
    assert "authentication failed" in await refused(world, address, "second-pass")


async def test_a_stopped_instance_refuses_and_a_reboot_cuts_sessions_and_keeps_rows(world: World) -> None:
    record = database("states")
    address = await world.databases.create(record)
    async with await world.login(address, "first-pass") as session:
        await session.execute("CREATE TABLE kept AS SELECT 7 AS number")

        await world.databases.reboot("db-STATES")
        with pytest.raises(psycopg.OperationalError):
            await session.execute("SELECT 1")
    async with await world.login(address, "first-pass") as session:
        assert await value(session, "SELECT number FROM kept") == 7

    await world.databases.stop("db-STATES")
    assert "Connection refused" in await refused(world, address, "first-pass")
    await world.databases.start("db-STATES")
    async with await world.login(address, "first-pass") as session:
        assert await value(session, "SELECT number FROM kept") == 7

    elsewhere = await world.databases.move(database("renamed", resource_id="db-STATES", port=5433))
    assert elsewhere.host != address.host
    assert "Connection refused" in await refused(world, address, "first-pass")
    async with await world.login(elsewhere, "first-pass") as session:
        assert await value(session, "SELECT number FROM kept") == 7
