"""The work that lifecycles ask of the databases, as calls of the data plane."""

from devcloud.aws.lifecycle.steps import Do, Record
from devcloud.aws.region import Region
from devcloud.aws.state.model import Endpoint
from devcloud.errors import DevcloudError
from devcloud.simulator.dataplane import Address, Database, DataPlane
from devcloud.simulator.jobs import OrderedJobs, carry_out
from devcloud.simulator.work import TakeSnapshot

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
        self._jobs = OrderedJobs("aws")

    def work(self, region: Region, job: Do) -> None:
        """Do a piece of work after those of the same instance."""
        resource_id = job.record.shown.dbi_resource_id

        async def done() -> None:
            try:
                address = await self._carry_out(region, job)
            except DevcloudError as error:
                self._jobs.log(job.record, error)
                region.failed(resource_id)
                return
            endpoint = None if address is None else Endpoint(address=address.host, port=address.port)
            region.finished(resource_id, job.number, endpoint)

        self._jobs.submit(resource_id, done)

    def copy(self, source: str, target: str) -> None:
        """Keep a snapshot's data under another key."""
        self._jobs.submit(_SNAPSHOTS, lambda: self.databases.copy_snapshot(source, target))

    def forget(self, key: str) -> None:
        """Drop a snapshot's data, once whoever restores it has its copy."""
        self._jobs.submit_last(_SNAPSHOTS, lambda: self.databases.delete_snapshot(key))

    def again(self, record: Record) -> None:
        """Restore to the databases an instance that they knew before this program began."""

        async def restored() -> None:
            await self.databases.create(database_of(record))
            if record.resting == "stopped":
                await self.databases.stop(record.shown.dbi_resource_id)

        self._jobs.submit(record.shown.dbi_resource_id, restored)

    def delete(self, resource_id: str) -> None:
        """Drop the data of an instance."""
        self._jobs.submit(resource_id, lambda: self.databases.delete(resource_id))

    async def close(self) -> None:
        """End what is under way."""
        await self._jobs.close()

    async def _carry_out(self, region: Region, job: Do) -> Address | None:
        work = job.work
        if isinstance(work, TakeSnapshot):
            # One that was dropped meanwhile has no key any more.
            key = region.data_keys.get(work.snapshot)
            if key is None:
                return None
            work = TakeSnapshot(key)
        return await carry_out(work, database_of(job.record), self.databases)
