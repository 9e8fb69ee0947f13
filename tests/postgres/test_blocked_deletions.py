"""What keeps a database from going, on a server with prepared transactions and a busy autovacuum."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from apis.teardown import Policy
from devcloud import addresses, onprem
from devcloud.daemons import Lifetime
from devcloud.onprem import OnPremServer
from providers.external.observation import Absent, Observed, Present
from providers.onprem.client import OnPremCloud, connect
from providers.onprem.models import PostgresDatabaseParameters
from runtime.errors import Blocked
from tests.postgres.conftest import FENCE, Where, config_of, credential, new_target, secrets_of
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


async def look(cloud: OnPremCloud, where: Where) -> Observed[PostgresDatabaseParameters, Any]:
    seen = await cloud.observe(where)
    assert isinstance(seen, Present)
    return seen.observed


async def prepare(server: OnPremServer, where: Where, *statements: str) -> None:
    """Leave a prepared transaction behind, as the application's login does."""
    async with await psycopg.AsyncConnection.connect(
        host=server.host, port=server.port, dbname=where.name, user=where.active, password=credential(where).password,
        sslmode="verify-full", sslrootcert=str(server.certificate.with_name("authority.crt")), autocommit=True,
    ) as session:  # fmt: skip
        for statement in ("BEGIN", *statements, f"PREPARE TRANSACTION 'it''s {where.hash}'"):
            await session.execute(statement.encode())


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("as_login", [False, True], ids=["as the owner role", "as the login"])
async def test_a_tenants_prepared_transaction_is_rolled_back(
    cloud: OnPremCloud, server: OnPremServer, policy: Policy, *, as_login: bool
) -> None:
    where = new_target()
    await cloud.create(where, credential(where), FENCE)
    own_setting = ("SET ROLE none", f"ALTER ROLE \"{where.active}\" SET work_mem = '1MB'")
    await prepare(server, where, *(own_setting if as_login else ("CREATE TABLE held (line text)",)))

    await cloud.delete(where, await look(cloud, where), policy, FENCE)

    assert await cloud.observe(where) == Absent()
    assert await server.server.execute("SELECT gid FROM pg_catalog.pg_prepared_xacts") == []


async def test_a_prepared_transaction_in_a_closed_database_is_rolled_back(
    cloud: OnPremCloud, server: OnPremServer
) -> None:
    where = new_target()
    await cloud.create(where, credential(where), FENCE)
    await prepare(server, where, "CREATE TABLE held (line text)")
    await server.server.execute(f'ALTER DATABASE "{where.name}" ALLOW_CONNECTIONS false')

    await cloud.delete(where, await look(cloud, where), Policy.DELETE, FENCE)

    assert await cloud.observe(where) == Absent()


async def test_a_strangers_prepared_transaction_is_named_before_anything_is_closed(
    cloud: OnPremCloud, server: OnPremServer
) -> None:
    where = new_target()
    await cloud.create(where, credential(where), FENCE)
    gid = f"theirs {where.hash}"
    await server.server.execute(
        "BEGIN", "CREATE TABLE held (line text)", f"PREPARE TRANSACTION '{gid}'", database=where.name
    )

    with pytest.raises(Blocked, match=f"{gid} of postgres") as refusal:
        await cloud.delete(where, await look(cloud, where), Policy.DELETE, FENCE)

    assert refusal.value.reason == "DeleteBlocked"
    await server.server.execute(f"ROLLBACK PREPARED '{gid}'", database=where.name)
    await cloud.delete(where, await look(cloud, where), Policy.DELETE, FENCE)
    assert await cloud.observe(where) == Absent()


@pytest.mark.parametrize("policy", POLICIES)
async def test_autovacuum_keeps_no_database(cloud: OnPremCloud, server: OnPremServer, policy: Policy) -> None:
    where = new_target()
    await cloud.create(where, credential(where), FENCE)
    await server.server.execute(
        "CREATE TABLE public.slow WITH (autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0,"
        " autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1) AS"
        " SELECT n, repeat('x', 500) AS line FROM pg_catalog.generate_series(1, 20000) AS n",
        "DELETE FROM public.slow WHERE n % 2 = 0",
        database=where.name,
    )
    workers = (
        "SELECT pid FROM pg_catalog.pg_stat_activity WHERE backend_type = 'autovacuum worker'"  # noqa: S608 - a name by rule
        f" AND datname = '{where.name}'"
    )

    await eventually(lambda: server.server.execute(workers), "a worker of autovacuum in the database")

    await cloud.delete(where, await look(cloud, where), policy, FENCE)

    assert await cloud.observe(where) == Absent()
