"""Servers that ask for the administrator's password in every way but the one that keeps it: none of them gets it.

Each has a certificate that verifies, as one would whose ProviderConfig a stranger wrote, or another's TLS proxy.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from devcloud.certificates import Subject, new_authority
from devcloud.onprem import OnPremServer
from providers.external.credential import Credential, Login
from providers.external.endpoint import VERIFIED, Endpoint
from providers.external.login import try_login
from providers.onprem.client import connect
from providers.onprem.models import ProviderConfigSpec
from runtime.errors import Failure, Terminal
from tests.postgres.conftest import config_of, secrets_of

pytestmark = pytest.mark.postgres

_SALT = b"salt"
_OK = struct.pack("!i", 0)
_READY = b"Z" + struct.pack("!i", 5) + b"I"


@dataclass
class Received:
    """What a hostile server received after the start-up message, message by message."""

    connections: int = 0
    messages: list[bytes] = field(default_factory=list)


@dataclass(frozen=True)
class Line:
    """One connection after its start-up message."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    received: Received

    async def ask(self, body: bytes) -> bytes:
        """Send an authentication request and return the answer; it is empty when the client hangs up."""
        self.writer.write(b"R" + struct.pack("!i", len(body) + 4) + body)
        return await self.answer()

    async def answer(self) -> bytes:
        try:
            kind, length = struct.unpack("!ci", await self.reader.readexactly(5))
            body = await self.reader.readexactly(length - 4)
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            return b""
        self.received.messages.append(kind + body)
        return bytes(body)


Talk = Callable[[Line], Awaitable[None]]


def _asks(*body: bytes) -> Talk:
    async def talk(line: Line) -> None:
        await line.ask(b"".join(body))

    return talk


async def _lets_in_at_once(line: Line) -> None:
    line.writer.write(b"R" + struct.pack("!i", 8) + _OK + _READY)
    await line.answer()


async def _signs_wrongly(line: Line) -> None:
    first = await line.ask(struct.pack("!i", 10) + b"SCRAM-SHA-256\0\0")
    nonce = first.partition(b"r=")[2].decode()
    text = f"r={nonce}xyz,s={base64.b64encode(b'0123456789abcdef').decode()},i=4096"
    await line.ask(struct.pack("!i", 11) + text.encode())
    line.writer.write(b"R" + struct.pack("!i", 4 + 4 + 46) + struct.pack("!i", 12) + b"v=" + b"A" * 43 + b"=")
    line.writer.write(b"R" + struct.pack("!i", 8) + _OK + _READY)
    await line.answer()


async def _ends_scram_early(line: Line) -> None:
    await line.ask(struct.pack("!i", 10) + b"SCRAM-SHA-256\0\0")
    await _lets_in_at_once(line)


_TALKS: dict[str, Talk] = {
    "clear text": _asks(struct.pack("!i", 3)),
    "MD5": _asks(struct.pack("!i", 5), _SALT),
    "crypt": _asks(struct.pack("!i", 4), b"ab"),
    "no password at all": _lets_in_at_once,
    "SASL by PLAIN": _asks(struct.pack("!i", 10), b"PLAIN\0\0"),
    "SASL by OAUTHBEARER": _asks(struct.pack("!i", 10), b"OAUTHBEARER\0\0"),
    "SASL by SCRAM-SHA-1": _asks(struct.pack("!i", 10), b"SCRAM-SHA-1\0\0"),
    "GSS": _asks(struct.pack("!i", 7)),
    "SSPI": _asks(struct.pack("!i", 9)),
    "Kerberos": _asks(struct.pack("!i", 2)),
    "SCRAM with a wrong signature": _signs_wrongly,
    "SCRAM that ends before its proof": _ends_scram_early,
}
_SCRAM = frozenset({"SCRAM with a wrong signature", "SCRAM that ends before its proof"})
_OTHER_FORMS = frozenset({"clear text", "MD5", "no password at all", "GSS"})


@asynccontextmanager
async def _hostile(
    server: OnPremServer, talk: Talk, *, tls: bool = True, pair: tuple[Path, Path] | None = None
) -> AsyncIterator[tuple[int, Received]]:
    """Listen at the good server's address; yield the port and what is received.

    `pair` is a certificate and its key, the good server's unless there is another.
    """
    received, context = Received(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*(pair or (server.certificate, server.key)))
    context.set_alpn_protocols(["postgresql"])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.connections += 1
        try:
            request = await reader.readexactly(8)
            assert request == struct.pack("!ii", 8, 80877103)
            if not tls:
                writer.write(b"N")
                received.messages += [left] if (left := await reader.read()) else []
                return
            writer.write(b"S")
            await writer.start_tls(context)
            (length,) = struct.unpack("!i", await reader.readexactly(4))
            await reader.readexactly(length - 4)
            await talk(Line(reader, writer, received))
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            return
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, server.host, 0)
    try:
        yield listener.sockets[0].getsockname()[1], received
    finally:
        listener.close()
        await listener.wait_closed()


def _at(server: OnPremServer, port: int) -> ProviderConfigSpec:
    return msgspec.structs.replace(config_of(server), port=port)


