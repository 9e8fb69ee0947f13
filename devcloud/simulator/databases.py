"""Databases on this machine: a real PostgreSQL server behind each simulated instance, at port and address.

How a cloud's PostgreSQL differs is its `Engine`: the roles that it makes, who signs certificates.
"""

import asyncio
import fnmatch
import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from devcloud import addresses
from devcloud.certificates import Authority, authority_in
from devcloud.errors import DevcloudError
from devcloud.paths import private_folder, remove_tree, write_private
from devcloud.postgres import copies, server
from devcloud.postgres.access import Access
from devcloud.postgres.authenticator import Caller
from devcloud.postgres.instance import Flavour, Instance, Record, Site
from devcloud.postgres.majors import MAJORS, major_for
from devcloud.postgres.scram import scram_verifier
from devcloud.simulator.dataplane import Address, Database

_FIRST = 257  # of the addresses of a /16; those before are other parts of the platform
_LAST = 65_000
_STARTS_AT_ONCE = 3
_OURS = "fairlead-*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How a cloud's PostgreSQL differs.

    Attributes:
        flavour: Its superuser, its roles, its administrator's rights.
        authority: The name of the authority's files, `<name>.crt` and `<name>.key`.
        authority_each: Whether each instance has an authority of its own; else all have the one of the folder.
    """

    flavour: Flavour
    authority: str
    authority_each: bool = False


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
    """The databases of one simulator: a `devcloud.simulator.dataplane.DataPlane`."""

    def __init__(self, engine: Engine, options: Options) -> None:
        self._engine = engine
        self._options = options
        self._folder = private_folder(options.folder)
        self._shut: tuple[str, ...] = ()
        self._shared = None if engine.authority_each else authority_in(self._folder, engine.authority)
        self._site = Site(
            folder=self._folder,
            flavour=engine.flavour,
            authority_in=self._authority_in,
            durable=options.durable,
            is_shut=self._is_shut,
            starting=asyncio.Semaphore(_STARTS_AT_ONCE),
            drawing=asyncio.Lock(),
        )
        self._instances: dict[str, Instance] = {}
        self._next = _next_number(self._folder)

    # What the lifecycle asks

    async def create(self, database: Database) -> Address:
        """See `DataPlane`."""
        return await self._opened(database, self._remembered(database.resource_id) or self._new(database))

    async def restore(self, database: Database, snapshot: str) -> Address:
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

    async def clone(self, database: Database, source_resource_id: str) -> Address:
        """See `DataPlane`."""
        record = self._remembered(database.resource_id)
        if record is None:
            source = await self._instance(source_resource_id).copy_to(self._home(database.resource_id))
            record = _adopted(self._new(database), source)
        return await self._opened(database, record)

    async def set_password(self, resource_id: str, password: str) -> None:
        """See `DataPlane`."""
        await self._instance(resource_id).set_password(password)

    async def stop(self, resource_id: str) -> None:
        """See `DataPlane`."""
        await self._instance(resource_id).stop()

    async def start(self, resource_id: str) -> None:
        """See `DataPlane`."""
        await self._instance(resource_id).start()

    async def reboot(self, resource_id: str) -> None:
        """See `DataPlane`."""
        await self._instance(resource_id).reboot()

    async def upgrade(self, resource_id: str, version: str) -> None:
        """See `DataPlane`."""
        await self._instance(resource_id).upgrade(major_for(version))

    async def move(self, database: Database) -> Address:
        """See `DataPlane`."""
        instance = self._instance(database.resource_id)
        before = instance.record
        host = before.host if before.name == database.identifier else self._free_host()
        await instance.move(database.identifier, host, database.port)
        return Address(host, database.port)

    async def take_snapshot(self, resource_id: str, snapshot: str) -> None:
        """See `DataPlane`."""
        folder = self._snapshot(snapshot)
        if _read(folder / "record.json") is not None:
            return
        server.erase(folder)
        record = await self._instance(resource_id).copy_to(private_folder(folder))
        write_private(folder / "record.json", msgspec.json.encode(record))

    async def copy_snapshot(self, source: str, target: str) -> None:
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

    async def delete_snapshot(self, snapshot: str) -> None:
        """See `DataPlane`."""
        await asyncio.to_thread(server.erase, self._snapshot(snapshot))

    async def delete(self, resource_id: str) -> None:
        """See `DataPlane`."""
        # One that was kept for its backups may be of a former process's time.
        if resource_id in self._instances or self.has_data(resource_id):
            instance = self._instance(resource_id)
            self._instances.pop(resource_id, None)
            await instance.erase()

    async def set_unreachable(self, identifiers: tuple[str, ...]) -> None:
        """See `DataPlane`."""
        self._shut = identifiers

    async def execute(self, resource_id: str, statements: Sequence[str], *, database: str = "postgres") -> None:
        """See `DataPlane`."""
        instance = self._instances.get(resource_id)
        if instance is None:
            raise DevcloudError(f"instance {resource_id} does not run: create it before its users or databases")
        await instance.execute(statements, database=database)

    async def set_access(self, resource_id: str, access: Access) -> None:
        """See `DataPlane`."""
        await self._instance(resource_id).set_access(access)

    def authority_of(self, resource_id: str) -> bytes:
        """See `DataPlane`."""
        return self._instance(resource_id).authority_pem

    async def add_authority(self, resource_id: str) -> None:
        """See `DataPlane`."""
        self._refuse_shared(resource_id)
        for path in self._authority_files(resource_id, self._next_authority):
            path.unlink(missing_ok=True)
        authority_in(self._home(resource_id), self._next_authority)

    def next_authority_of(self, resource_id: str) -> bytes:
        """See `DataPlane`."""
        certificate, key = self._authority_files(resource_id, self._next_authority)
        is_added = certificate.exists() and key.exists()
        return authority_in(self._home(resource_id), self._next_authority).pem if is_added else b""

    async def rotate_authority(self, resource_id: str) -> None:
        """See `DataPlane`."""
        self._refuse_shared(resource_id)
        instance = self._instance(resource_id)
        present = self._authority_files(resource_id, self._engine.authority)
        following = self._authority_files(resource_id, self._next_authority)
        # Of an interrupted rotation one of the two may have its place already.
        is_added = any(path.exists() for path in following)
        for path, replacement in zip(present, following, strict=True):
            if replacement.exists():
                replacement.replace(path)
            elif not is_added:
                path.unlink(missing_ok=True)
        await instance.renew_certificate()

    # What judges ask

    def has_data(self, resource_id: str) -> bool:
        """Return whether anything of an instance's data is on this machine."""
        return self._home(resource_id).exists()

    async def close(self) -> None:
        """End all servers; what they hold stays."""
        await asyncio.gather(*(instance.close() for instance in self._instances.values()))

    # Its parts

    def _authority_in(self, folder: Path) -> Authority:
        return self._shared or authority_in(folder, self._engine.authority)

    @property
    def _next_authority(self) -> str:
        return f"{self._engine.authority}-next"

    def _authority_files(self, resource_id: str, name: str) -> tuple[Path, Path]:
        home = self._home(resource_id)
        return home / f"{name}.crt", home / f"{name}.key"

    def _refuse_shared(self, resource_id: str) -> None:
        if self._shared is not None:
            raise DevcloudError(f"instance {resource_id} shares its authority with the others")

    def _is_shut(self, name: str, caller: Caller) -> bool:
        return fnmatch.fnmatchcase(caller.application, _OURS) and any(
            fnmatch.fnmatchcase(name, pattern) for pattern in self._shut
        )

    async def _opened(self, database: Database, record: Record) -> Address:
        known = self._instances.get(database.resource_id)
        if known is None:
            folder = self._home(database.resource_id)
            known = Instance(self._site, folder, record, major=major_for(database.version))
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
        return Instance(self._site, folder, record, major=server.major_of(folder) or MAJORS[-1])

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
async def open_databases(engine: Engine, options: Options) -> AsyncIterator[Databases]:
    """Have databases for the length of a block; their files stay."""
    databases = Databases(engine, options)
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
