"""What the simulated lifecycle asks of the databases behind it, and their one answer: where they are.

The lifecycle awaits each call: a state follows when the call returned. Calls may come again, after a restart of the
simulator for every instance that it knows (`created`, then `stopped` where that is its state): each is idempotent.
"""

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """An instance as its database sees it.

    Attributes:
        resource_id: Its DbiResourceId, which no other instance ever has.
        identifier: Its DBInstanceIdentifier.
        port: Its TCP port.
        username: Its master user.
        password: That user's password; with a restore the one that RDS takes over from the source is kept instead.
        db_name: Its DBName, None for none but `postgres`.
        version: Its EngineVersion.
    """

    resource_id: str
    identifier: str
    port: int
    username: str
    password: str = field(repr=False)
    db_name: str | None
    version: str


@dataclass(frozen=True, slots=True)
class Address:
    """An instance's Endpoint."""

    host: str
    port: int


class DataPlane(Protocol):
    """The databases behind the instances of one simulator. Every method raises DevcloudError when it cannot.

    A snapshot's key is any text that no other snapshot, of any account and region, has at the same time.
    """

    async def created(self, database: Database) -> Address:
        """Give a new instance its address; a login succeeds from here on."""
        ...

    async def restored(self, database: Database, snapshot: str) -> Address:
        """Give a new instance a copy of a snapshot's data: its databases, roles and passwords."""
        ...

    async def cloned(self, database: Database, source_resource_id: str) -> Address:
        """Give a new instance a copy of another instance's data as they are now (point in time: latest)."""
        ...

    async def password_set(self, resource_id: str, password: str) -> None:
        """Give the master user a password; no login by the former one succeeds from here on, sessions go on."""
        ...

    async def stopped(self, resource_id: str) -> None:
        """Cut the sessions and refuse connections; the data stay."""
        ...

    async def started(self, resource_id: str) -> None:
        """Answer again."""
        ...

    async def rebooted(self, resource_id: str) -> None:
        """Cut the sessions and answer again."""
        ...

    async def moved(self, database: Database) -> Address:
        """Answer at another port, or after a rename at another address (the endpoint's name follows the identifier)."""
        ...

    async def snapshot_taken(self, resource_id: str, snapshot: str) -> None:
        """Keep a copy of an instance's data, stopped or running, without cutting its sessions."""
        ...

    async def snapshot_copied(self, source: str, target: str) -> None:
        """Keep a copy of a snapshot under another key."""
        ...

    async def snapshot_dropped(self, snapshot: str) -> None:
        """Delete a snapshot's data for good."""
        ...

    async def deleted(self, resource_id: str) -> None:
        """Delete an instance's data for good; snapshots stay."""
        ...

    async def set_unreachable(self, identifiers: tuple[str, ...]) -> None:
        """Swallow what the provider's processes send to the instances of these patterns (fnmatch); `()` ends it.

        They are known by their sessions' application name, which begins with `fairlead-`; applications log in as
        before, as from inside the network.
        """
        ...


class NoDatabases:
    """Addresses with nothing behind them: a lifecycle without databases, for thousands of instances."""

    async def created(self, database: Database) -> Address:
        """Return an address where nothing ever answers (RFC 5737, TEST-NET-1)."""
        return Address("192.0.2.1", database.port)

    async def restored(self, database: Database, snapshot: str) -> Address:
        """Return as `created`."""
        del snapshot
        return await self.created(database)

    async def cloned(self, database: Database, source_resource_id: str) -> Address:
        """Return as `created`."""
        del source_resource_id
        return await self.created(database)

    async def moved(self, database: Database) -> Address:
        """Return as `created`."""
        return await self.created(database)

    async def password_set(self, resource_id: str, password: str) -> None:
        """Do nothing."""

    async def stopped(self, resource_id: str) -> None:
        """Do nothing."""

    async def started(self, resource_id: str) -> None:
        """Do nothing."""

    async def rebooted(self, resource_id: str) -> None:
        """Do nothing."""

    async def snapshot_taken(self, resource_id: str, snapshot: str) -> None:
        """Do nothing."""

    async def snapshot_copied(self, source: str, target: str) -> None:
        """Do nothing."""

    async def snapshot_dropped(self, snapshot: str) -> None:
        """Do nothing."""

    async def deleted(self, resource_id: str) -> None:
        """Do nothing."""

    async def set_unreachable(self, identifiers: tuple[str, ...]) -> None:
        """Do nothing."""
