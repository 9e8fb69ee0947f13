"""The logins of flexible servers: those of the model, and the administrator by the password that ARM was given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Final

from devcloud.postgres.instance import StatementError
from devcloud.simulator.dataplane import Address, Database
from fairlead.simulation.logins import Logins, Server

_CREATE: Final = 'CREATE DATABASE "'
_DROP_IF_THERE: Final = 'DROP DATABASE IF EXISTS "'
_DUPLICATE: Final = "42P04"


@dataclass(frozen=True, slots=True)
class Administrator:
    """The login that ARM makes with a server."""

    username: str
    password: str


class ServerLogins(Logins):
    """All flexible servers of one simulated Azure, by their resource ids."""

    def __init__(self, emit: Callable[..., None]) -> None:
        super().__init__(emit)
        self.administrators: dict[str, Administrator] = {}

    async def create(self, database: Database) -> Address:
        """Have a server."""
        self.administrators.setdefault(database.resource_id, Administrator(database.username, database.password))
        return await super().create(database)

    async def clone(self, database: Database, source_resource_id: str) -> Address:
        """Copy a server; the copy of one that was stopped or dropped runs."""
        if database.resource_id not in self.servers:
            copy = deepcopy(self.servers[source_resource_id])
            copy.runs = True
            self.servers[database.resource_id] = copy
            self.administrators[database.resource_id] = self.administrators[source_resource_id]
        return await self.create(database)

    async def set_password(self, resource_id: str, password: str) -> None:
        """Set the password of the administrator."""
        username = self.administrators[resource_id].username
        self.administrators[resource_id] = Administrator(username, password)

    async def execute(self, resource_id: str, statements: Sequence[str], *, database: str = "postgres") -> None:
        """Carry out statements."""
        present = self.servers[resource_id].databases
        for statement in statements:
            name = statement.removeprefix(_CREATE).partition('"')[0]
            if statement.startswith(_CREATE) and name in present:
                raise StatementError(f"database {name} exists", _DUPLICATE)
            plain = statement.replace(_DROP_IF_THERE, 'DROP DATABASE "')
            await super().execute(resource_id, (plain,), database=database)

    def replace(self, resource_id: str, by: str) -> None:
        """Have an empty server of somebody else's in place of one."""
        self.servers.pop(resource_id, None)
        self.servers[by], self.administrators[by] = Server(), Administrator("somebody", "")

    async def delete(self, resource_id: str) -> None:
        """Have a server no more."""
        self.administrators.pop(resource_id, None)
        await super().delete(resource_id)

    def admits(self, resource_id: str, user: str, password: str, database: str) -> bool:
        """Return whether a login succeeds."""
        server = self.servers.get(resource_id)
        if server is None or not server.runs or database not in {*server.databases, "postgres"}:
            return False
        return self.administrators[resource_id] == Administrator(user, password)
