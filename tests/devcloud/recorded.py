"""Databases behind a simulated cloud that record what they are called for."""

from __future__ import annotations

from devcloud.simulator.dataplane import Address, Database, NoDatabases


class Recorded(NoDatabases):
    """Databases that record their calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self.names: dict[str, str] = {}

    async def create(self, database: Database) -> Address:
        self.names[database.resource_id] = database.identifier
        login = f"{database.username} {database.password}"
        self.calls.append(f"created {database.identifier} {database.port} {database.db_name} {login}")
        return await super().create(database)

    async def set_password(self, resource_id: str, password: str) -> None:
        self.calls.append(f"password {self._name(resource_id)} {password}")

    async def stop(self, resource_id: str) -> None:
        self.calls.append(f"stopped {self._name(resource_id)}")

    async def reboot(self, resource_id: str) -> None:
        self.calls.append(f"rebooted {self._name(resource_id)}")

    def _name(self, resource_id: str) -> str:
        return self.names.get(resource_id, resource_id)
