"""The toy cloud with real databases, as its users meet it: its API for servers, users and rules, psycopg for logins."""

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
from devcloud.simulator.databases import Options, discard, open_databases
from tests.devcloud.simulator.conftest import Client, client_of
from tests.devcloud.simulator.toy_cloud import ENGINE, serving

pytestmark = pytest.mark.postgres


@asynccontextmanager
async def running(folder: Path, lease: Lease) -> AsyncIterator[Client]:
    """Run a toy cloud with databases for the length of a block; its files stay."""
    async with (
        open_databases(ENGINE, Options(folder=folder / "databases", octet=lease.octet)) as databases,
        serving(folder, databases) as served,
    ):
        yield await asyncio.to_thread(client_of, served)


@pytest.fixture
def lease(tmp_path: Path) -> Iterator[Lease]:
    lease = addresses.lease()
    yield lease
    discard(tmp_path / "databases")
    lease.release()


@pytest.fixture
async def client(tmp_path: Path, lease: Lease) -> AsyncIterator[Client]:
    async with running(tmp_path, lease) as client:
        yield client


async def login(shown: dict[str, Any], trust: Path, user: str, password: str) -> str:
    """Return the user of a session, or why it is refused."""
    await asyncio.to_thread(trust.write_text, shown["authority"])
    try:
        async with await psycopg.AsyncConnection.connect(
            host=shown["host"],
            user=user,
            password=password,
            dbname="postgres",
            sslmode="verify-full",
            sslrootcert=str(trust),
            connect_timeout=30,
        ) as session:
            row = await (await session.execute("SELECT current_user::text")).fetchone()
            return str(row[0]) if row else ""
    except psycopg.OperationalError as error:
        return str(error)


async def change(client: Client, path: str, body: dict[str, str]) -> Any:
    """Change something by an operation; return it when it is done."""
    return await asyncio.to_thread(lambda: client.until_done(client.call("PUT", f"servers/db-1/{path}", body)))


async def test_user_logs_in_once_its_operation_is_done(client: Client, tmp_path: Path) -> None:
    shown, trust = await asyncio.to_thread(client.created), tmp_path / "trust.pem"

    assert await login(shown, trust, "boss", "first-pass") == "boss"
    assert "authentication failed" in await login(shown, trust, "app", "app-pass")
    assert (await change(client, "users/app", {"password": "app-pass"}))["error"] is None
    assert await login(shown, trust, "app", "app-pass") == "app"
    again = await change(client, "users/app", {"password": "app-pass"})
    assert again["error"]["code"] == "databaseError"
    assert 'role "app" already exists' in again["error"]["message"]


async def test_firewall_rule_lets_in_its_network_alone(client: Client, tmp_path: Path) -> None:
    shown, trust = await asyncio.to_thread(client.created), tmp_path / "trust.pem"

    await change(client, "rules/office", {"network": "203.0.113.0/24"})
    assert "no pg_hba.conf entry" in await login(shown, trust, "boss", "first-pass")
    await change(client, "rules/here", {"network": "127.0.0.0/8"})
    assert await login(shown, trust, "boss", "first-pass") == "boss"
    assert (await asyncio.to_thread(client.call, "GET", "servers/db-1"))["rules"] == {
        "office": "203.0.113.0/24",
        "here": "127.0.0.0/8",
    }


async def test_servers_answer_again_after_a_restart_with_their_passwords_and_rules(
    tmp_path: Path, lease: Lease
) -> None:
    trust = tmp_path / "trust.pem"
    async with running(tmp_path, lease) as client:
        shown = await asyncio.to_thread(client.created)
        await change(client, "users/app", {"password": "app-pass"})
        await change(client, "rules/here", {"network": "127.0.0.0/8"})

    async with running(tmp_path, lease) as client:
        # Its jobs are done in order: this one comes after the start.
        await change(client, "users/later", {"password": "later-pass"})
        for user in ("app", "later"):
            assert await login(shown, trust, user, f"{user}-pass") == user
        await change(client, "rules/here", {"network": "203.0.113.0/24"})
        assert "no pg_hba.conf entry" in await login(shown, trust, "app", "app-pass")
