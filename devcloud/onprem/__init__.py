"""The platform team's own PostgreSQL server, as Fairlead's on-prem provider meets it.

A server behind a TLS proxy at a loop-back address, and the provider's login: no superuser, LOGIN CREATEDB CREATEROLE,
SELECT on two columns of pg_authid, the owner of one database of its own; nobody else connects to that database nor to
the server's own ones.
"""

import secrets
import signal
from dataclasses import dataclass, field
from pathlib import Path

from devcloud import daemons
from devcloud.addresses import Lease, address_in
from devcloud.certificates import Subject, authority_in
from devcloud.daemons import Command, Daemon, Lifetime
from devcloud.listening import until_listening
from devcloud.paths import private_folder, remove_tree, write_private
from devcloud.postgres import server as postgres
from devcloud.postgres.majors import Major
from devcloud.postgres.scram import scram_verifier
from devcloud.postgres.server import LogStatement, Server
from devcloud.postgres.tls_proxy import PORT

MAJOR: Major = 16
"""Of the server that `fairlead up` starts."""
ADMIN_LOGIN = "fairlead_admin"
ADMIN_DATABASE = "fairlead"
_READY_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run it: where its files are, how long it lives, whether it syncs to disk, which version, what it logs."""

    folder: Path
    lifetime: Lifetime
    durable: bool
    major: Major = 16
    log_statement: LogStatement = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class OnPremServer:
    """A running server and what the platform team would enter in Fairlead about it.

    Attributes:
        host: Its address: a loop-back one, or of a platform with a node the node's.
        port: Its TCP port.
        authority_pem: The authority that signed its certificate: `verify-full` holds.
        database: The administrator's own database.
        username: The administrator's login.
        password: That login's password.
        server: The server behind the TLS proxy, for tests and for the superuser.
        certificate: The TLS proxy's certificate file, for more proxies before the same server.
        key: Its private key's file.
    """

    host: str
    port: int
    authority_pem: bytes
    database: str
    username: str
    password: str = field(repr=False)
    server: Server
    certificate: Path
    key: Path


async def start(options: Options, lease: Lease) -> OnPremServer:
    """Start server and TLS proxy, or find them running; return when a login through TLS can succeed.

    Raises:
        DevcloudError: The address is taken (the text says by what), or a program failed.
    """
    folder = private_folder(options.folder)
    server = await postgres.start(
        postgres.Options(
            folder=folder / "server",
            lifetime=options.lifetime,
            durable=options.durable,
            major=options.major,
            log_statement=options.log_statement,
        )
    )
    await _prepare(server, _password_in(folder))
    host = _host_for(folder, lease)
    if not _proxy_runs(folder):
        authority = authority_in(folder, "authority")
        authority.issue(Subject("onprem", hosts=(host, "127.0.0.1", "localhost"))).write(folder, "front")
        daemon = _launch_proxy(folder, host, server, options.lifetime, lease)
        await until_listening(daemon, (host, PORT), name="TLS proxy", words="relays to", limit_s=_READY_LIMIT_S)
    return _describe(folder, host, server)


def find(folder: Path, major: Major, host: str) -> OnPremServer | None:
    """Return what runs in a folder, or None unless server and TLS proxy both do."""
    server = postgres.find(folder / "server", major) if folder.exists() else None
    if server is None or not _proxy_runs(folder):
        return None
    return _describe(folder, host, server)


def server_in(folder: Path, octet: int) -> OnPremServer | None:
    """Return the server of `fairlead up` that runs in a folder, by the second number of its address; else None."""
    return find(folder, MAJOR, _pods_host(folder) or address_in(octet, 1))


def erase(folder: Path) -> None:
    """Delete a stopped server with all its databases for good."""
    postgres.erase(folder / "server")
    remove_tree(folder)


def _describe(folder: Path, host: str, server: Server) -> OnPremServer:
    return OnPremServer(
        host=host,
        port=PORT,
        authority_pem=authority_in(folder, "authority").pem,
        database=ADMIN_DATABASE,
        username=ADMIN_LOGIN,
        password=_password_in(folder),
        server=server,
        certificate=folder / "front.crt",
        key=folder / "front.key",
    )


def _host_for(folder: Path, lease: Lease) -> str:
    """Return a server's address: of a new one that which pods reach, if any; one that was there keeps what it had."""
    if lease.pods_address is not None and not (folder / "authority.crt").exists():
        write_private(folder / "pods-host", lease.pods_address)
    return _pods_host(folder) or lease.address(1)


