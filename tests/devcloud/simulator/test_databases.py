"""Databases of a cloud whose instances have an authority, users and a firewall each: real logins over TLS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio
from psycopg import sql

from devcloud import addresses
from devcloud.postgres.access import Access
from devcloud.postgres.instance import Flavour
from devcloud.simulator.databases import Databases, Engine, Options, discard, open_databases
from devcloud.simulator.dataplane import Address, Database

pytestmark = [pytest.mark.postgres, pytest.mark.asyncio(loop_scope="module")]


def login(role: str, verifier: str) -> str:
    """Return the statement that makes a role that logs in."""
    statement = sql.SQL("CREATE ROLE {} LOGIN CREATEDB CREATEROLE PASSWORD {}")
    return statement.format(sql.Identifier(role), sql.Literal(verifier)).as_string()


ENGINE = Engine(
    flavour=Flavour(
        superuser="toyadmin",
        statements=("CREATE ROLE toysuperuser NOLOGIN",),
        admit=lambda record: (login(record.username, record.verifier),),
    ),
    authority="server-ca",
    authority_each=True,
)


@dataclass(frozen=True, slots=True)
class World:
    databases: Databases
    folder: Path

    async def create(self, name: str) -> Address:
        return await self.databases.create(
            Database(
                resource_id=name,
                identifier=name,
                port=5432,
                username="boss",
                password="first-pass",
                db_name=None,
                version="16",
            )
        )

    def trust(self, name: str) -> Path:
        """Return a file with the authority of an instance, as its API shows it."""
        path = self.folder / f"{name}.pem"
        path.write_bytes(self.databases.authority_of(name))
        return path

    async def login(self, address: Address, trust: Path, **changed: object) -> psycopg.AsyncConnection:
        parameters: dict[str, object] = {
            "host": address.host,
            "port": address.port,
            "dbname": "postgres",
            "user": "boss",
            "password": "first-pass",
            "sslmode": "verify-full",
            "sslrootcert": str(trust),
            "connect_timeout": 30,
        }
        return await psycopg.AsyncConnection.connect(autocommit=True, **parameters | changed)  # type: ignore[arg-type]  # libpq's words

    async def refusal(self, address: Address, trust: Path, **changed: object) -> str:
        """Return why a login is refused."""
        with pytest.raises(psycopg.OperationalError) as error:
            await self.login(address, trust, **changed)
        return str(error.value)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder, lease = tmp_path_factory.mktemp("toy"), addresses.lease()
    async with open_databases(ENGINE, Options(folder=folder, octet=lease.octet)) as databases:
        yield World(databases, folder)
    discard(folder)
    lease.release()


async def test_authority_that_was_added_signs_after_the_rotation(world: World) -> None:
    address = await world.create("prepared")
    assert world.databases.next_authority_of("prepared") == b""
    await world.databases.add_authority("prepared")
    added = world.databases.next_authority_of("prepared")
    assert added != world.databases.authority_of("prepared")

    await world.databases.rotate_authority("prepared")

    assert world.databases.authority_of("prepared") == added
    assert world.databases.next_authority_of("prepared") == b""
    async with await world.login(address, world.trust("prepared")):
        pass


async def test_instance_takes_sessions_without_tls_where_it_may(world: World) -> None:
    address = await world.create("plain")
    trust = world.trust("plain")

    assert "no encryption" in await world.refusal(address, trust, sslmode="disable")
    await world.databases.set_access("plain", Access(requires_tls=False))
    async with await world.login(address, trust, sslmode="disable") as session:
        assert not session.pgconn.ssl_in_use
