"""The databases behind simulated flexible servers: real logins over TLS, rules that bite, rows that outlive copies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from devcloud import addresses
from devcloud.azure.databases import AUTHORITY, AZURE
from devcloud.azure.server import Options, serving
from devcloud.simulator import databases
from devcloud.simulator.databases import discard, open_databases
from tests.devcloud.azure.conftest import PASSWORD, Arm, Reply, token_of

pytestmark = [pytest.mark.postgres, pytest.mark.asyncio(loop_scope="module")]

QUICK = 0.0001
LOOPBACK = {"startIpAddress": "127.0.0.0", "endIpAddress": "127.255.255.255"}


@dataclass(frozen=True, slots=True)
class World:
    arm: Arm
    folder: Path

    async def done(self, accepted: Reply) -> None:
        """Wait until an operation has succeeded."""
        shown = await asyncio.to_thread(self.arm.until_done, accepted)
        assert shown["status"] == "Succeeded", shown

    async def created(self, name: str, **properties: Any) -> str:
        """Create a server that lets this machine in; return its host."""
        await self.done(await asyncio.to_thread(self.arm.put, name, **properties))
        await self.put(f"{name}/firewallRules/here", **LOOPBACK)
        host: str = (await asyncio.to_thread(self.arm.get, name))["properties"]["fullyQualifiedDomainName"]
        return host

    async def put(self, rest: str, **properties: Any) -> None:
        await self.done(await asyncio.to_thread(self.arm.child, rest, **properties))

    async def post(self, rest: str) -> None:
        await self.done(await asyncio.to_thread(self.arm.call, "POST", self.arm.path(rest)))

    async def delete(self, rest: str) -> None:
        await self.done(await asyncio.to_thread(self.arm.call, "DELETE", self.arm.path(rest)))

    async def login(self, host: str, password: str = PASSWORD, **changed: object) -> psycopg.AsyncConnection:
        parameters: dict[str, object] = {
            "host": host,
            "port": 5432,
            "dbname": "postgres",
            "user": "myadmin",
            "password": password,
            "sslmode": "verify-full",
            "sslrootcert": str(self.folder / f"{AUTHORITY}.crt"),
            "connect_timeout": 30,
        }
        return await psycopg.AsyncConnection.connect(autocommit=True, **parameters | changed)  # type: ignore[arg-type]  # libpq's words

    async def refusal(self, host: str, password: str = PASSWORD, **changed: object) -> str:
        """Return why a login is refused."""
        with pytest.raises(psycopg.OperationalError) as error:
            await self.login(host, password, **changed)
        return str(error.value)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder, lease = tmp_path_factory.mktemp("azure"), addresses.lease()
    options = databases.Options(folder=folder, octet=lease.octet)
    async with open_databases(AZURE, options) as opened, serving(Options(databases=opened, durations=QUICK)) as served:
        # Time moves as it does: a server's start takes its own, and a dropped one is kept for days.
        arm = Arm(served, await asyncio.to_thread(token_of, served), step_s=0)
        await asyncio.to_thread(arm.control, "POST", "behaviour", {"throttle": None})
        body = {"location": "uksouth"}
        await asyncio.to_thread(arm.call, "PUT", arm.group_path, body, version="2020-06-01")
        yield World(arm, folder)
    discard(folder)
    lease.release()


async def value(connection: psycopg.AsyncConnection, statement: str) -> object:
    row = await (await connection.execute(statement.encode())).fetchone()
    return None if row is None else row[0]


async def test_administrator_has_azures_rights_over_verified_tls_and_is_no_superuser(world: World) -> None:
    host = await world.created("rights")

    async with await world.login(host) as session:
        assert session.pgconn.ssl_in_use
        assert await value(session, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
        assert await value(session, "SELECT pg_has_role('azure_pg_admin', 'MEMBER')") is True
        await session.execute("CREATE ROLE app LOGIN PASSWORD 'app-pass'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await session.execute("CREATE ROLE rival SUPERUSER")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await session.execute("SELECT rolpassword FROM pg_authid")
    assert "no encryption" in await world.refusal(host, sslmode="disable")
    assert "password authentication failed" in await world.refusal(host, "wrong")
    await world.put("rights/configurations/require_secure_transport", value="off")
    async with await world.login(host, sslmode="disable"):
        pass


async def test_rules_say_who_comes_in(world: World) -> None:
    """The rule for 0.0.0.0 is that of Azure's own services, which are none of this machine."""
    host = await world.created("rules")
    async with await world.login(host) as session:
        await world.put("rules/firewallRules/here", startIpAddress="0.0.0.0", endIpAddress="0.0.0.0")  # noqa: S104 - an address
        assert "no pg_hba.conf entry" in await world.refusal(host)
        assert await value(session, "SELECT 1") == 1
    await world.put("rules/firewallRules/here", startIpAddress="127.0.0.1", endIpAddress="127.0.0.1")
    async with await world.login(host):
        pass
    await world.delete("rules/firewallRules/here")
    assert "no pg_hba.conf entry" in await world.refusal(host)


async def test_role_has_one_password(world: World) -> None:
    host = await world.created("password")
    async with await world.login(host) as session:
        change = {"administratorLoginPassword": "Another-Pass-2"}
        await world.done(await asyncio.to_thread(world.arm.patch, change, "password"))
        assert await value(session, "SELECT 1") == 1

    assert "password authentication failed" in await world.refusal(host)
    async with await world.login(host, "Another-Pass-2"):
        pass
