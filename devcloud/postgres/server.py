"""PostgreSQL servers on a unix socket with SCRAM, run from programs of PyPI.

Those programs are mostly built without OpenSSL; TLS is the work of `devcloud.postgres.tls_proxy`. The server's
log holds its statements.
"""

import asyncio
import contextlib
import hashlib
import os
import re
import secrets
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import psycopg
import psycopg.conninfo

from devcloud import accounts, daemons
from devcloud.accounts import Account
from devcloud.daemons import Command, Lifetime
from devcloud.errors import DevcloudError
from devcloud.paths import private_folder, remove_tree, write_private
from devcloud.postgres import contrib
from devcloud.postgres.majors import Major
from devcloud.postgres.programs import reachable_programs

PORT = 5432
LogStatement = Literal["none", "ddl", "mod", "all"]
"""PostgreSQL's setting `log_statement`."""
_SUPERUSER = "postgres"
_SOCKET_NAME = f".s.PGSQL.{PORT}"
_SOCKET_PATH_BYTES = 107  # sun_path of unix(7), less its closing zero
_PLAIN = re.compile(r"[\w/.-]+", re.ASCII)
_READY_LIMIT_S = 60.0
_POLL_S = 0.05
_CHECKSUMS_SINCE = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run a server.

    Attributes:
        folder: Where data, log and password live.
        major: The version, used when the data folder is new.
        extensions: Those that the server has, of a cloud (`programs.reachable_programs`); None for all of its package.
        lifetime: Whether it dies with this process.
        durable: Whether it syncs to disk.
        log_statement: PostgreSQL's setting of that name.
        superuser: The name of the role that only tests and devcloud itself use.
        settings: More of PostgreSQL's settings.
        preloaded: A module that the server loads at its start, where there is one of it.
    """

    folder: Path
    lifetime: Lifetime
    durable: bool
    major: Major = 16
    extensions: frozenset[str] | None = None
    log_statement: LogStatement = "all"
    superuser: str = _SUPERUSER
    settings: Mapping[str, str] = field(default_factory=dict)
    preloaded: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server.

    Attributes:
        socket: The unix socket that it listens on.
        log: Its log, with statements.
        superuser_password: The password of the role that only tests and devcloud itself use.
        programs: The folder of psql, pg_dump and the others.
        identity: The postmaster.
        superuser: That role's name.
    """

    socket: Path
    log: Path
    superuser_password: str = field(repr=False)
    programs: Path
    identity: daemons.Identity
    superuser: str = _SUPERUSER

    @property
    def psql(self) -> Path:
        """The psql of this version."""
        return self.programs / "psql"

    def superuser_conninfo(self, database: str = "postgres") -> str:
        """Return libpq's connection string for the superuser, straight to the socket; it holds the password."""
        return psycopg.conninfo.make_conninfo(
            host=str(self.socket.parent),
            port=PORT,
            dbname=database,
            user=self.superuser,
            password=self.superuser_password,
            connect_timeout=10,
        )

    async def execute(self, *statements: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run statements as superuser, each for itself; return the last one's rows."""
        rows: list[tuple[object, ...]] = []
        async with await psycopg.AsyncConnection.connect(
            self.superuser_conninfo(database), autocommit=True
        ) as connection:
            for statement in statements:
                cursor = await connection.execute(statement.encode())
                rows = await cursor.fetchall() if cursor.description else []
        return rows


@asynccontextmanager
async def ephemeral(options: Options) -> AsyncIterator[Server]:
    """Run a server for the length of a block."""
    server = await start(options)
    try:
        yield server
    finally:
        await stop(options.folder, grace_s=5.0)
        discard(options.folder)


async def start(options: Options) -> Server:
    """Start a server in its folder, its data made when absent, or find the one that runs; return when it answers.

    Raises:
        DevcloudError: initdb or the server failed; the end of its log is in the text.
    """
    folder = private_folder(options.folder)
    running = find(folder, options.major, superuser=options.superuser)
    if running is not None:
        await _until_ready(running)
        return running
    site = _site(folder, options.major, options.extensions)
    await daemons.stop_strays("postgres", _data_argument(site))
    if site.account.is_foreign and not _password_file(folder).exists():
        # Somebody cleared the folder, and the data of `nobody` lie elsewhere: without their password they are lost.
        remove_tree(site.home / "data")
    password = _password_in(folder)
    if not (site.home / "data" / "PG_VERSION").exists():
        await asyncio.to_thread(_initdb, site, options, password, site.home / "data")
    command = Command(
        name="postgres",
        arguments=_arguments(site, options),
        log=folder / "server.log",
        environment=_environment(site.programs),
        # An immediate shutdown: children end too, shared memory is given back.
        death_signal=signal.SIGQUIT,
        account=site.account.prefix,
    )
    daemon = daemons.launch(command, options.lifetime)
    daemons.save(_pid_file(folder), daemon)
    server = _server(folder, site, daemon.identity, options.superuser)
    await _until_ready(server)
    return server


def find(folder: Path, major: Major, *, superuser: str = _SUPERUSER) -> Server | None:
    """Return the server that runs in a folder, or None."""
    identity = daemons.load(_pid_file(folder))
    if identity is None or not daemons.is_alive(identity):
        return None
    return _server(folder, _site(folder, major), identity, superuser)


def socket_of(folder: Path) -> Path:
    """Return the unix socket that a folder's server listens on when it runs."""
    account = accounts.choose()
    return _socket_path(accounts.home_path(folder / "home", account), account)


def data_of(folder: Path) -> Path:
    """Return where a folder's server keeps its data, for those who copy them."""
    return accounts.home_for(folder / "home", accounts.choose()) / "data"


def major_of(folder: Path) -> Major | None:
    """Return the version that a folder's data were made by, None when there are none."""
    path = data_of(folder) / "PG_VERSION"
    if not path.exists():
        return None
    made_by = int(path.read_text())
    return next((major for major in get_args(Major) if major == made_by), None)


async def make_data(options: Options, target: Path) -> None:
    """Make the data of a new server beside those of the one in its folder.

    Raises:
        DevcloudError: initdb failed.
    """
    site = _site(options.folder, options.major, options.extensions)
    await asyncio.to_thread(_initdb, site, options, _password_in(options.folder), target)


def socket_folder(folder: Path) -> Path:
    """Return the folder of the unix socket of a folder's server, made when absent."""
    account = accounts.choose()
    return _socket_in(accounts.home_for(folder / "home", account), account).parent


def password_of(folder: Path) -> str:
    """Return the superuser's password of a folder's server, made when absent."""
    return _password_in(folder)


async def stop(folder: Path, *, grace_s: float = 20.0) -> None:
    """Stop the server of a folder by a fast shutdown; its data stay."""
    identity = daemons.load(_pid_file(folder))
    if identity is not None:
        await daemons.stop(identity, number=signal.SIGINT, grace_s=grace_s)
    _pid_file(folder).unlink(missing_ok=True)
    # Where the path would not do the socket lies outside, and nobody else would remove its folder.
    _remove_if_empty(socket_of(folder).parent)


def discard(folder: Path) -> None:
    """Delete a stopped server's data where they lie outside its folder, which is left for others to delete.

    For servers in temporary folders: those run as `nobody` keep their data elsewhere.
    """
    account = accounts.choose()
    if account.is_foreign:
        remove_tree(accounts.home_path(folder / "home", account))


@dataclass(frozen=True, slots=True)
class _Site:
    """Where a server's programs and files really are, and who runs them."""

    account: Account
    programs: Path
    home: Path
    socket: Path


def _site(folder: Path, major: Major, extensions: frozenset[str] | None = None) -> _Site:
    account = accounts.choose()
    home = accounts.home_for(folder / "home", account)
    return _Site(account, reachable_programs(account, major, extensions), home, _socket_in(home, account))


def _server(folder: Path, site: _Site, identity: daemons.Identity, superuser: str) -> Server:
    return Server(
        socket=site.socket,
        log=folder / "server.log",
        superuser_password=_password_in(folder),
        programs=site.programs,
        identity=identity,
        superuser=superuser,
    )


def erase(folder: Path) -> None:
    """Delete a stopped server's data for good."""
    discard(folder)
    remove_tree(folder)


def _initdb(site: _Site, options: Options, password: str, target: Path) -> None:
    password_file = site.home / "initdb-password"
    write_private(password_file, password)
    os.chown(password_file, site.account.uid, -1)
    draft = site.home / "draft"
    remove_tree(draft)
    command = (
        *site.account.prefix,
        str(site.programs / "initdb"),
        f"--pgdata={draft}",
        f"--username={options.superuser}",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--no-locale",
        "--no-instructions",
        "--no-sync",
        # On by default from 18 on; an upgrade keeps what the data have.
        *(("--no-data-checksums",) if options.major >= _CHECKSUMS_SINCE else ()),
    )
    try:
        done = subprocess.run(command, check=False, capture_output=True, env=_environment(site.programs), text=True)
    finally:
        password_file.unlink(missing_ok=True)
    if done.returncode != 0:
        raise DevcloudError(f"initdb failed in {site.home}: {done.stderr.strip()}")
    # Whole or not at all: an interrupted initdb leaves a draft, never a data folder.
    draft.rename(target)


def _data_argument(site: _Site) -> str:
    return f"-D{site.home / 'data'}"


def _arguments(site: _Site, options: Options) -> tuple[str, ...]:
    settings = {
        "listen_addresses": "",
        "port": str(PORT),
        "unix_socket_directories": str(site.socket.parent),
        "unix_socket_permissions": "0700",
        "log_statement": options.log_statement,
        "log_line_prefix": "%m [%p] %q%u@%d ",
        "log_connections": "off",
        "log_checkpoints": "off",
        "max_connections": "300",
        "shared_buffers": "64MB",
        "password_encryption": "scram-sha-256",
    }
    settings |= options.settings
    if options.preloaded and any((site.programs.parent / "lib").rglob(f"{options.preloaded}.so")):
        settings["shared_preload_libraries"] = options.preloaded
    if not options.durable:
        # What was committed outlives the server that is killed, though not the machine.
        settings |= {"fsync": "off", "full_page_writes": "off"}
    return (
        str(site.programs / "postgres"),
        _data_argument(site),
        *(f"--{name}={value}" for name, value in settings.items()),
    )


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def _environment(programs: Path) -> dict[str, str]:
    # PGDATA, PGPORT and their kin of the caller are none of this server's business.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return kept | {"LC_ALL": "C", "TZ": "UTC"} | contrib.environment(programs)


def _password_file(folder: Path) -> Path:
    return folder / "superuser-password"


def _password_in(folder: Path) -> str:
    path = _password_file(folder)
    if not path.exists():
        write_private(path, secrets.token_urlsafe(24))
    return path.read_text()


def _socket_path(home: Path, account: Account) -> Path:
    socket = home / "run" / _SOCKET_NAME
    # The server and libpq take the folder for a list of folders: a comma would end it.
    if len(os.fsencode(socket)) <= _SOCKET_PATH_BYTES and _PLAIN.fullmatch(str(socket)):
        return socket
    digest = hashlib.sha256(os.fsencode(home.absolute())).hexdigest()[:16]
    return Path("/tmp") / f"fairlead-{account.uid}-{digest}" / _SOCKET_NAME  # noqa: S108 - proven ours before use


def _socket_in(home: Path, account: Account) -> Path:
    socket = _socket_path(home, account)
    folder = socket.parent
    if not account.is_foreign:
        private_folder(folder)
        return socket
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.lstat().st_uid not in {0, account.uid}:
        raise DevcloudError(f"{folder} belongs to another user: remove it, then try again")
    os.chown(folder, account.uid, account.uid)
    return socket


async def _until_ready(server: Server) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _READY_LIMIT_S
    while True:
        try:
            await server.execute("SELECT 1")
        except psycopg.OperationalError as error:
            cause = str(error)
        else:
            return
        if not daemons.is_alive(server.identity):
            raise DevcloudError(f"postgres ended: {daemons.log_tail(server.log)}; see {server.log}")
        if loop.time() > deadline:
            raise DevcloudError(f"postgres does not answer after {_READY_LIMIT_S:g} s: {cause}; see {server.log}")
        await asyncio.sleep(_POLL_S)


def _pid_file(folder: Path) -> Path:
    return folder / "postgres.pid.json"
