"""One simulated instance's database: a real PostgreSQL server of its own behind a TLS proxy at its own address.

The server is made, and started, at the first login. A cloud's flavour of PostgreSQL is its superuser, the roles that
are there from its creation, and what the administrator may do.
"""

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psycopg
from psycopg import sql

from devcloud import addresses, daemons
from devcloud.certificates import Authority, Subject
from devcloud.daemons import Lifetime
from devcloud.errors import DevcloudError
from devcloud.paths import private_folder, write_private
from devcloud.postgres import copies, upgrades
from devcloud.postgres import server as postgres
from devcloud.postgres.access import EVERYBODY, Access
from devcloud.postgres.authenticator import Admit, Caller, Refuse, Silence, no_encryption
from devcloud.postgres.majors import Major
from devcloud.postgres.scram import Verifier, scram_verifier
from devcloud.postgres.server import Server
from devcloud.postgres.tls_proxy import Endpoint, TLSProxy

_SETTINGS = {
    "shared_buffers": "8MB",
    "max_connections": "100",
    "autovacuum": "off",
    "bgwriter_delay": "10s",
    "wal_writer_delay": "10s",
    "max_wal_senders": "3",
}


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of an instance over restarts of its simulator, and of a snapshot.

    Attributes:
        name: What people call it, for the certificate.
        host: Its address.
        port: Its port.
        username: The administrator's login.
        database: The database that it was created with, None for none.
        verifier: Of the administrator's password, as long as there is no server that keeps it.
        is_stopped: Whether it refuses.
        has_data: Whether there are data: made at the first login, or copied.
        access: Whom it lets begin a session.
    """

    name: str
    host: str
    port: int
    username: str
    database: str | None
    verifier: str
    is_stopped: bool = False
    has_data: bool = msgspec.field(default=False, name="is_born")
    access: Access = EVERYBODY


class StatementError(DevcloudError):
    """PostgreSQL refused a statement.

    Attributes:
        sqlstate: Its code, empty where there was no answer.
    """

    def __init__(self, message: str, sqlstate: str) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


def _no_entry(caller: Caller) -> Refuse:
    encryption = "SSL encryption" if caller.encrypted else "no encryption"
    subject = f'host "{caller.host}", user "{caller.user}", database "{caller.database}"'
    return Refuse("28000", f"no pg_hba.conf entry for {subject}, {encryption}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavour:
    """A cloud's PostgreSQL.

    Attributes:
        superuser: The cloud's own superuser.
        statements: What that one runs once, before there is any administrator.
        extensions: Those that the cloud offers.
        admit: The statements that make the administrator of a record, and the record's database.
        shut_out: What a caller meets whose address the firewall does not let in; by default what Azure answers.
        certifies_hosts: Whether a certificate names the instance's address, or `verify-full` by it is refused.
    """

    superuser: str
    statements: tuple[str, ...]
    extensions: frozenset[str]
    admit: Callable[[Record], tuple[str, ...]]
    shut_out: Callable[[Caller], Refuse | Silence] = _no_entry
    certifies_hosts: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What the instances of one cloud share.

    Attributes:
        folder: Where their files are.
        flavour: Their cloud's PostgreSQL.
        authority_in: Returns who signs the certificate of the instance in a folder, made when absent.
        durable: Whether servers sync to disk.
        is_shut: Whether a caller's packets to the instance of that name are swallowed.
        starting: Holds servers' starts to a few at once.
        drawing: Held while a blueprint is made: one is made at a time.
    """

    folder: Path
    flavour: Flavour
    authority_in: Callable[[Path], Authority]
    durable: bool
    is_shut: Callable[[str, Caller], bool]
    starting: asyncio.Semaphore
    drawing: asyncio.Lock

    async def blueprint(self, major: Major) -> Path:
        """Return the folder that new servers of a version are copied from, made at first."""
        options = self.options(self.folder / f"blueprint-{major}", major)
        async with self.drawing:
            return await copies.blueprint(options, self.flavour.statements)

    def options(self, folder: Path, major: Major) -> postgres.Options:
        """Return how a server in a folder is run."""
        return postgres.Options(
            folder=folder,
            lifetime=Lifetime.WITH_PARENT,
            durable=self.durable,
            major=major,
            extensions=self.flavour.extensions,
            log_statement="none",
            superuser=self.flavour.superuser,
            settings=_SETTINGS,
            preloaded="pg_stat_statements",
        )


