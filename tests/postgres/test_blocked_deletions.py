"""What keeps a database from going, on a server with prepared transactions and a busy autovacuum."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from apis.teardown import Policy
from devcloud import addresses, onprem
from devcloud.daemons import Lifetime
from devcloud.onprem import OnPremServer
from providers.external.observation import Absent
from providers.onprem.client import OnPremCloud, connect
from runtime.errors import Blocked
from tests.postgres.conftest import Database, config_of, new_target, secrets_of
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres]
POLICIES = [Policy.DELETE, Policy.SNAPSHOT]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OnPremServer]:
    folder = tmp_path_factory.mktemp("blocking")
    lease = addresses.lease()
    options = onprem.Options(folder=folder, lifetime=Lifetime.WITH_PARENT, durable=False)
    started = await onprem.start(options, lease)
    await started.server.execute(
        "ALTER SYSTEM SET max_prepared_transactions = 10", "ALTER SYSTEM SET autovacuum_naptime = '1s'"
    )
    await onprem.stop(folder, grace_s=5.0)
    yield await onprem.start(options, lease)
    await onprem.stop(folder, grace_s=5.0)
    lease.release()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cloud(server: OnPremServer) -> AsyncIterator[OnPremCloud]:
    async with connect(config_of(server), secrets_of(server)) as connected:
        yield connected


async def made(cloud: OnPremCloud, server: OnPremServer) -> Database:
    return await Database(cloud, server, new_target()).create()


async def prepare(database: Database, *statements: str) -> None:
    """Leave a prepared transaction behind, as the application's login does."""
    async with await database.connect() as session:
        for statement in ("BEGIN", *statements, f"PREPARE TRANSACTION 'it''s {database.where.hash}'"):
            await session.execute(statement.encode())


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("as_login", [False, True], ids=["as the owner role", "as the login"])
async def test_a_tenants_prepared_transaction_is_rolled_back(
    cloud: OnPremCloud, server: OnPremServer, policy: Policy, *, as_login: bool
) -> None:
    database = await made(cloud, server)
    own_setting = ("SET ROLE none", f"ALTER ROLE \"{database.where.active}\" SET work_mem = '1MB'")
    await prepare(database, *(own_setting if as_login else ("CREATE TABLE held (line text)",)))

    await database.delete(policy)

    assert await cloud.observe(database.where) == Absent()
    assert await database.run("SELECT gid FROM pg_catalog.pg_prepared_xacts") == []


async def test_a_prepared_transaction_in_a_closed_database_is_rolled_back(
    cloud: OnPremCloud, server: OnPremServer
) -> None:
    database = await made(cloud, server)
    await prepare(database, "CREATE TABLE held (line text)")
    await database.run(f'ALTER DATABASE "{database.name}" ALLOW_CONNECTIONS false')

    await database.delete()

    assert await cloud.observe(database.where) == Absent()


async def test_a_strangers_prepared_transaction_is_named_before_anything_is_closed(
    cloud: OnPremCloud, server: OnPremServer
) -> None:
    database = await made(cloud, server)
    gid = f"theirs {database.where.hash}"
    await database.run_inside("BEGIN", "CREATE TABLE held (line text)", f"PREPARE TRANSACTION '{gid}'")

    with pytest.raises(Blocked, match=f"{gid} of postgres") as refusal:
        await database.delete()

    assert refusal.value.reason == "DeleteBlocked"
    await database.run_inside(f"ROLLBACK PREPARED '{gid}'")
    await database.delete()
    assert await cloud.observe(database.where) == Absent()


@pytest.mark.parametrize("policy", POLICIES)
async def test_autovacuum_keeps_no_database(cloud: OnPremCloud, server: OnPremServer, policy: Policy) -> None:
    database = await made(cloud, server)
    await database.run_inside(
        "CREATE TABLE public.slow WITH (autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0,"
        " autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1) AS"
        " SELECT n, repeat('x', 500) AS line FROM pg_catalog.generate_series(1, 20000) AS n",
        "DELETE FROM public.slow WHERE n % 2 = 0",
    )
    workers = (
        "SELECT pid FROM pg_catalog.pg_stat_activity WHERE backend_type = 'autovacuum worker'"  # noqa: S608 - a name by rule
        f" AND datname = '{database.name}'"
    )

    await eventually(lambda: database.run(workers), "a worker of autovacuum in the database")

    await database.delete(policy)

    assert await cloud.observe(database.where) == Absent()