def _pods_host(folder: Path) -> str | None:
    file = folder / "pods-host"
    return file.read_text() if file.exists() else None


def _proxy_runs(folder: Path) -> bool:
    proxy = daemons.load(_pid_file(folder))
    return proxy is not None and daemons.is_alive(proxy)


async def stop(folder: Path, *, grace_s: float = 20.0, is_temporary: bool = False) -> None:
    """Stop TLS proxy and server; the data stay, but for those of a temporary folder that had to lie outside it."""
    proxy = daemons.load(_pid_file(folder))
    if proxy is not None:
        await daemons.stop(proxy, number=signal.SIGTERM, grace_s=5.0)
    _pid_file(folder).unlink(missing_ok=True)
    await postgres.stop(folder / "server", grace_s=grace_s)
    if is_temporary:
        postgres.discard(folder / "server")


async def _prepare(server: Server, password: str) -> None:
    """Make the administrator's login and database, once; the plain password never reaches the server's log."""
    databases = await server.execute("SELECT datname FROM pg_catalog.pg_database")
    if (ADMIN_DATABASE,) in databases:
        return
    verifier = scram_verifier(password)
    roles = await server.execute("SELECT rolname FROM pg_catalog.pg_roles")
    verb = "ALTER" if (ADMIN_LOGIN,) in roles else "CREATE"
    await server.execute(
        f"{verb} ROLE {ADMIN_LOGIN} LOGIN CREATEDB CREATEROLE NOSUPERUSER NOREPLICATION NOBYPASSRLS "
        f"PASSWORD '{verifier}'",
        "REVOKE CONNECT, TEMPORARY ON DATABASE postgres FROM PUBLIC",
        "REVOKE CONNECT, TEMPORARY ON DATABASE template1 FROM PUBLIC",
        # The database comes last but for its grants: as long as it is absent, all of this is done again.
        f"CREATE DATABASE {ADMIN_DATABASE} OWNER {ADMIN_LOGIN}",
    )
    await server.execute(
        f"REVOKE CONNECT, TEMPORARY ON DATABASE {ADMIN_DATABASE} FROM PUBLIC",
        # A shared catalog's privileges are kept per database: this is where the administrator reads it.
        f"GRANT SELECT (rolname, xmin) ON pg_catalog.pg_authid TO {ADMIN_LOGIN}",
        database=ADMIN_DATABASE,
    )


def _launch_proxy(folder: Path, host: str, server: Server, lifetime: Lifetime, lease: Lease) -> Daemon:
    log = folder / "front.log"
    # Only this start's words say when it listens; those of a process that died are kept beside them.
    daemons.set_aside(log)
    arguments = daemons.python(
        *("-m", "devcloud.postgres.tls_proxy", f"--host={host}", f"--socket={server.socket}"),
        *(f"--certificate={folder / 'front.crt'}", f"--key={folder / 'front.key'}"),
    )
    # The TLS proxy inherits the lease: the addresses stay ours for as long as it listens.
    command = Command(name="front", arguments=arguments, log=log, descriptors=(lease.descriptor,))
    daemon = daemons.launch(command, lifetime)
    daemons.save(_pid_file(folder), daemon)
    return daemon


def _password_in(folder: Path) -> str:
    path = folder / "admin-password"
    if not path.exists():
        write_private(path, secrets.token_urlsafe(24))
    return path.read_text()


def _pid_file(folder: Path) -> Path:
    return folder / "front.pid.json"
