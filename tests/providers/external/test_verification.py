"""How whoever answers proves that it is the server, and what its answer to a login says of the password."""

from __future__ import annotations

import asyncio
import secrets
import struct
from asyncio import StreamReader, StreamWriter, start_unix_server
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from devcloud.certificates import Authority, Subject, new_authority
from devcloud.postgres.authenticator import Admit, Caller, Refuse
from devcloud.postgres.scram import Verifier
from devcloud.postgres.tls_proxy import Endpoint as ProxyEndpoint
from devcloud.postgres.tls_proxy import Serve, TLSProxy
from providers.external.credential import Credential, Login, LoginAnswer
from providers.external.endpoint import UNVERIFIED, VERIFIED, VERIFIED_BY_AUTHORITY, Endpoint
from providers.external.login import try_login
from providers.external.sql import scram
from providers.external.sql.session import ConnectionSettings, Unreached, open_session, roots_of
from runtime.errors import Blocked, Terminal

CREDENTIAL = Credential("app", "a secret for no log")
_GREETING = struct.pack("!cII", b"R", 8, 0) + struct.pack("!cIII", b"K", 12, 1, 1) + struct.pack("!cIc", b"Z", 5, b"I")
"""AuthenticationOk, BackendKeyData, ReadyForQuery (PostgreSQL manual, "Message Formats")."""


@pytest.fixture(scope="module")
def authorities() -> dict[str, Authority]:
    """Two authorities: the server's own, and another one."""
    return {name: new_authority(f"the {name} authority") for name in ("own", "another")}


@dataclass
class Server:
    """A server at 127.0.0.1 that presents a certificate; `callers` are those to whom it got as far as a login."""

    folder: Path
    authority: Authority
    certified_for: str
    port: int = 0
    connections: int = 0
    callers: list[Caller] = field(default_factory=list)

    async def _admit(self, caller: Caller) -> Admit | Refuse:
        self.callers.append(caller)
        return Admit(Verifier.parse(scram.verifier(CREDENTIAL.password, secrets.token_bytes(16))))

    @staticmethod
    async def _greet(reader: StreamReader, writer: StreamWriter) -> None:
        (length,) = struct.unpack("!I", await reader.readexactly(4))
        await reader.readexactly(length - 4)
        writer.write(_GREETING)
        with suppress(OSError):
            await reader.read()
        writer.close()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Server]:
        """Answer for the length of a block."""
        names = self.authority.issue(Subject("project:instance", hosts=(self.certified_for,)))
        certificate, key = names.write(self.folder, "server")
        socket = self.folder / "postgres"
        behind = await start_unix_server(self._greet, socket)
        endpoint = ProxyEndpoint(host="127.0.0.1", port=0, socket=socket, certificate=certificate, key=key)
        proxy = TLSProxy(endpoint, self._counted, authenticator=self._admit)
        await proxy.start()
        self.port = proxy.port
        try:
            yield self
        finally:
            await proxy.stop()
            behind.close()

    def _counted(self, _peer: str) -> Serve:
        self.connections += 1
        return Serve()


@dataclass(frozen=True)
class Case:
    """A server by its certificate, how it is to be verified, and whether that holds.

    `trusted` are the authorities in the endpoint's PEM, `system` those of this machine.
    """

    sslmode: str
    proves: bool
    trusted: tuple[str, ...] = ("own",)
    system: tuple[str, ...] = ()
    certified_for: str = "127.0.0.1"


CASES = {
    "its name, by its authority": Case(VERIFIED, proves=True),
    "another name": Case(VERIFIED, proves=False, certified_for="db.example.org"),
    "its name, by another authority": Case(VERIFIED, proves=False, trusted=("another",)),
    "its name, while its authority changes": Case(VERIFIED, proves=True, trusted=("another", "own")),
    "its authority alone": Case(VERIFIED_BY_AUTHORITY, proves=True, certified_for="db.example.org"),
    "another authority": Case(
        VERIFIED_BY_AUTHORITY, proves=False, trusted=("another",), certified_for="db.example.org"
    ),
    "its authority alone, while it changes": Case(
        VERIFIED_BY_AUTHORITY, proves=True, trusted=("own", "another"), certified_for="db.example.org"
    ),
    "the system's roots": Case(VERIFIED, proves=True, trusted=(), system=("another", "own")),
    "the system's roots and another name": Case(
        VERIFIED, proves=False, trusted=(), system=("own",), certified_for="db.example.org"
    ),
    "none of the system's roots": Case(VERIFIED, proves=False, trusted=(), system=("another",)),
    "the system's roots beside an authority of its own": Case(
        VERIFIED, proves=False, trusted=("another",), system=("own",)
    ),
}


