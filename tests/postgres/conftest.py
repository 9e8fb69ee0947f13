"""A connected on-prem cloud on a real server, and targets of this test's own."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import psycopg
import pytest

from apis.teardown import Policy
from devcloud.onprem import OnPremServer
from providers.external.client import Fence, Target
from providers.external.credential import Credential, Login
from providers.external.diff import diff
from providers.external.observation import Change, Observed, Present
from providers.external.ownership import Owner
from providers.onprem.client import OnPremCloud, connect
from providers.onprem.facts import broken_rules
from providers.onprem.models import PostgresDatabaseParameters, ProviderConfigSpec
from providers.onprem.translate import wanted

Where = Target[PostgresDatabaseParameters]
FENCE = Fence(until=time.monotonic() + 86_400, leads=lambda: True, monotonic=time.monotonic)


def config_of(server: OnPremServer) -> ProviderConfigSpec:
    return msgspec.convert(
        {
            "host": server.host,
            "port": server.port,
            "database": server.database,
            "adminSecretRef": {"name": "admin"},
            "caBundle": server.authority_pem.decode(),
            "extensions": ["pgcrypto", "vector"],
        },
        ProviderConfigSpec,
    )


def secrets_of(server: OnPremServer) -> dict[str, dict[str, str]]:
    return {"admin": {"username": server.username, "password": server.password, "host": server.host}}


@pytest.fixture
async def cloud(onprem_server: OnPremServer) -> AsyncIterator[OnPremCloud]:
    async with connect(config_of(onprem_server), secrets_of(onprem_server)) as connected:
        yield connected


def new_target(**spec: object) -> Where:
    """Make a target with names that no other test has."""
    tail = secrets.token_hex(5)
    fields = {"databaseName": "orders", "username": "app", **spec}
    parameters = msgspec.convert(fields, PostgresDatabaseParameters)
    owner = Owner("installation-1", f"uid-{tail}", f"claim-{tail}", "team-a", "orders", "database")
    login = f"{parameters.username}_{tail}_a"
    return Target(f"{parameters.database_name}_{tail}", parameters, owner, tail, active=login)


@pytest.fixture
def target() -> Callable[..., Where]:
    return new_target


PASSWORD = "Correct1horse2battery3"


def credential(where: Where, password: str = PASSWORD) -> Credential:
    return Credential(where.active, password)


async def log_in(cloud: OnPremCloud, where: Where, credential: Credential) -> Login:
    """Log in to a database as an application does."""
    return (await cloud.try_login(cloud.endpoint(where.name), credential)).login


async def session(
    server: OnPremServer, where: Where, database: str = "", *, password: str = PASSWORD
) -> psycopg.AsyncConnection:
    """Log in as a target's application does, to its own database or to another."""
    return await psycopg.AsyncConnection.connect(
        host=server.host, port=server.port, dbname=database or where.name, user=where.active, password=password,
        sslmode="verify-full", sslrootcert=str(server.certificate.with_name("authority.crt")), autocommit=True,
    )  # fmt: skip


@dataclass(frozen=True)
class Database:
    """One database.

    Attributes:
        cloud: By which the provider reaches it.
        server: Where it is; a test acts there as the superuser.
        where: Its names, its spec, its owner.
    """

    cloud: OnPremCloud
    server: OnPremServer
    where: Where

    @property
    def name(self) -> str:
        return self.where.name

    def but(self, **changes: Any) -> Database:
        """Return the same with other facts known of it: `incarnation=`, `spec=`, `active=`."""
        return replace(self, where=replace(self.where, **changes))

    # As its provider does

    async def create(self) -> Database:
        await self.cloud.create(self.where, credential(self.where), FENCE)
        return self

    async def look(self) -> Observed[PostgresDatabaseParameters, Any]:
        seen = await self.cloud.observe(self.where)
        assert isinstance(seen, Present)
        return seen.observed

    async def changes(self) -> tuple[Change, ...]:
        """Return what the provider would change."""
        seen = await self.look()
        return (*diff(self.where.spec, seen.spec), *broken_rules(wanted(self.where), seen.facts))

    async def update(self) -> None:
        await self.cloud.update(self.where, await self.look(), await self.changes(), FENCE)

    async def delete(self, policy: Policy = Policy.DELETE) -> None:
        await self.cloud.delete(self.where, await self.look(), policy, FENCE)

    # As others do

    async def logs_in(self, login: Credential | None = None) -> Login:
        return await log_in(self.cloud, self.where, login or credential(self.where))

    async def connect(self, password: str = PASSWORD) -> psycopg.AsyncConnection:
        """Log in as the application does."""
        return await session(self.server, self.where, password=password)

    async def run(self, *statements: str) -> list[tuple[object, ...]]:
        """Run statements on the server, as its superuser; return the last one's rows."""
        return await self.server.server.execute(*statements)

    async def run_inside(self, *statements: str) -> list[tuple[object, ...]]:
        """Run statements in the database, as the superuser."""
        return await self.server.server.execute(*statements, database=self.name)


@pytest.fixture
def make(cloud: OnPremCloud, onprem_server: OnPremServer) -> Callable[..., Awaitable[Database]]:
    """Make databases: `await make(connectionLimit=7)`."""

    async def made(**spec: object) -> Database:
        return await Database(cloud, onprem_server, new_target(**spec)).create()

    return made
