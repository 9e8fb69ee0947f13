"""The platform team's server: verified TLS, an administrator without superuser, a TLS proxy that can misbehave."""

import asyncio
import shutil
from pathlib import Path

import psycopg
import pytest

from devcloud.daemons import Lifetime
from devcloud.onprem import OnPremServer
from devcloud.postgres import server as postgres
from devcloud.postgres.authenticator import Refuse, Silence
from devcloud.postgres.tls_proxy import Cut, Serve, TLSProxy
from tests.support.waiting import eventually


async def login(onprem: OnPremServer, **changed: object) -> psycopg.AsyncConnection:
    parameters: dict[str, object] = {
        "host": onprem.host,
        "port": onprem.port,
        "dbname": onprem.database,
        "user": onprem.username,
        "password": onprem.password,
        "sslmode": "verify-full",
        "sslrootcert": str(onprem.certificate.with_name("authority.crt")),
        "connect_timeout": 60,
    }
    return await psycopg.AsyncConnection.connect(autocommit=True, **parameters | changed)  # type: ignore[arg-type]  # libpq's words


async def rows(connection: psycopg.AsyncConnection, statement: str) -> list[tuple[object, ...]]:
    cursor = await connection.execute(statement.encode())
    return await cursor.fetchall()


async def test_the_administrator_logs_in_verified_and_is_no_superuser(onprem_server: OnPremServer) -> None:
    async with await login(onprem_server) as connection:
        attributes = await rows(
            connection, "SELECT rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user"
        )

        assert connection.pgconn.ssl_in_use
        assert attributes == [(False, True, True)]


async def test_the_administrator_reads_two_columns_of_pg_authid_and_no_password(onprem_server: OnPremServer) -> None:
    async with await login(onprem_server) as connection:
        assert await rows(connection, "SELECT rolname, xmin FROM pg_catalog.pg_authid LIMIT 1")

        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await rows(connection, "SELECT rolpassword FROM pg_catalog.pg_authid")


@pytest.mark.parametrize("database", ["postgres", "template1", "fairlead"])
async def test_another_login_cannot_connect_to_the_servers_own_databases(
    onprem_server: OnPremServer, database: str
) -> None:
    async with await login(onprem_server) as admin:
        await admin.execute(f"CREATE ROLE stranger_{database} LOGIN PASSWORD 'stranger-1'".encode())

    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        await login(onprem_server, user=f"stranger_{database}", password="stranger-1", dbname=database)


async def test_a_server_that_is_not_the_certificates_is_refused(onprem_server: OnPremServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="does not match host name"):
        await login(onprem_server, host="elsewhere.example", hostaddr=onprem_server.host)


async def test_a_session_without_tls_is_refused(onprem_server: OnPremServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="no encryption"):
        await login(onprem_server, sslmode="disable")


async def test_the_servers_log_has_no_plain_password(onprem_server: OnPremServer) -> None:
    log = onprem_server.server.log.read_text()

    assert "CREATE DATABASE fairlead" in log
    assert onprem_server.password not in log
    assert onprem_server.server.superuser_password not in log


async def test_a_running_statement_is_cancelled_through_the_front(onprem_server: OnPremServer) -> None:
    async with await login(onprem_server) as connection, await login(onprem_server) as watcher:
        sleeping = asyncio.create_task(rows(connection, "SELECT pg_sleep(600)"))
        pid = connection.info.backend_pid

        async def is_active() -> bool:
            return (pid, "active") in await rows(watcher, "SELECT pid, state FROM pg_stat_activity")

        await eventually(is_active, "the statement runs")
        await connection.cancel_safe()

        with pytest.raises(psycopg.errors.QueryCanceled):
            await sleeping


async def test_a_stopped_instance_cuts_sessions_refuses_and_returns_at_its_port(
    onprem_server: OnPremServer, onprem_proxy: TLSProxy
) -> None:
    here: dict[str, object] = {"host": "127.0.0.1", "port": onprem_proxy.port}
    async with await login(onprem_server, **here) as connection:
        await onprem_proxy.stop()

        with pytest.raises(psycopg.OperationalError):
            await rows(connection, "SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="refused"):
        await login(onprem_server, **here)

    await onprem_proxy.start()

    async with await login(onprem_server, **here) as connection:
        assert await rows(connection, "SELECT 1") == [(1,)]


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        pytest.param(Refuse("57P03", "the database system is starting up"), "starting up", id="a fatal answer"),
        pytest.param(Silence(), "timeout expired", id="swallowed packets"),
        pytest.param(Cut(), "closed the connection unexpectedly|Connection reset", id="closed at once"),
        pytest.param(Cut(after_bytes=40), "closed|reset|EOF", id="cut in the middle"),
    ],
)
async def test_a_fault_of_the_front_reaches_the_client(
    onprem_server: OnPremServer, onprem_proxy: TLSProxy, behaviour: Refuse | Silence | Cut, message: str
) -> None:
    here: dict[str, object] = {"host": "127.0.0.1", "port": onprem_proxy.port, "connect_timeout": 2}
    onprem_proxy.behave(behaviour)

    with pytest.raises(psycopg.OperationalError, match=message):
        await login(onprem_server, **here)

    onprem_proxy.behave(Serve())

    async with await login(onprem_server, **here) as connection:
        assert await rows(connection, "SELECT 1") == [(1,)]


@pytest.mark.parametrize(
    "name",
    [pytest.param('a b,c"d', id="a name with a blank, a comma, a quote"), pytest.param("x" * 120, id="a long name")],
)
@pytest.mark.postgres
async def test_any_folder_will_do(tmp_path: Path, name: str) -> None:
    options = postgres.Options(folder=tmp_path / name, lifetime=Lifetime.WITH_PARENT, durable=False)

    async with postgres.ephemeral(options) as server:
        assert await server.execute("SELECT 1") == [(1,)]

    assert not server.socket.parent.exists()


@pytest.mark.postgres
async def test_a_server_whose_folder_was_cleared_begins_anew(tmp_path: Path) -> None:
    options = postgres.Options(folder=tmp_path / "server", lifetime=Lifetime.WITH_PARENT, durable=False)
    await postgres.start(options)
    await postgres.stop(options.folder, grace_s=5.0)
    shutil.rmtree(options.folder)

    async with postgres.ephemeral(options) as server:
        assert await server.execute("SELECT 1") == [(1,)]