def _forms(username: str, password: str) -> tuple[bytes, ...]:
    """Return the password in each form that would give it away."""
    inner = hashlib.md5(f"{password}{username}".encode(), usedforsecurity=False).hexdigest()
    salted = hashlib.md5(inner.encode() + _SALT, usedforsecurity=False).hexdigest()
    return password.encode(), base64.b64encode(password.encode()), inner.encode(), salted.encode()


@pytest.mark.parametrize("name", _TALKS, ids=lambda name: name.replace(" ", "-"))
async def test_a_hostile_server_gets_no_password_of_the_administrators(onprem_server: OnPremServer, name: str) -> None:
    async with _hostile(onprem_server, _TALKS[name]) as (port, received):
        with pytest.raises(Failure) as refusal:
            async with connect(_at(onprem_server, port), secrets_of(onprem_server)):
                pass

    content = b"".join(received.messages)
    assert received.connections >= 1
    assert not any(form in content for form in _forms(onprem_server.username, onprem_server.password))
    assert not any(message[:1] == b"Q" for message in received.messages)
    if name not in _SCRAM:
        assert received.messages in ([], [b"X"])
    assert onprem_server.password not in str(refusal.value)
    if name in _OTHER_FORMS:
        assert isinstance(refusal.value, Terminal)
        assert refusal.value.reason == "CredentialsForbidden"
        assert re.search(r"SCRAM-SHA-256.*pg_hba\.conf", refusal.value.message)


@pytest.mark.parametrize("name", _TALKS, ids=lambda name: name.replace(" ", "-"))
async def test_a_hostile_server_proves_no_login_and_gets_no_tenants_password(
    onprem_server: OnPremServer, name: str
) -> None:
    credential = Credential("app_a", "A1tenants2password3of4its5own")
    async with _hostile(onprem_server, _TALKS[name]) as (port, received):
        endpoint = Endpoint(onprem_server.host, port, "orders", VERIFIED, onprem_server.authority_pem.decode())
        answer, *_ = await try_login(endpoint, credential, lists=True)

    content = b"".join(received.messages)
    assert answer is Login.UNKNOWN
    assert not any(form in content for form in _forms(credential.username, credential.password))
    if name not in _SCRAM:
        assert received.messages == []


async def test_a_server_without_tls_gets_nothing(onprem_server: OnPremServer) -> None:
    async with _hostile(onprem_server, _TALKS["clear text"], tls=False) as (port, received):
        with pytest.raises(Failure):
            async with connect(_at(onprem_server, port), secrets_of(onprem_server)):
                pass

    assert received.messages == []


_UNPROVEN = {"the right authority and another name": "right", "another authority": "another"}


@pytest.mark.parametrize("name", _UNPROVEN, ids=lambda name: name.replace(" ", "-"))
async def test_a_server_that_does_not_prove_who_it_is_gets_nothing(
    onprem_server: OnPremServer, tmp_path: Path, name: str
) -> None:
    authorities = {which: new_authority(f"the {which} authority") for which in ("right", "another")}
    host = "db.example.org" if _UNPROVEN[name] == "right" else onprem_server.host
    pair = authorities[_UNPROVEN[name]].issue(Subject("server", hosts=(host,))).write(tmp_path, "server")
    async with _hostile(onprem_server, _TALKS["clear text"], pair=pair) as (port, received):
        config = msgspec.structs.replace(_at(onprem_server, port), ca_bundle=authorities["right"].pem.decode())
        with pytest.raises(Failure, match="certificate"):
            async with connect(config, secrets_of(onprem_server)):
                pass

    assert received.connections >= 1
    assert received.messages == []


@pytest.mark.parametrize(
    "named", ["pg1.example.org", "127.0.0.1", "{host}:1", "{host}.evil.example", "x{host}", "{host},evil.example"]
)
async def test_a_password_for_another_host_leaves_for_none(onprem_server: OnPremServer, named: str) -> None:
    async with _hostile(onprem_server, _TALKS["clear text"]) as (port, received):
        secrets = secrets_of(onprem_server)
        secrets["admin"]["host"] = named.format(host=onprem_server.host)
        with pytest.raises(Terminal) as refusal:
            async with connect(_at(onprem_server, port), secrets):
                pass

    assert refusal.value.reason == "EndpointNotAllowed"
    assert "nothing was sent" in refusal.value.message
    assert received == Received()


async def test_a_password_that_says_no_host_leaves_for_none(onprem_server: OnPremServer) -> None:
    async with _hostile(onprem_server, _TALKS["clear text"]) as (port, received):
        secrets = secrets_of(onprem_server)
        del secrets["admin"]["host"]
        with pytest.raises(Failure) as refusal:
            async with connect(_at(onprem_server, port), secrets):
                pass

    patch = f'{{"stringData":{{"host":"{onprem_server.host}"}}}}'
    command = f"kubectl --namespace fairlead-onprem patch secret admin --patch '{patch}'"
    assert command in str(refusal.value)
    assert received == Received()


@pytest.mark.parametrize("named", ["{host}", "{host}:{port}", " {host}\n"])
async def test_a_password_for_this_host_logs_in(onprem_server: OnPremServer, named: str) -> None:
    secrets = secrets_of(onprem_server)
    secrets["admin"]["host"] = named.format(host=onprem_server.host, port=onprem_server.port)

    async with connect(config_of(onprem_server), secrets) as cloud:
        assert await cloud.whoami()
