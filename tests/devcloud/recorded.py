"""Databases behind a simulated cloud that record what they are called for."""

from __future__ import annotations

from devcloud.errors import DevcloudError
from devcloud.postgres.access import Access
from devcloud.simulator.dataplane import Address, Database, NoDatabases


class Recorded(NoDatabases):
    """Databases that record their calls, and cannot make those that are called `broken-...`."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.names: dict[str, str] = {}
        self.access: dict[str, Access] = {}

    async def create(self, database: Database) -> Address:
        if database.identifier.startswith("broken-"):
            raise DevcloudError("there is no room")
        login = f"{database.username} {database.password}"
        return await self._made("created", database, f"{database.port} {database.db_name} {login}")

    async def restore(self, database: Database, snapshot: str) -> Address:
        return await self._made("restored", database, _key(snapshot))

    async def clone(self, database: Database, source_resource_id: str) -> Address:
        return await self._made("cloned", database, f"of {self._name(source_resource_id)}")

    async def move(self, database: Database) -> Address:
        return await self._made("moved", database, str(database.port))

    async def set_password(self, resource_id: str, password: str) -> None:
        self.calls.append(f"password {self._name(resource_id)} {password}")

    async def set_access(self, resource_id: str, access: Access) -> None:
        self.access[self._name(resource_id)] = access

    async def stop(self, resource_id: str) -> None:
        self.calls.append(f"stopped {self._name(resource_id)}")

    async def start(self, resource_id: str) -> None:
        self.calls.append(f"started {self._name(resource_id)}")

    async def reboot(self, resource_id: str) -> None:
        self.calls.append(f"rebooted {self._name(resource_id)}")

    async def take_snapshot(self, resource_id: str, snapshot: str) -> None:
        self.calls.append(f"taken {self._name(resource_id)} {_key(snapshot)}")

    async def delete_snapshot(self, snapshot: str) -> None:
        self.calls.append(f"dropped {_key(snapshot)}")

    async def delete(self, resource_id: str) -> None:
        self.calls.append(f"deleted {self._name(resource_id)}")

    async def _made(self, verb: str, database: Database, words: str) -> Address:
        self.names[database.resource_id] = database.identifier
        self.calls.append(f"{verb} {database.identifier} {words}")
        return await super().create(database)

    def _name(self, resource_id: str) -> str:
        return self.names.get(resource_id, resource_id)


def _key(snapshot: str) -> str:
    return snapshot.rsplit("#", 1)[0].rsplit(":", 1)[-1]