def pem_of(authorities: dict[str, Authority], names: tuple[str, ...]) -> str:
    return "".join(authorities[name].pem.decode() for name in names)


def system_roots(folder: Path, pem: str, patched: pytest.MonkeyPatch) -> None:
    """Have these certificates be the system's roots."""
    (folder / "roots.pem").write_text(pem)
    (folder / "empty").mkdir(exist_ok=True)
    patched.setenv("SSL_CERT_FILE", str(folder / "roots.pem"))
    patched.setenv("SSL_CERT_DIR", str(folder / "empty"))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_login_and_session_are_made_only_with_whom_the_endpoint_proves(
    case: Case, authorities: dict[str, Authority], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system_roots(tmp_path, pem_of(authorities, case.system), monkeypatch)
    async with Server(tmp_path, authorities["own"], case.certified_for).serving() as server:
        endpoint = Endpoint("127.0.0.1", server.port, "orders", case.sslmode, pem_of(authorities, case.trusted))
        answer = await try_login(endpoint, CREDENTIAL)
        is_open = await opens(endpoint)

    assert (answer.login, is_open) == ((Login.OK, True) if case.proves else (Login.UNKNOWN, False))
    # Whoever is not proven gets neither a name nor a proof of the password.
    assert len(server.callers) == (2 if case.proves else 0)
    assert server.connections >= 2


async def opens(endpoint: Endpoint) -> bool:
    with roots_of(endpoint) as file:
        try:
            session = await open_session(ConnectionSettings(endpoint, CREDENTIAL, file), "orders")
        except Unreached:
            return False
        await session.close()
    return True


UNPROVEN = {
    "encrypted alone": Endpoint("127.0.0.1", 0, "orders", UNVERIFIED, "own"),
    "not even that": Endpoint("127.0.0.1", 0, "orders", "prefer", "own"),
    "by the system's authorities, of any name": Endpoint("127.0.0.1", 0, "orders", VERIFIED_BY_AUTHORITY),
}


@pytest.mark.parametrize("unproven", UNPROVEN.values(), ids=UNPROVEN)
async def test_nothing_is_sent_where_nothing_proves_who_answers(
    unproven: Endpoint, authorities: dict[str, Authority], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = authorities["own"].pem.decode()
    system_roots(tmp_path, pem, monkeypatch)
    async with Server(tmp_path, authorities["own"], "127.0.0.1").serving() as server:
        ca = pem if unproven.ca else ""
        endpoint = Endpoint(unproven.host, server.port, unproven.database, unproven.sslmode, ca)
        answer = await try_login(endpoint, CREDENTIAL)
        with roots_of(endpoint) as file, pytest.raises(Terminal, match="nothing was sent") as refused:
            await open_session(ConnectionSettings(endpoint, CREDENTIAL, file), "orders")

    assert (answer.login, refused.value.reason) == (Login.UNKNOWN, "CredentialsForbidden")
    assert (server.connections, server.callers) == (0, [])


def test_machine_without_public_authorities_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nothing"))
    endpoint = Endpoint("db.example.org", 5432, "orders", VERIFIED)
    with (
        pytest.raises(Blocked, match=r"db\.example\.org:5432: there is no file of public authorities"),
        roots_of(endpoint),
    ):
        pass


@dataclass
class Refusing(Server):
    """A server whose firewall has a rule for nobody, or which has no room left."""

    refusal: Refuse = field(kw_only=True)

    async def _admit(self, caller: Caller) -> Admit | Refuse:
        self.callers.append(caller)
        return self.refusal


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        pytest.param("28000", "no pg_hba.conf entry for host", id="a client whose address has no rule"),
        pytest.param("53300", "sorry, too many clients already", id="a server without room"),
    ],
)
async def test_a_refusal_before_the_password_was_asked_for_is_unknown(code: str, sentence: str, tmp_path: Path) -> None:
    authority = await asyncio.to_thread(new_authority, "the own authority")
    async with Refusing(tmp_path, authority, "127.0.0.1", refusal=Refuse(code, sentence)).serving() as server:
        endpoint = Endpoint("127.0.0.1", server.port, "orders", VERIFIED, authority.pem.decode())
        answer = await try_login(endpoint, CREDENTIAL)

    assert answer == LoginAnswer(Login.UNKNOWN, code)
    assert len(server.callers) == 1


async def test_a_refused_password_is_refused(tmp_path: Path) -> None:
    authority = await asyncio.to_thread(new_authority, "the own authority")
    async with Server(tmp_path, authority, "127.0.0.1").serving() as server:
        endpoint = Endpoint("127.0.0.1", server.port, "orders", VERIFIED, authority.pem.decode())
        answer = await try_login(endpoint, Credential("app", "another"))

    assert answer == LoginAnswer(Login.REFUSED, "28P01")
