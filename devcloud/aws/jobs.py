"""The work that lifecycles ask of the databases: in order for each instance, beside one another for several."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import assert_never

from devcloud.aws.dataplane import Address, Database, DataPlane
from devcloud.aws.lifecycle.steps import (
    Copy,
    Do,
    Drop,
    Make,
    MoveTo,
    Reboot,
    Record,
    Restore,
    SetPassword,
    Start,
    Stop,
    TakeSnapshot,
)
from devcloud.aws.region import Region
from devcloud.aws.state.model import Endpoint
from devcloud.errors import DevcloudError

_SNAPSHOTS = "snapshots"


def database_of(record: Record) -> Database:
    """Return an instance as its database sees it."""
    shown = record.shown
    return Database(
        resource_id=shown.dbi_resource_id,
        identifier=shown.db_instance_identifier,
        port=shown.endpoint.port if shown.endpoint else record.port,
        username=shown.master_username,
        password=record.password,
        db_name=shown.db_name,
        version=shown.engine_version,
    )


class Jobs:
    """Hands work to the data plane and its outcome back to the regions."""

    def __init__(self, databases: DataPlane) -> None:
        self.databases = databases
        self._last: dict[str, asyncio.Task[None]] = {}

    def work(self, region: Region, job: Do) -> None:
        """Do a piece of work after those of the same instance."""
        resource_id = job.record.shown.dbi_resource_id

        async def done() -> None:
            try:
                address = await self._carry_out(region, job)
            except DevcloudError as error:
                print(f"aws: {job.record!r}: {error}", file=sys.stderr, flush=True)
                region.failed(resource_id)
                return
            endpoint = None if address is None else Endpoint(address=address.host, port=address.port)
            region.finished(resource_id, job.number, endpoint)

        self._queue(resource_id, done)

    def copy(self, source: str, target: str) -> None:
        """Keep a snapshot's data under another key."""
        self._queue(_SNAPSHOTS, lambda: self.databases.snapshot_copied(source, target))

    def forget(self, key: str) -> None:
        """Drop a snapshot's data, once whoever restores it has its copy."""
        others = [task for task in self._last.values() if not task.done()]

        async def dropped() -> None:
            await asyncio.gather(*others, return_exceptions=True)
            await self.databases.snapshot_dropped(key)

        self._queue(_SNAPSHOTS, dropped)

    def again(self, record: Record) -> None:
        """Restore to the databases an instance that they knew before this program began."""

        async def restored() -> None:
            await self.databases.created(database_of(record))
            if record.resting == "stopped":
                await self.databases.stopped(record.shown.dbi_resource_id)

        self._queue(record.shown.dbi_resource_id, restored)

    def delete(self, resource_id: str) -> None:
        """Drop the data of an instance."""
        self._queue(resource_id, lambda: self.databases.deleted(resource_id))

    async def close(self) -> None:
        """End what is under way."""
        tasks = list(self._last.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _queue(self, chain: str, job: Callable[[], Awaitable[None]]) -> None:
        before = self._last.get(chain)

        async def in_turn() -> None:
            if before is not None:
                await asyncio.gather(before, return_exceptions=True)
            try:
                await job()
            except DevcloudError as error:
                print(f"aws: {chain}: {error}", file=sys.stderr, flush=True)

        task = asyncio.get_running_loop().create_task(in_turn())
        self._last[chain] = task
        task.add_done_callback(lambda ended: self._last.pop(chain) if self._last.get(chain) is ended else None)

    async def _carry_out(self, region: Region, job: Do) -> Address | None:  # noqa: C901 - one row for each work
        databases, database = self.databases, database_of(job.record)
        match job.work:
            case Make():
                return await databases.created(database)
            case Restore(snapshot=key):
                return await databases.restored(database, key)
            case Copy(source=source):
                return await databases.cloned(database, source)
            case MoveTo(identifier=identifier, port=port):
                return await databases.moved(_moved(database, identifier, port))
            case TakeSnapshot(snapshot=name):
                if name in region.data_keys:
                    await databases.snapshot_taken(database.resource_id, region.data_keys[name])
            case SetPassword(password=password):
                await databases.password_set(database.resource_id, password)
            case Reboot():
                await databases.rebooted(database.resource_id)
            case Stop():
                await databases.stopped(database.resource_id)
            case Start():
                await databases.started(database.resource_id)
            case Drop(keeps=keeps):
                await (databases.stopped if keeps else databases.deleted)(database.resource_id)
            case _:
                assert_never(job.work)
        return None


def _moved(database: Database, identifier: str, port: int) -> Database:
    return Database(
        resource_id=database.resource_id,
        identifier=identifier,
        port=port,
        username=database.username,
        password=database.password,
        db_name=database.db_name,
        version=database.version,
    )
