"""A model of the databases behind instances: who may log in by which password, which databases there are.

It stands where devcloud has real PostgreSQL servers: a `devcloud.simulator.dataplane.DataPlane`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import NameOID

from devcloud.postgres.access import Access
from devcloud.simulator.dataplane import Address, Database
from fairlead.simulation.virtual_time import START
from providers.external.credential import NO_ANSWER, Credential, Login, LoginAnswer

_WRONG_PASSWORD, _NO_DATABASE = "28P01", "3D000"
_ROLE = re.compile(r'^CREATE ROLE "([^"]+)" LOGIN.* PASSWORD \'(.*)\'$')
_PASSWORD = re.compile(r'^ALTER ROLE "([^"]+)" PASSWORD \'(.*)\'$')
_DROP_ROLE = re.compile(r'^DROP ROLE "([^"]+)"$')
_DATABASE = re.compile(r'^CREATE DATABASE "([^"]+)"')
_DROP_DATABASE = re.compile(r'^DROP DATABASE "([^"]+)"$')


@dataclass(slots=True)
class Server:
    """One server: verifiers by role, and of each database the number under which it was made."""

    verifiers: dict[str, str] = field(default_factory=dict)
    databases: dict[str, int] = field(default_factory=dict)
    runs: bool = True


class Logins:
    """All servers of one simulated cloud, by their resource ids; `made` counts the databases that ever were."""

    def __init__(self, emit: Callable[..., None]) -> None:
        self.snapshots: dict[str, Server] = {}
        self.servers: dict[str, Server] = {}
        self.made = 0
        self._emit = emit

    async def create(self, database: Database) -> Address:
        """Have a server."""
        if database.resource_id not in self.servers:
            self.servers[database.resource_id] = Server()
        return Address(f"db-{database.identifier}", database.port)

    async def execute(self, resource_id: str, statements: Sequence[str], *, database: str = "postgres") -> None:
        """Carry out statements."""
        del database
        server = self.servers[resource_id]
        for statement in statements:
            self._carry_out(resource_id, server, statement)

    def _carry_out(self, resource_id: str, server: Server, statement: str) -> None:
        if (match := _ROLE.match(statement) or _PASSWORD.match(statement)) is not None:
            server.verifiers[match[1]] = match[2]
        elif (match := _DROP_ROLE.match(statement)) is not None:
            server.verifiers.pop(match[1], None)
        elif (match := _DATABASE.match(statement)) is not None:
            self.made += 1
            server.databases[match[1]] = self.made
            self._emit("database", resource_id, match[1], self.made)
        elif (match := _DROP_DATABASE.match(statement)) is not None:
            server.databases.pop(match[1], None)
            self._emit("dropped", resource_id, match[1])

    async def stop(self, resource_id: str) -> None:
        """Stop a server."""
        self.servers[resource_id].runs = False

    async def start(self, resource_id: str) -> None:
        """Start a server."""
        self.servers[resource_id].runs = True

    async def reboot(self, resource_id: str) -> None:
        """Reboot a server."""
        del resource_id

    async def upgrade(self, resource_id: str, version: str) -> None:
        """Upgrade a server, which keeps what it has."""
        del resource_id, version

    async def take_snapshot(self, resource_id: str, snapshot: str) -> None:
        """Keep what a server has."""
        self.snapshots[snapshot] = deepcopy(self.servers[resource_id])

    async def copy_snapshot(self, source: str, target: str) -> None:
        """Copy a snapshot."""
        self.snapshots[target] = deepcopy(self.snapshots[source])

    async def delete_snapshot(self, snapshot: str) -> None:
        """Forget a snapshot."""
        self.snapshots.pop(snapshot, None)

    async def restore(self, database: Database, snapshot: str) -> Address:
        """Have a server with what a snapshot has."""
        self.servers.setdefault(database.resource_id, deepcopy(self.snapshots[snapshot]))
        return await self.create(database)

    async def clone(self, database: Database, source_resource_id: str) -> Address:
        """Have a server with what another one has."""
        self.servers.setdefault(database.resource_id, deepcopy(self.servers[source_resource_id]))
        return await self.create(database)

    async def move(self, database: Database) -> Address:
        """Have a server at another address."""
        return await self.create(database)

    async def set_password(self, resource_id: str, password: str) -> None:
        """Do nothing: nobody logs in as the administrator."""

    async def set_access(self, resource_id: str, access: Access) -> None:
        """Do nothing: everybody is let in."""

    async def set_unreachable(self, identifiers: tuple[str, ...]) -> None:
        """Do nothing: the provider tries no login."""

    async def add_authority(self, resource_id: str) -> None:
        """Do nothing: there is one authority."""

    def next_authority_of(self, resource_id: str) -> bytes:
        """Return no second authority."""
        del resource_id
        return b""

    async def rotate_authority(self, resource_id: str) -> None:
        """Do nothing: there is one authority."""

    async def delete(self, resource_id: str) -> None:
        """Have a server no more."""
        self.servers.pop(resource_id, None)

    def authority_of(self, resource_id: str) -> bytes:
        """Return the certificate of the authority."""
        del resource_id
        return authority()

    def admits(self, resource_id: str, user: str, password: str, database: str) -> bool:
        """Return whether a login succeeds."""
        server = self.servers.get(resource_id)
        if server is None or not server.runs or database not in {*server.databases, "postgres"}:
            return False
        return is_proven(password, server.verifiers.get(user, ""))

    def answer(self, resource_id: str, credential: Credential, database: str) -> LoginAnswer:
        """Return what a server answers to a login that lists its databases."""
        server = self.servers.get(resource_id)
        if server is None or not server.runs:
            return NO_ANSWER
        if not self.admits(resource_id, credential.username, credential.password, "postgres"):
            return LoginAnswer(Login.REFUSED, _WRONG_PASSWORD)
        if database not in {*server.databases, "postgres"}:
            return LoginAnswer(Login.UNKNOWN, _NO_DATABASE)
        return LoginAnswer(Login.OK, databases=tuple(server.databases.items()))


@cache
def is_proven(password: str, verifier: str) -> bool:
    """Return whether a password is the one of a SCRAM verifier (RFC 5802, section 3)."""
    if not verifier.startswith("SCRAM-SHA-256$"):
        return False
    rest, keys = verifier.removeprefix("SCRAM-SHA-256$").split("$")
    iterations, salt = rest.split(":")
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), int(iterations))
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    return stored == base64.b64decode(keys.split(":")[0])


@cache
def authority() -> bytes:
    """Return the certificate of an authority that is the same in each run."""
    key = ed25519.Ed25519PrivateKey.from_private_bytes(b"\1" * 32)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of the simulation")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(START.replace(year=2020))
        .not_valid_after(START.replace(year=2040))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, None)
    )
    return certificate.public_bytes(serialization.Encoding.PEM)
