"""The platform team's server: verified TLS, an administrator without superuser, a TLS proxy that can misbehave."""

import shutil
from pathlib import Path

import psycopg
import pytest

from devcloud.daemons import Lifetime
from devcloud.onprem import MAJOR, OnPremServer
from devcloud.postgres import server as postgres
from devcloud.postgres.extensions import THERE, TRUSTED


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


async def test_extensions_of_the_platforms_server_are_those_that_postgresql_trusts(
    onprem_server: OnPremServer,
) -> None:
    trusted = await onprem_server.server.execute(
        "SELECT DISTINCT name FROM pg_available_extension_versions WHERE trusted"
    )

    assert {str(name) for (name,) in trusted} == TRUSTED & THERE[MAJOR]


async def test_the_servers_log_has_no_plain_password(onprem_server: OnPremServer) -> None:
    log = onprem_server.server.log.read_text()

    assert "CREATE DATABASE fairlead" in log
    assert onprem_server.password not in log
    assert onprem_server.server.superuser_password not in log


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