class Instance:
    """An instance's TLS proxy and server; calls are taken one after another."""

    def __init__(self, site: Site, folder: Path, record: Record, *, major: Major) -> None:
        self._site = site
        self._folder = private_folder(folder)
        self._record = record
        self._major: Major = major
        self._proxy: TLSProxy | None = None
        self._server: Server | None = None
        self._lock = asyncio.Lock()

    @property
    def record(self) -> Record:
        """What is remembered of it."""
        return self._record

    # What its cloud asks

    async def open(self) -> None:
        """Listen, unless it is stopped.

        Raises:
            DevcloudError: Its address is taken; the text says by what.
        """
        async with self._lock:
            self._save()
            await self._listen()

    async def close(self) -> None:
        """Refuse, and end the server; nothing is forgotten."""
        async with self._lock:
            await self._refuse()

    async def stop(self) -> None:
        """Refuse until it is started."""
        async with self._lock:
            self._remember(is_stopped=True)
            await self._refuse()

    async def start(self) -> None:
        """Answer again."""
        async with self._lock:
            self._remember(is_stopped=False)
            await self._listen()

    async def reboot(self) -> None:
        """Cut the sessions and end the server, which the next login starts again."""
        async with self._lock:
            if self._proxy is not None:
                await self._proxy.sever()
            await self._end_server()

    async def upgrade(self, major: Major) -> None:
        """Cut the sessions and bring the data to a newer version; where PostgreSQL refuses, all is as it was."""
        async with self._lock:
            if self._proxy is not None:
                await self._proxy.sever()
            await self._end_server()
            await self._bring_to(major)

    async def move(self, name: str, host: str, port: int) -> None:
        """Answer elsewhere, and no more where it did."""
        async with self._lock:
            if (name, host, port) == (self._record.name, self._record.host, self._record.port):
                return
            await self._stop_proxy()
            self._remember(name=name, host=host, port=port)
            await self._listen()

    async def set_password(self, password: str) -> None:
        """Give the administrator a password, in place of the one before."""
        async with self._lock:
            verifier = scram_verifier(password)
            self._remember(verifier=verifier)
            if self._record.has_data:
                server = await self._running()
                await server.execute(_password_change(self._record.username, verifier))

    async def execute(self, statements: Sequence[str], *, database: str = "postgres") -> None:
        """Run statements as the cloud's superuser in one of its databases.

        Raises:
            StatementError: PostgreSQL refused one; those before it were done.
            DevcloudError: It is stopped, or its server does not start.
        """
        async with self._lock:
            if self._record.is_stopped:
                raise DevcloudError(f"instance {self._record.name} is stopped: start it before its users or databases")
            server = await self._running()
            try:
                await server.execute(*statements, database=database)
            except psycopg.Error as error:
                raise StatementError(f"instance {self._record.name}: {error}", error.sqlstate or "") from error

    async def set_access(self, access: Access) -> None:
        """Choose whom it lets begin a session; sessions go on."""
        async with self._lock:
            self._remember(access=access)

    @property
    def authority_pem(self) -> bytes:
        """The certificate of the authority that signs its certificate."""
        return self._site.authority_in(self._folder).pem

    async def renew_certificate(self) -> None:
        """Present a certificate that its present authority signs; sessions go on."""
        async with self._lock:
            certificate, key = self._issue()
            if self._proxy is not None:
                self._proxy.present(certificate, key)

    async def copy_to(self, folder: Path) -> Record:
        """Copy its data, where it has any yet, into a folder, sessions going on; return what else there is to know."""
        async with self._lock:
            record = msgspec.structs.replace(self._record, verifier=await self._verifier())
            if record.has_data and self._is_running():
                await copies.back_up(await self._running(), self._folder, folder)
            elif record.has_data:
                await copies.copy(self._folder, folder)
            return record

    async def erase(self) -> None:
        """End it and delete its data for good."""
        await self.close()
        postgres.erase(self._folder)

    async def server(self) -> Server:
        """Return its server, made and started when need be."""
        async with self._lock:
            return await self._running()

    # What a caller meets

    async def _decide(self, caller: Caller) -> Admit | Refuse | Silence:
        access = self._record.access
        if access.requires_tls and not caller.encrypted:
            return no_encryption(caller.host)
        if not access.admits(caller.host):
            return self._site.flavour.shut_out(caller)
        if self._site.is_shut(self._record.name, caller):
            return Silence()
        try:
            async with self._lock:
                if self._record.is_stopped:
                    return Refuse("57P03", "the database system is shutting down")
                server = await self._running()
                current = await _password_of(server, caller.user)
        except (DevcloudError, psycopg.Error) as error:
            print(f"instance {self._record.name}: no login: {error}", file=sys.stderr, flush=True)
            return Refuse("57P03", "the database system is not accepting connections")
        return Admit(None if current is None else Verifier.parse(current))

    # Its parts, under the lock

    async def _running(self) -> Server:
        if self._server is not None and self._is_running():
            return self._server
        async with self._site.starting:
            if not self._record.has_data:
                # What an interruption left is half a server.
                await postgres.stop(self._folder)
                copies.erase_data(self._folder)
                await copies.copy(await self._site.blueprint(self._major), self._folder)
            else:
                # A snapshot may be of an older version than what is restored from it.
                await self._bring_to(self._major)
            major = postgres.major_of(self._folder) or self._major
            server = await postgres.start(self._site.options(self._folder, major))
            if not self._record.has_data:
                await server.execute(*self._site.flavour.admit(self._record))
                self._remember(has_data=True)
        self._server = server
        return server

    async def _bring_to(self, major: Major) -> None:
        present = postgres.major_of(self._folder)
        if self._record.has_data and present is not None and present < major:
            options = self._site.options
            await upgrades.upgrade(options(self._folder, present), options(self._folder, major))
        self._major = major

    def _is_running(self) -> bool:
        return self._server is not None and daemons.is_alive(self._server.identity)

    async def _verifier(self) -> str:
        # The application may have changed it in the database, where the cloud does not look.
        if self._server is None or not self._is_running():
            return self._record.verifier
        return await _password_of(self._server, self._record.username) or self._record.verifier

    async def _listen(self) -> None:
        if self._proxy is not None or self._record.is_stopped:
            return
        record = self._record
        certificate, key = self._issue()
        endpoint = Endpoint(
            host=record.host,
            port=record.port,
            socket=postgres.socket_of(self._folder),
            certificate=certificate,
            key=key,
            # Whether it must be is the instance's to say: `_decide`.
            requires_tls=False,
        )
        proxy = TLSProxy(endpoint, authenticator=self._decide)
        try:
            await proxy.start()
        except OSError as error:
            holder = addresses.holder_of(record.host, record.port)
            raise DevcloudError(f"{record.host}:{record.port} is taken by {holder}: stop it, try again") from error
        self._proxy = proxy

    def _issue(self) -> tuple[Path, Path]:
        hosts = (self._record.host,) if self._site.flavour.certifies_hosts else ()
        subject = Subject(self._record.name, hosts=hosts, is_server=True)
        return self._site.authority_in(self._folder).issue(subject).write(self._folder, "front")

    async def _stop_proxy(self) -> None:
        proxy, self._proxy = self._proxy, None
        if proxy is not None:
            await proxy.stop()

    async def _refuse(self) -> None:
        await self._stop_proxy()
        await self._end_server()

    async def _end_server(self) -> None:
        self._server = None
        # Not killed because the machine is busy: files are copied of a server that has ended by itself.
        await postgres.stop(self._folder)

    def _remember(self, **changes: str | int | bool | Access | None) -> None:
        self._record = msgspec.structs.replace(self._record, **changes)
        self._save()

    def _save(self) -> None:
        write_private(self._folder / "record.json", msgspec.json.encode(self._record))


async def _password_of(server: Server, role: str) -> str | None:
    query = sql.SQL(
        "SELECT rolpassword FROM pg_catalog.pg_authid WHERE rolcanlogin AND rolname = {} "
        "AND coalesce(rolvaliduntil, 'infinity') > pg_catalog.now()"
    ).format(sql.Literal(role))
    rows = await server.execute(query.as_string())
    return None if not rows or rows[0][0] is None else str(rows[0][0])


def _password_change(role: str, verifier: str) -> str:
    statement = sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(verifier))
    return statement.as_string()
