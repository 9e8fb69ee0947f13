"""The databases behind simulated RDS instances: real logins over TLS, copies that hold what the source held."""

import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio

from devcloud import addresses, daemons
from devcloud.addresses import Lease
from devcloud.aws.databases import RDS
from devcloud.errors import DevcloudError
from devcloud.postgres import server as postgres
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


async def test_a_server_that_is_killed_keeps_what_was_committed_and_so_do_its_copies(world: World) -> None:
    address = await world.databases.create(database("killed"))
    async with await world.login(address, "first-pass") as session:
        await session.execute("CREATE TABLE kept AS SELECT 7 AS number")
        server = postgres.find(world.folder / "instances" / "db-KILLED", 16, superuser="rdsadmin")
        assert server is not None
        # So ends every server whose simulator is killed: at once, and nothing is flushed.
        await daemons.stop(server.identity, number=signal.SIGQUIT)

    copied = await world.databases.clone(database("copied", resource_id="db-COPIED"), "db-KILLED")
    for served_at in (copied, address):
        async with await world.login(served_at, "first-pass") as session:
            assert await value(session, "SELECT number FROM kept") == 7


async def test_an_instance_unreachable_from_the_provider_is_reached_by_applications(world: World) -> None:
    address = await world.databases.create(database("inner"))
    await world.databases.set_unreachable(("inn*",))

    words = await refused(world, address, "first-pass", application_name="fairlead-provider-aws", connect_timeout=2)
    assert "timeout" in words
    async with await world.login(address, "first-pass", application_name="shop"):
        pass
    await world.databases.set_unreachable(())
    async with await world.login(address, "first-pass", application_name="fairlead-provider-aws"):
        pass


async def test_a_snapshot_of_a_running_instance_holds_its_rows_and_outlives_it(world: World) -> None:
    databases = world.databases
    address = await databases.create(database("source"))
    async with await world.login(address, "first-pass") as session:
        await session.execute("CREATE TABLE canary AS SELECT 'alive' AS song")
        await session.execute("CREATE ROLE app LOGIN PASSWORD 'app-pass'")
        await databases.take_snapshot("db-SOURCE", "arn:snap")
        # The copy was taken under an open session, and knows nothing of what came after.
        await session.execute("UPDATE canary SET song = 'later'")
    await databases.copy_snapshot("arn:snap", "arn:copy")
    clone = await databases.clone(database("clone", password="ignored-1"), "db-SOURCE")
    await databases.delete("db-SOURCE")
    await databases.delete_snapshot("arn:snap")

    assert not databases.has_data("db-SOURCE")
    assert "Connection refused" in await refused(world, address, "first-pass")
    async with await world.login(clone, "first-pass") as session:
        assert await value(session, "SELECT song FROM canary") == "later"
    restored = await databases.restore(database("restored", password="ignored-2"), "arn:copy")
    async with await world.login(restored, "app-pass", user="app") as session:
        assert await value(session, "SELECT count(*) FROM pg_tables WHERE tablename = 'canary'") == 1
    async with await world.login(restored, "first-pass") as session:
        assert await value(session, "SELECT song FROM canary") == "alive"
    with pytest.raises(DevcloudError, match="snapshot arn:snap has no data here"):
        await databases.restore(database("twice"), "arn:snap")


async def test_a_stopped_instance_and_one_that_nobody_ever_used_have_snapshots_too(world: World) -> None:
    databases = world.databases
    address = await databases.create(database("asleep"))
    async with await world.login(address, "first-pass") as session:
        await session.execute("CREATE TABLE canary AS SELECT 'asleep' AS song")
    await databases.stop("db-ASLEEP")
    await databases.take_snapshot("db-ASLEEP", "of asleep")
    await databases.create(database("unused"))
    await databases.take_snapshot("db-UNUSED", "of unused")

    awake = await databases.restore(database("awake"), "of asleep")
    async with await world.login(awake, "first-pass") as session:
        assert await value(session, "SELECT song FROM canary") == "asleep"
    fresh = await databases.restore(database("fresh", password="ignored-3"), "of unused")
    async with await world.login(fresh, "first-pass") as session:
        assert await value(session, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0


async def test_a_simulator_that_starts_again_has_the_same_databases_at_the_same_addresses(
    tmp_path: Path, lease: Lease
) -> None:
    # Beyond the addresses of the module's world, in the same /16.
    (tmp_path / "next").write_text("30000")
    options = Options(folder=tmp_path, octet=lease.octet, eager=True)
    async with open_databases(RDS, options) as databases:
        world = World(databases, tmp_path, options)
        address = await databases.create(database("again", version="17.5"))
        async with await world.login(address, "first-pass") as session:
            assert str(await value(session, "SHOW server_version")).startswith("18")
            await session.execute("CREATE TABLE kept AS SELECT 7 AS number")
    async with open_databases(RDS, options) as databases:
        world = World(databases, tmp_path, options)

        # What RDS calls it since an upgrade; the data are as they were.
        assert await databases.create(database("again", version="16.9")) == address
        async with await world.login(address, "first-pass") as session:
            assert await value(session, "SELECT number FROM kept") == 7
        other = await databases.create(database("other"))
        assert other.host != address.host
    async with open_databases(RDS, options) as databases:
        # Of an instance that the simulator no longer shows, only its data are left.
        world = World(databases, tmp_path, options)
        clone = await databases.clone(database("clone"), "db-AGAIN")
        async with await world.login(clone, "first-pass") as session:
            assert await value(session, "SELECT number FROM kept") == 7
        await databases.delete("db-AGAIN")
        assert not databases.has_data("db-AGAIN")
    discard(tmp_path)
