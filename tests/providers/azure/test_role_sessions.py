"""Two logins of a server by SQL, as the administrator whom Azure makes: before there is a database, and in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from devcloud import addresses
from devcloud.azure.databases import AUTHORITY, AZURE
from devcloud.azure.server import Options, serving
from devcloud.simulator import databases
from devcloud.simulator.databases import discard, open_databases
from providers.azure.awaited import AwaitedRights
from providers.azure.models import FlexibleServerParameters
from providers.azure.names import ServerName
from providers.azure.servers import roles
from providers.azure.servers.facts import Facts
from providers.azure.servers.role_sessions import RoleSessions
from providers.external.client import Fence, Target
from providers.external.credential import Credential
from providers.external.endpoint import VERIFIED, Endpoint
from providers.external.observation import Observed, Phase
from providers.external.ownership import Owner
from providers.external.reachability import Reachability
from providers.external.sql.role_sessions import AdministratorRefused
from tests.devcloud.azure.conftest import Arm, token_of
from tests.support.waiting import eventually

pytestmark = [pytest.mark.postgres, pytest.mark.asyncio(loop_scope="module")]
OWNER = Owner("home", "uid-1", "0123456789abcdef", "shop", "orders", "server")
NAME = ServerName("rg", "pg1")
SPEC = FlexibleServerParameters(
    resource_group_name="rg",
    location="uksouth",
    administrator_login="boss",
    sku_name="Standard_D4s_v3",
    sku_tier="GeneralPurpose",
    version="16",
    database_name="orders",
)
OPEN = Fence(float("inf"), lambda: True, lambda: 0.0)
LOOPBACK = {"startIpAddress": "127.0.0.0", "endIpAddress": "127.255.255.255"}
TARGET = Target("rg/pg1", SPEC, OWNER, "hash", own_password="Quite9Secret", alternates=True)


@dataclass
class Server:
    """A simulated server whose administrator has the provider's own password, and its sessions."""

    arm: Arm
    endpoint: Endpoint
    awaited: AwaitedRights
    sessions: RoleSessions

    async def seen(self, target: Target[FlexibleServerParameters]) -> Observed[FlexibleServerParameters, Facts]:
        facts = Facts(
            id="id", state="Ready", location="uksouth", host=self.endpoint.host, version="16", minor_version="",
            storage_gib=128, storage_type="", public=True, injected=False, encrypted_by_key=False, window=None,
        )  # fmt: skip
        bare = Observed("rg/pg1", "2026", OWNER, Phase.READY, SPEC, facts, {}, endpoint=self.endpoint)
        return await self.sessions.observed(target, bare)

    async def rows(self, login: str, password: str, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement as the application does, in its database."""
        connection = await psycopg.AsyncConnection.connect(
            host=self.endpoint.host, dbname="orders", user=login, password=password, sslmode="require", autocommit=True
        )
        async with connection:
            cursor = await connection.execute(sql.encode())
            return await cursor.fetchall() if cursor.description else []

    async def is_up(self) -> bool:
        """Return whether the server takes the administrator's login; the first one starts it."""
        try:
            connection = await psycopg.AsyncConnection.connect(
                host=self.endpoint.host, dbname="postgres", user="boss", password=roles.own_password(TARGET)
            )
        except psycopg.OperationalError:
            return False
        await connection.close()
        return True

    async def done(self, work: Any, *arguments: Any, **properties: Any) -> None:
        shown = await asyncio.to_thread(self.arm.until_done, await asyncio.to_thread(work, *arguments, **properties))
        assert shown["status"] == "Succeeded", shown


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    folder, lease = tmp_path_factory.mktemp("azure"), addresses.lease()
    options = databases.Options(folder=folder, octet=lease.octet)
    async with open_databases(AZURE, options) as opened, serving(Options(databases=opened, durations=0.0001)) as served:
        arm = Arm(served, await asyncio.to_thread(token_of, served), step_s=0)
        await asyncio.to_thread(arm.control, "POST", "behaviour", {"throttle": None})
        await asyncio.to_thread(arm.call, "PUT", arm.group_path, {"location": "uksouth"}, version="2020-06-01")
        awaited = AwaitedRights()
        made = Server(arm, Endpoint("", 5432, "orders", VERIFIED), awaited, RoleSessions(awaited, Reachability()))
        login = {"administratorLogin": "boss", "administratorLoginPassword": roles.own_password(TARGET)}
        await made.done(arm.put, "pg1", **login)
        await made.done(arm.child, "pg1/firewallRules/here", **LOOPBACK)
        host = (await asyncio.to_thread(arm.get, "pg1"))["properties"]["fullyQualifiedDomainName"]
        authority = await asyncio.to_thread((folder / f"{AUTHORITY}.crt").read_text)
        made.endpoint = Endpoint(host, 5432, "orders", VERIFIED, authority)
        await eventually(made.is_up, "the server takes logins", limit_s=120)
        yield made
    discard(folder)
    lease.release()


async def test_logins_come_before_their_database_get_their_rights_in_it_and_are_kept_true(server: Server) -> None:
    seen = await server.seen(TARGET)
    await server.sessions.set_password(TARGET, seen, Credential("boss_a", "First1Password"), OPEN)
    assert server.awaited.awaits(NAME, "orders")
    active = replace(TARGET, active="boss_a", incarnation="2026")
    early = await server.seen(active)
    assert (early.incomplete, early.facts.database_missing) == (False, True)
    assert roles.differences(active, early) == ()

    await server.done(server.arm.child, "pg1/databases/orders", charset="UTF8")
    due = await server.seen(active)
    changes = roles.differences(active, due)
    assert {change.path[0] for change in changes} == {"grants", "schemas"}
    assert all(change.first for change in changes)
    assert server.awaited.awaits(NAME, "orders")
    # A process that was started meanwhile remembers nothing.
    restarted = AwaitedRights()
    seen = await replace(server, awaited=restarted, sessions=RoleSessions(restarted, Reachability())).seen(active)
    assert (roles.differences(active, seen), restarted.awaits(NAME, "orders")) == (changes, True)
    await server.sessions.put_in_order(active, due, OPEN)
    assert roles.differences(active, await server.seen(active)) == ()
    assert not server.awaited.awaits(NAME, "orders")

    await server.rows("boss_a", "First1Password", "CREATE TABLE harvest AS SELECT 42 AS bushels")
    who = "SELECT session_user::text, current_user::text"
    assert await server.rows("boss_a", "First1Password", who) == [("boss_a", "boss_owner")]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        await server.rows("boss_a", "First1Password", "SET ROLE azure_pg_admin")

    await server.sessions.set_password(active, due, Credential("boss_b", "Second2Password"), OPEN)
    await server.rows("boss_b", "Second2Password", "ALTER TABLE harvest ADD COLUMN year int")
    await server.rows("boss_a", "First1Password", "SELECT bushels FROM harvest")
    rotated = replace(active, active="boss_b", retiring="")
    await server.sessions.retire(rotated, due, "boss_a", OPEN)
    with pytest.raises(psycopg.OperationalError):
        await server.rows("boss_a", "First1Password", who)
    assert roles.differences(rotated, await server.seen(rotated)) == ()


async def test_administrator_whose_password_somebody_set_is_refused(server: Server) -> None:
    stranger = replace(TARGET, active="boss_b", incarnation="2026", own_password="Another3Secret")
    seen = await server.seen(stranger)
    assert [change.path for change in roles.differences(stranger, seen)] == [("administrator", "password")]
    with pytest.raises(AdministratorRefused):
        await server.sessions.set_password(stranger, seen, Credential("boss_a", "Third3Password"), OPEN)
