"""RDS's databases on this machine: a real PostgreSQL server behind each simulated instance, at port and address.

As on RDS nobody is superuser but `rdsadmin`, whose password nobody has; the master user has `rds_superuser`, CREATEDB
and CREATEROLE (Amazon RDS User Guide, "Understanding the rds_superuser role"); TLS is required, as `rds.force_ssl`
is from PostgreSQL 15 on, under an authority of this simulator's own in place of `rds-ca-rsa2048-g1`.
"""

import asyncio
import fnmatch
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from psycopg import sql

from devcloud import addresses
from devcloud.aws.dataplane import Address, Database
from devcloud.certificates import authority_in
from devcloud.errors import DevcloudError
from devcloud.paths import private_folder, remove_tree, write_private
from devcloud.postgres import copies, server
from devcloud.postgres.authenticator import Caller
from devcloud.postgres.instance import Flavour, Instance, Record, Site
from devcloud.postgres.programs import Major
from devcloud.postgres.scram import scram_verifier

_FIRST = 257  # of the addresses of a /16; those before are other parts of the platform
_LAST = 65_000
_STARTS_AT_ONCE = 3
_NEWEST: Major = 18
_OURS = "fairlead-*"
_STATEMENTS = (
    "CREATE ROLE rds_superuser NOLOGIN",
    "CREATE ROLE rds_replication NOLOGIN",
    "CREATE ROLE rds_password NOLOGIN",
    "CREATE ROLE rds_iam NOLOGIN",
    "GRANT pg_monitor, pg_signal_backend, pg_checkpoint, rds_replication TO rds_superuser WITH ADMIN OPTION",
    "GRANT rds_password TO rds_superuser WITH ADMIN OPTION",
    "CREATE DATABASE rdsadmin",
    "REVOKE ALL ON DATABASE rdsadmin FROM PUBLIC",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Where the databases are.

    Attributes:
        folder: Their files.
        octet: The second number of their addresses, in a /16 that the caller has leased.
        durable: Whether they sync to disk.
        eager: Whether a server is started when its instance is created, not at the first login.
    """

    folder: Path
    octet: int
    durable: bool = False
    eager: bool = False


class Databases:
    """The databases of one simulator: a `devcloud.aws.dataplane.DataPlane`."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._folder = private_folder(options.folder)
        self._shut: tuple[str, ...] = ()
        authority = authority_in(self._folder, "rds-ca")
        self._site = Site(
            folder=self._folder,
            flavour=Flavour(superuser="rdsadmin", statements=_STATEMENTS, admit=_admit),
            authority=authority,
            durable=options.durable,
            is_shut=self._is_shut,
            starting=asyncio.Semaphore(_STARTS_AT_ONCE),
            drawing=asyncio.Lock(),
        )
        self.authority_pem = authority.pem
        """What a client trusts: the bundle that RDS publishes."""
        self._instances: dict[str, Instance] = {}
        self._next = _next_number(self._folder)

    # What the lifecycle asks

    async def created(self, database: Database) -> Address:
        """See `DataPlane`."""
        return await self._opened(database, self._remembered(database.resource_id) or self._new(database))

    async def restored(self, database: Database, snapshot: str) -> Address:
        """See `DataPlane`."""
        record = self._remembered(database.resource_id)
        if record is None:
            kept = self._snapshot(snapshot)
            source = _read(kept / "record.json")
            if source is None:
                raise DevcloudError(f"snapshot {snapshot} has no data here: take it again")
            record = _adopted(self._new(database), source)
            if source.has_data:
                await copies.copy(kept, self._home(database.resource_id))
        return await self._opened(database, record)

    async def cloned(self, database: Database, source_resource_id: str) -> Address:
        """See `DataPlane`."""
        record = self._remembered(database.resource_id)
        if record is None:
            source = await self._instance(source_resource_id).copy_to(self._home(database.resource_id))
            record = _adopted(self._new(database), source)
        return await self._opened(database, record)

    async def password_set(self, resource_id: str, password: str) -> None:
        """See `DataPlane`."""
        await self._instance(resource_id).set_password(password)

    async def stopped(self, resource_id: str) -> None:
        """See `DataPlane`."""
        await self._instance(resource_id).stop()

    async def started(self, resource_id: str) -> None:
        """See `DataPlane`."""
        await self._instance(resource_id).start()

    async def rebooted(self, resource_id: str) -> None:
        """See `DataPlane`."""
        await self._instance(resource_id).reboot()

    async def moved(self, database: Database) -> Address:
        """See `DataPlane`."""
        instance = self._instance(database.resource_id)
        before = instance.record
        host = before.host if before.name == database.identifier else self._free_host()
        await instance.move(database.identifier, host, database.port)
        return Address(host, database.port)

    async def snapshot_taken(self, resource_id: str, snapshot: str) -> None:
        """See `DataPlane`."""
        folder = self._snapshot(snapshot)
        if _read(folder / "record.json") is not None:
            return
        server.erase(folder)
        record = await self._instance(resource_id).copy_to(private_folder(folder))
        write_private(folder / "record.json", msgspec.json.encode(record))

    async def snapshot_copied(self, source: str, target: str) -> None:
        """See `DataPlane`."""
        kept, folder = self._snapshot(source), self._snapshot(target)
        record = _read(kept / "record.json")
        if record is None:
            raise DevcloudError(f"snapshot {source} has no data here: take it again")
        if _read(folder / "record.json") is not None:
            return
        server.erase(folder)
        if record.has_data:
            await copies.copy(kept, folder)
        write_private(private_folder(folder) / "record.json", msgspec.json.encode(record))

    async def snapshot_dropped(self, snapshot: str) -> None:
        """See `DataPlane`."""
        await asyncio.to_thread(server.erase, self._snapshot(snapshot))

    async def deleted(self, resource_id: str) -> None:
        """See `DataPlane`."""
        # One that was kept for its backups may be of a former process's time.
        if resource_id in self._instances or self.has_data(resource_id):
            instance = self._instance(resource_id)
            self._instances.pop(resource_id, None)
            await instance.erase()

    async def set_unreachable(self, identifiers: tuple[str, ...]) -> None:
        """See `DataPlane`."""
        self._shut = identifiers

    # What judges ask

    def has_data(self, resource_id: str) -> bool:
        """Return whether anything of an instance's data is on this machine."""
        return self._home(resource_id).exists()

    async def close(self) -> None:
        """End all servers; what they hold stays."""
        await asyncio.gather(*(instance.close() for instance in self._instances.values()))

    # Its parts

    def _is_shut(self, name: str, caller: Caller) -> bool:
        return fnmatch.fnmatchcase(caller.application, _OURS) and any(
            fnmatch.fnmatchcase(name, pattern) for pattern in self._shut
        )

    async def _opened(self, database: Database, record: Record) -> Address:
        known = self._instances.get(database.resource_id)
        if known is None:
            folder = self._home(database.resource_id)
            known = Instance(self._site, folder, record, major=_major(database.version))
            await known.open()
            self._instances[database.resource_id] = known
            if self._options.eager:
                await known.server()
        return Address(known.record.host, known.record.port)

    def _new(self, database: Database) -> Record:
        return Record(
            name=database.identifier,
            host=self._free_host(),
            port=database.port,
            username=database.username,
            database=database.db_name,
            verifier=scram_verifier(database.password),
        )

    def _remembered(self, resource_id: str) -> Record | None:
        known = self._instances.get(resource_id)
        return known.record if known is not None else _read(self._home(resource_id) / "record.json")

    def _instance(self, resource_id: str) -> Instance:
        instance = self._instances.get(resource_id)
        if instance is not None:
            return instance
        record = self._remembered(resource_id)
        if record is None:
            raise DevcloudError(f"instance {resource_id} has no database: it was not created here, or is deleted")
        folder = self._home(resource_id)
        return Instance(self._site, folder, record, major=server.major_of(folder) or _NEWEST)

    def _home(self, resource_id: str) -> Path:
        return self._folder / "instances" / resource_id

    def _snapshot(self, key: str) -> Path:
        # A key may hold any character, and be longer than a file's name.
        return self._folder / "snapshots" / hashlib.sha256(key.encode()).hexdigest()[:24]

    def _free_host(self) -> str:
        if self._next > _LAST:
            raise DevcloudError(f"127.{self._options.octet}.0.0/16 has no free address left: delete {self._folder}")
        host = addresses.address_in(self._options.octet, self._next)
        self._next += 1
        # No address ever serves two instances: a login that was published for one must not reach another.
        write_private(self._folder / "next", str(self._next))
        return host


@asynccontextmanager
async def open_databases(options: Options) -> AsyncIterator[Databases]:
    """Have databases for the length of a block; their files stay."""
    databases = Databases(options)
    try:
        yield databases
    finally:
        await databases.close()


def discard(folder: Path) -> None:
    """Delete all that ended databases left, where data lie outside the folder too."""
    for kind in ("instances", "snapshots"):
        for path in (folder / kind).glob("*"):
            server.discard(path)
    for blueprint in folder.glob("blueprint-*"):
        server.discard(blueprint)
    remove_tree(folder)


def _admit(record: Record) -> tuple[str, ...]:
    names = {"user": sql.Identifier(record.username), "verifier": sql.Literal(record.verifier)}
    statements = [
        sql.SQL("CREATE ROLE {user} LOGIN CREATEDB CREATEROLE IN ROLE rds_superuser PASSWORD {verifier}"),
        sql.SQL("ALTER DATABASE postgres OWNER TO {user}"),
    ]
    if record.database not in {None, "postgres"}:
        statements.append(sql.SQL("CREATE DATABASE {database} OWNER {user}"))
        names["database"] = sql.Identifier(str(record.database))
    return tuple(statement.format(**names).as_string() for statement in statements)


def _adopted(new: Record, source: Record) -> Record:
    """Return a new instance's record with what is in the data that it was given."""
    return msgspec.structs.replace(
        new,
        username=source.username,
        database=source.database,
        verifier=source.verifier,
        has_data=source.has_data,
    )


def _read(path: Path) -> Record | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except FileNotFoundError:
        return None


def _next_number(folder: Path) -> int:
    path = folder / "next"
    return int(path.read_text()) if path.exists() else _FIRST


def _major(version: str) -> Major:
    # The two that there are stand for the others.
    return _NEWEST if version.partition(".")[0] in {"17", "18"} else 16
