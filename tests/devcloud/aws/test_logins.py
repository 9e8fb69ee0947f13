"""The simulated RDS with real databases, as its users meet it: boto3 for the instances, psycopg for what is in them."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import psycopg
import pytest
import pytest_asyncio

from devcloud import addresses
from devcloud.certificates import authority_in
from devcloud.simulator.databases import discard
from tests.support.processes import Program
from tests.support.waiting import eventually

pytestmark = [pytest.mark.postgres, pytest.mark.asyncio(loop_scope="module")]


@dataclass(frozen=True, slots=True)
class World:
    folder: Path
    url: str
    secret_key: str

    async def rds(self, operation: str, **parameters: Any) -> Any:
        def call() -> Any:
            client = boto3.client(
                "rds",
                region_name="eu-central-1",
                endpoint_url=self.url,
                aws_access_key_id="AKIATHEONLYUSER00000",
                aws_secret_access_key=self.secret_key,
            )
            try:
                return getattr(client, operation)(**parameters)
            finally:
                client.close()

        return await asyncio.to_thread(call)

    async def until_available(self, name: str) -> tuple[str, int]:
        async def available() -> tuple[str, int] | None:
            (instance,) = (await self.rds("describe_db_instances", DBInstanceIdentifier=name))["DBInstances"]
            if instance["DBInstanceStatus"] != "available":
                return None
            return instance["Endpoint"]["Address"], instance["Endpoint"]["Port"]

        return await eventually(available, f"{name} is available")

    async def login(self, endpoint: tuple[str, int], password: str) -> psycopg.AsyncConnection:
        host, port = endpoint
        return await psycopg.AsyncConnection.connect(
            host=host,
            port=port,
            dbname="app",
            user="boss",
            password=password,
            sslmode="verify-full",
            sslrootcert=str(self.folder / "rds-ca.crt"),
            connect_timeout=30,
            autocommit=True,
        )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder, lease = tmp_path_factory.mktemp("rds"), addresses.lease()
    authority_in(folder, "rds-ca")
    secret_key, url = secrets.token_urlsafe(30), f"{lease.address(1)}:8000"
    (folder / "key").write_text(secret_key)
    simulator = Program(
        (
            *("devcloud.aws", f"--listen={url}", "--durations=0.002", "--access-key=AKIATHEONLYUSER00000"),
            *(f"--secret-key-file={folder / 'key'}", f"--databases={folder}", f"--octet={lease.octet}"),
        ),
        log=folder / "simulator.log",
    )
    await simulator.start()
    await simulator.until_log(f"listening on http://{url}")
    yield World(folder, f"http://{url}", secret_key)
    assert await simulator.terminate() == 0, simulator.text()
    discard(folder)
    lease.release()


async def count(session: psycopg.AsyncConnection) -> object:
    row = await (await session.execute("SELECT count(*) FROM canary")).fetchone()
    return None if row is None else row[0]


async def test_an_instance_is_logged_in_to_and_its_final_snapshot_holds_its_rows(world: World) -> None:
    created = {"Engine": "postgres", "EngineVersion": "16", "DBInstanceClass": "db.t4g.micro", "AllocatedStorage": 20}
    master = {"MasterUsername": "boss", "MasterUserPassword": "first-pass", "DBName": "app"}
    await world.rds("create_db_instance", DBInstanceIdentifier="orders", **created, **master)
    first = await world.until_available("orders")
    async with await world.login(first, "first-pass") as session:
        await session.execute("CREATE TABLE canary AS SELECT generate_series(1, 3)")

    await world.rds(
        "modify_db_instance", DBInstanceIdentifier="orders", MasterUserPassword="second-pass", ApplyImmediately=True
    )

    async def new_password_works() -> bool:
        try:
            async with await world.login(first, "second-pass"):
                return True
        except psycopg.OperationalError:
            return False

    await eventually(new_password_works, "the new password logs in")
    await world.until_available("orders")
    await world.rds("delete_db_instance", DBInstanceIdentifier="orders", FinalDBSnapshotIdentifier="last-of-orders")

    async def snapshot_alone() -> bool:
        (snapshot,) = (await world.rds("describe_db_snapshots", DBSnapshotIdentifier="last-of-orders"))["DBSnapshots"]
        left = (await world.rds("describe_db_instances"))["DBInstances"]
        return snapshot["Status"] == "available" and not left

    await eventually(snapshot_alone, "the instance is gone and its final snapshot available")
    with pytest.raises(psycopg.OperationalError, match="Connection refused"):
        await world.login(first, "second-pass")

    await world.rds(
        "restore_db_instance_from_db_snapshot",
        DBInstanceIdentifier="orders",
        DBSnapshotIdentifier="last-of-orders",
        DBInstanceClass="db.t4g.micro",
    )
    second = await world.until_available("orders")
    assert second[0] != first[0]
    async with await world.login(second, "second-pass") as session:
        assert await count(session) == 3
