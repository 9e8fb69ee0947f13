"""What a simulated cloud asks of the databases behind its instances.

Its lifecycle awaits each call: a state follows when the call returned. Calls may come again, after a restart of the
simulator for every instance that it knows (`create`, then `stop` where that is its state): each is idempotent.
Statements are as idempotent as the cloud writes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from devcloud.certificates import new_authority
from devcloud.postgres.access import Access

NOWHERE: Final = "127.255.255.254"
"""The host of databases that are not served: nothing listens there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """An instance as its database sees it.

    Attributes:
        resource_id: What no other instance ever has (DbiResourceId of RDS).
        identifier: What people call it, and what its certificate is made out to.
        port: Its TCP port.
        username: Its administrator.
        password: That user's password; with a restore the one that is taken over from the source is kept instead.
        db_name: The database that it is created with, None for none but `postgres`.
        version: Its version, as `16` or `16.9`.
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
    """Where an instance answers."""

    host: str
    port: int


class DataPlane(Protocol):
    """The databases behind the instances of one simulator. Every method raises DevcloudError when it cannot.

    A snapshot's key is any text that no other snapshot, of any account and region, has at the same time.
    """

    async def create(self, database: Database) -> Address:
        """Give a new instance its address; a login succeeds from here on."""
        ...

    async def restore(self, database: Database, snapshot: str) -> Address:
        """Give a new instance a copy of a snapshot's data: its databases, roles and passwords."""
        ...

    async def clone(self, database: Database, source_resource_id: str) -> Address:
        """Give a new instance a copy of another instance's data as they are now (point in time: latest)."""
        ...

    async def set_password(self, resource_id: str, password: str) -> None:
        """Give the administrator a password; no login by the former one succeeds from here on, sessions go on."""
        ...

    async def execute(self, resource_id: str, statements: Sequence[str], *, database: str = "postgres") -> None:
        """Run statements as the cloud's superuser in a database of a running instance: its users and databases.

        Raises:
            StatementError: PostgreSQL refused one; those before it were done.
        """
        ...

    async def set_access(self, resource_id: str, access: Access) -> None:
        """Choose who may begin a session from here on; sessions go on."""
        ...

    def authority_of(self, resource_id: str) -> bytes:
        """Return the certificate of the authority that signs an instance's certificate, PEM."""
        ...

    async def add_authority(self, resource_id: str) -> None:
        """Make the authority that the next rotation takes, where each instance has one of its own."""
        ...

    def next_authority_of(self, resource_id: str) -> bytes:
        """Return the certificate of the authority that the next rotation takes, PEM; empty where none was added."""
        ...

    async def rotate_authority(self, resource_id: str) -> None:
        """Give an instance another authority, the next one or a new one, and a certificate of it; sessions go on."""
        ...

    async def stop(self, resource_id: str) -> None:
        """Cut the sessions and refuse connections; the data stay."""
        ...

    async def start(self, resource_id: str) -> None:
        """Answer again."""
        ...

    async def reboot(self, resource_id: str) -> None:
        """Cut the sessions and answer again."""
        ...

    async def upgrade(self, resource_id: str, version: str) -> None:
        """Cut the sessions and answer again, by a server of that version and with the same data."""
        ...

    async def move(self, database: Database) -> Address:
        """Answer at another port, or after a rename at another address (the endpoint's name follows the identifier)."""
        ...

    async def take_snapshot(self, resource_id: str, snapshot: str) -> None:
        """Keep a copy of an instance's data, stopped or running, without cutting its sessions."""
        ...

    async def copy_snapshot(self, source: str, target: str) -> None:
        """Keep a copy of a snapshot under another key."""
        ...

    async def delete_snapshot(self, snapshot: str) -> None:
        """Delete a snapshot's data for good."""
        ...

    async def delete(self, resource_id: str) -> None:
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

    def __init__(self) -> None:
        self._authorities: dict[str, bytes] = {}
        self._next: dict[str, bytes] = {}

    async def create(self, database: Database) -> Address:
        """Return an address at which nothing listens: whoever connects is refused at once, and no packet leaves."""
        return Address(NOWHERE, database.port)

    async def restore(self, database: Database, snapshot: str) -> Address:
        """Return as `create`."""
        del snapshot
        return await self.create(database)

    async def clone(self, database: Database, source_resource_id: str) -> Address:
        """Return as `create`."""
        del source_resource_id
        return await self.create(database)

    async def move(self, database: Database) -> Address:
        """Return as `create`."""
        return await self.create(database)

    async def set_password(self, resource_id: str, password: str) -> None:
        """Do nothing."""

    async def execute(self, resource_id: str, statements: Sequence[str], *, database: str = "postgres") -> None:
        """Do nothing."""

    async def set_access(self, resource_id: str, access: Access) -> None:
        """Do nothing."""

    def authority_of(self, resource_id: str) -> bytes:
        """Return the certificate of an authority that signs nothing, the same until it is rotated."""
        if resource_id not in self._authorities:
            self._authorities[resource_id] = new_authority(f"nothing behind {resource_id}").pem
        return self._authorities[resource_id]

    async def add_authority(self, resource_id: str) -> None:
        """Make the certificate of the next authority, which signs nothing either."""
        self._next[resource_id] = new_authority(f"nothing behind {resource_id}").pem

    def next_authority_of(self, resource_id: str) -> bytes:
        """Return the certificate of the next authority."""
        return self._next.get(resource_id, b"")

    async def rotate_authority(self, resource_id: str) -> None:
        """Take the next authority; forget the present one where none was added, so that there is another one."""
        self._authorities.pop(resource_id, None)
        if resource_id in self._next:
            self._authorities[resource_id] = self._next.pop(resource_id)

    async def stop(self, resource_id: str) -> None:
        """Do nothing."""

    async def start(self, resource_id: str) -> None:
        """Do nothing."""

    async def reboot(self, resource_id: str) -> None:
        """Do nothing."""

    async def upgrade(self, resource_id: str, version: str) -> None:
        """Do nothing."""

    async def take_snapshot(self, resource_id: str, snapshot: str) -> None:
        """Do nothing."""

    async def copy_snapshot(self, source: str, target: str) -> None:
        """Do nothing."""

    async def delete_snapshot(self, snapshot: str) -> None:
        """Do nothing."""

    async def delete(self, resource_id: str) -> None:
        """Do nothing."""

    async def set_unreachable(self, identifiers: tuple[str, ...]) -> None:
        """Do nothing."""
