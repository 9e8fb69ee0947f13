"""The logins of RDS instances: the administrator's, which a snapshot keeps, and the database that a create makes."""

from __future__ import annotations

from collections.abc import Callable

from devcloud.simulator.dataplane import Address, Database
from fairlead.simulation.arm_logins import Administrator, ServerLogins


class InstanceLogins(ServerLogins):
    """All instances of one simulated RDS, by their resource ids."""

    def __init__(self, emit: Callable[..., None]) -> None:
        super().__init__(emit)
        self._kept: dict[str, Administrator] = {}

    async def create(self, database: Database) -> Address:
        """Have a server."""
        is_new = database.resource_id not in self.servers
        address = await super().create(database)
        if is_new and database.db_name not in {None, "postgres"}:
            await self.execute(database.resource_id, [f'CREATE DATABASE "{database.db_name}"'])
        return address

    async def take_snapshot(self, resource_id: str, snapshot: str) -> None:
        """Keep what a server has."""
        await super().take_snapshot(resource_id, snapshot)
        self._kept[snapshot] = self.administrators[resource_id]

    async def copy_snapshot(self, source: str, target: str) -> None:
        """Copy a snapshot."""
        await super().copy_snapshot(source, target)
        self._kept[target] = self._kept[source]

    async def delete_snapshot(self, snapshot: str) -> None:
        """Forget a snapshot."""
        await super().delete_snapshot(snapshot)
        self._kept.pop(snapshot, None)

    async def restore(self, database: Database, snapshot: str) -> Address:
        """Give a new instance the data of a snapshot and its administrator; it runs, whatever its source did."""
        self.administrators.setdefault(database.resource_id, self._kept[snapshot])
        address = await super().restore(database, snapshot)
        self.servers[database.resource_id].runs = True
        return address
