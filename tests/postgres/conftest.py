"""A connected on-prem cloud on a real server, and targets of this test's own."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Callable

import msgspec
import pytest

from devcloud.onprem import OnPremServer
from providers.external.client import Fence, Target
from providers.external.credential import Credential, Login
from providers.external.ownership import Owner
from providers.onprem.client import OnPremCloud, connect
from providers.onprem.models import PostgresDatabaseParameters, ProviderConfigSpec

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
            "extensions": ["vector"],
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
