"""The databases behind simulated instances: each cloud's administrator logs in over verified TLS, with its rights."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio
from psycopg import sql

from devcloud import accounts, addresses
from devcloud.aws.databases import RDS
from devcloud.aws.state import extensions as of_rds
from devcloud.azure.databases import AZURE
from devcloud.azure.state import extensions as of_azure
from devcloud.gcp.databases import CLOUD_SQL, dropped_database, dropped_user, made_database, made_user
from devcloud.gcp.state import extensions as of_cloud_sql
from devcloud.postgres.access import Access
from devcloud.postgres.extensions import THERE
from devcloud.postgres.instance import StatementError
from devcloud.postgres.majors import MAJORS, Major
from devcloud.postgres.programs import reachable_programs
from devcloud.simulator.databases import Databases, Options, discard, open_databases
from devcloud.simulator.dataplane import Address, Database

pytestmark = [pytest.mark.postgres, pytest.mark.asyncio(loop_scope="module")]

PASSWORD = "first-pass"
ENGINES = {"rds_superuser": RDS, "azure_pg_admin": AZURE, "cloudsqlsuperuser": CLOUD_SQL}
OFFERED = {
    "rds_superuser": of_rds.offered_in,
    "azure_pg_admin": of_azure.offered_in,
    "cloudsqlsuperuser": of_cloud_sql.offered_in,
}
OF_PYTHON = {"hstore_plpython3u", "jsonb_plpython3u", "ltree_plpython3u"}
RIGHTS = """SELECT rolsuper, rolcreatedb, rolcreaterole, pg_has_role(%s, 'MEMBER')
            FROM pg_roles WHERE rolname = current_user"""


@dataclass(frozen=True, slots=True)
class World:
    """The databases of a cloud, and the role of its administrators."""

    databases: Databases
    folder: Path
    role: str

    async def create(self, name: str) -> Address:
        return await self.databases.create(_database(name))

    async def login(self, address: Address, password: str = PASSWORD, **changed: object) -> psycopg.AsyncConnection:
        """Return a session that trusts the authority of the instance."""
        trust = self.folder / "trust.pem"
        await asyncio.to_thread(trust.write_bytes, self.databases.authority_of("db-1"))
        parameters: dict[str, object] = {
            "host": address.host,
            "port": address.port,
            "dbname": "postgres",
            "user": "boss",
            "password": password,
            "sslmode": "verify-full" if self.role != "cloudsqlsuperuser" else "verify-ca",
            "sslrootcert": str(trust),
            "connect_timeout": 30,
        }
        return await psycopg.AsyncConnection.connect(autocommit=True, **parameters | changed)  # type: ignore[arg-type]  # libpq's words

    async def refusal(self, address: Address, password: str = PASSWORD, **changed: object) -> str:
        """Return why a login is refused."""
        with pytest.raises(psycopg.OperationalError) as error:
            await self.login(address, password, **changed)
        return str(error.value)


def _database(name: str, **changed: object) -> Database:
    fields: dict[str, object] = {"resource_id": "db-1", "identifier": name, "port": 5432, "username": "boss",
                                 "password": PASSWORD, "db_name": None, "version": "16"}  # fmt: skip
    return Database(**fields | changed)  # type: ignore[arg-type]  # each of its own type


@pytest_asyncio.fixture(loop_scope="module", params=ENGINES)
async def world(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    lease = addresses.lease()
    async with open_databases(ENGINES[request.param], Options(folder=tmp_path, octet=lease.octet)) as databases:
        yield World(databases, tmp_path, request.param)
    discard(tmp_path)
    lease.release()


async def _value(session: psycopg.AsyncConnection, statement: str) -> object:
    row = await (await session.execute(statement.encode())).fetchone()
    return None if row is None else row[0]


async def test_an_instance_and_its_administrator_are_as_in_the_cloud(world: World) -> None:
    databases, address = world.databases, await world.create("first")
    async with await world.login(address) as session:
        assert session.pgconn.ssl_in_use
        assert await (await session.execute(RIGHTS, (world.role,))).fetchone() == (False, True, True, True)
        await session.execute("CREATE TABLE kept AS SELECT 7 AS number")
        for statement in ("CREATE ROLE rival SUPERUSER", "SELECT rolpassword FROM pg_authid"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                await session.execute(statement.encode())
        # A role has one password; sessions outlive its change.
        await databases.set_password("db-1", "second-pass")
        assert await _value(session, "SELECT 1") == 1
        assert "authentication failed" in await world.refusal(address)
        assert "no encryption" in await world.refusal(address, "second-pass", sslmode="disable")
        await databases.reboot("db-1")
        with pytest.raises(psycopg.OperationalError):
            await session.execute("SELECT 1")
    await databases.stop("db-1")
    assert "Connection refused" in await world.refusal(address, "second-pass")
    await databases.start("db-1")
    moved = await databases.move(_database("renamed", port=5433))
    assert moved.host != address.host
    async with await world.login(moved, "second-pass") as session:
        assert await _value(session, "SELECT number FROM kept") == 7

    await databases.set_access("db-1", Access(networks=("192.0.2.0/24",)))
    shut_out = "timeout" if world.role == "cloudsqlsuperuser" else "no pg_hba.conf entry"
    assert shut_out in await world.refusal(moved, "second-pass", connect_timeout=2)
    await databases.set_access("db-1", Access(requires_tls=False))
    async with await world.login(moved, "second-pass", sslmode="disable") as session:
        assert not session.pgconn.ssl_in_use


@pytest.mark.parametrize("major", MAJORS)
async def test_extensions_of_a_server_are_those_of_its_package(major: Major) -> None:
    tree = reachable_programs(accounts.choose(), major).parent

    assert {control.stem for control in tree.rglob("*.control")} - OF_PYTHON == THERE[major]


@pytest.mark.parametrize(
    ("world", "version"),
    [("rds_superuser", "16"), ("azure_pg_admin", "17"), ("cloudsqlsuperuser", "18")],
    indirect=["world"],
)
async def test_extensions_that_a_cloud_offers_are_created_by_its_administrator(world: World, version: str) -> None:
    databases, offered = world.databases, OFFERED[world.role](version)
    address = await databases.create(_database("extended", version=version))
    async with await world.login(address) as session:
        assert str(await _value(session, "SHOW server_version")).startswith(f"{version}.")
        names = await (await session.execute("SELECT name FROM pg_available_extensions ORDER BY name")).fetchall()
        assert tuple(name for (name,) in names) == tuple(sorted(offered))
        for name in offered:
            await session.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {} CASCADE").format(sql.Identifier(name)))
        assert await _value(session, "SELECT count(*) >= 0 FROM pg_stat_statements")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match='extension "postgis" is not available'):
            await session.execute("CREATE EXTENSION postgis")


@pytest.mark.parametrize("world", ["cloudsqlsuperuser"], indirect=True)
async def test_authority_that_was_added_signs_after_the_rotation(world: World) -> None:
    address, databases = await world.create("prepared"), world.databases
    before = databases.authority_of("db-1")
    await databases.add_authority("db-1")
    added = databases.next_authority_of("db-1")
    await databases.rotate_authority("db-1")

    assert (databases.authority_of("db-1"), databases.next_authority_of("db-1"), added != before) == (added, b"", True)
    async with await world.login(address):
        pass
    # The certificate names the instance and not its address.
    assert "does not match host name" in await world.refusal(address, sslmode="verify-full")


@pytest.mark.parametrize("world", ["cloudsqlsuperuser"], indirect=True)
async def test_user_that_owns_something_and_database_with_sessions_are_not_dropped(world: World) -> None:
    address, databases = await world.create("owned"), world.databases
    await databases.execute("db-1", [*made_user("app", "app-pass", ()), *made_database("orders")])
    async with await world.login(address, "app-pass", user="app", dbname="orders") as session:
        await session.execute("CREATE SCHEMA AUTHORIZATION app")
        with pytest.raises(StatementError, match="cannot be dropped because some objects depend on it"):
            await databases.execute("db-1", dropped_user("app"))
        with pytest.raises(StatementError, match="is being accessed by other users"):
            await databases.execute("db-1", dropped_database("orders"))


@pytest.mark.parametrize("world", ["rds_superuser"], indirect=True)
async def test_copy_in_a_newer_version_and_an_upgrade_keep_roles_rows_and_extensions(world: World) -> None:
    databases, address = world.databases, await world.create("old")
    async with await world.login(address) as session:
        await session.execute("CREATE EXTENSION pg_trgm; CREATE TABLE kept AS SELECT 7 AS number; CREATE ROLE other")
        address = await databases.clone(_database("new", resource_id="db-2", version="17.1"), "db-1")
    for version in ("17", "18"):
        await databases.upgrade("db-2", f"{version}.1")
        async with await world.login(address) as session:
            assert str(await _value(session, "SHOW server_version")).startswith(f"{version}.")
            query = "SELECT number + similarity('a', 'a') FROM kept, pg_roles WHERE rolname = 'other'"
            assert await _value(session, query) == 8
