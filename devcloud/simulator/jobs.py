"""Work that goes on beside requests: in order for each instance, side by side for several."""

import asyncio
import dataclasses
import sys
from collections.abc import Awaitable, Callable
from typing import assert_never

from devcloud.errors import DevcloudError
from devcloud.simulator import work
from devcloud.simulator.dataplane import Address, Database, DataPlane

Job = Callable[[], Awaitable[None]]


class OrderedJobs:
    """Jobs in one queue for each key.

    A job that must know of its failure catches DevcloudError itself; what it leaves is written to the log.
    """

    def __init__(self, cloud: str) -> None:
        self._cloud = cloud
        self._last: dict[str, asyncio.Task[None]] = {}

    def submit(self, key: str, job: Job) -> None:
        """Do a job after those of the same key that were submitted before."""
        before = self._last.get(key)

        async def in_order() -> None:
            if before is not None:
                await asyncio.gather(before, return_exceptions=True)
            try:
                await job()
            except DevcloudError as error:
                self.log(key, error)

        task = asyncio.get_running_loop().create_task(in_order())
        self._last[key] = task
        task.add_done_callback(lambda ended: self._last.pop(key) if self._last.get(key) is ended else None)

    def submit_last(self, key: str, job: Job) -> None:
        """Do a job after all those, of any key, that were submitted before."""
        others = [task for task in self._last.values() if not task.done()]

        async def after_others() -> None:
            await asyncio.gather(*others, return_exceptions=True)
            await job()

        self.submit(key, after_others)

    def log(self, subject: object, error: DevcloudError) -> None:
        """Write a failure to the program's log."""
        print(f"{self._cloud}: {subject}: {error}", file=sys.stderr, flush=True)

    async def close(self) -> None:
        """End what is under way."""
        tasks = list(self._last.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def carry_out(work_item: work.Work, database: Database, databases: DataPlane) -> Address | None:  # noqa: C901 - one row for each work
    """Do a piece of work for an instance; return where it answers, when that may have changed.

    Raises:
        DevcloudError: The databases cannot.
    """
    resource_id = database.resource_id
    match work_item:
        case work.Make():
            return await databases.create(database)
        case work.Restore(snapshot=key):
            return await databases.restore(database, key)
        case work.Copy(source=source):
            return await databases.clone(database, source)
        case work.MoveTo(identifier=identifier, port=port):
            return await databases.move(dataclasses.replace(database, identifier=identifier, port=port))
        case work.TakeSnapshot(snapshot=key):
            await databases.take_snapshot(resource_id, key)
        case work.SetPassword(password=password):
            await databases.set_password(resource_id, password)
        case work.Reboot():
            await databases.reboot(resource_id)
        case work.Upgrade(version=version):
            await databases.upgrade(resource_id, version)
        case work.Stop():
            await databases.stop(resource_id)
        case work.Start():
            await databases.start(resource_id)
        case work.Drop(keeps=keeps):
            await (databases.stop if keeps else databases.delete)(resource_id)
        case _:
            assert_never(work_item)
    return None
