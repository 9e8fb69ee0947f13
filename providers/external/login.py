"""Log in to an endpoint as an application does: ok, refused or unknown.

libpq gives no SQLSTATE for a login that failed, and its texts follow the server's language; so the start of
PostgreSQL's protocol 3 is implemented here (manual, "Message Flow: Start-up" and "SASL Authentication"), over TLS that
is verified as the endpoint says.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from datetime import timedelta

from providers.external.credential import NO_ANSWER, Credential, Login, LoginAnswer
from providers.external.endpoint import VERIFIED_BY_AUTHORITY, Endpoint
from providers.external.sql.scram import Exchange, ScramError
from runtime import randomness

_SSL_REQUEST = struct.pack("!ii", 8, 80877103)
_PROTOCOL_3 = 196608
# From 15 on an upgrade in place keeps the oids of databases (release notes of PostgreSQL 15, "pg_upgrade").
_DATABASES = b"""SELECT datname, oid FROM pg_catalog.pg_database WHERE NOT datistemplate
 AND pg_catalog.current_setting('server_version_num')::int >= 150000 ORDER BY oid LIMIT 1000"""
_REFUSED = frozenset({"28P01", "28000"})
_LONGEST_MESSAGE_BYTES = 65_536
_LENGTH_BYTES = 4  # a length counts itself
TIMEOUT = timedelta(seconds=10)
_LIST_SECONDS = 2.0


class _ServerError(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class _NotAdmittedError(Exception):
    """The server refused before it asked for a password, as one does to whose address its firewall has no rule."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


async def try_login(endpoint: Endpoint, credential: Credential, *, lists: bool = False) -> LoginAnswer:
    """Return what the endpoint answers to a login, tried once; nothing is sent where nothing proves who answers.

    A refusal before the password was asked for says nothing about it: it is unknown, with the server's code. One that
    `lists` asks for the server's databases as well; without an answer to that it is a login all the same.
    """
    listed: list[tuple[str, int]] | None = [] if lists else None
    try:
        async with asyncio.timeout(TIMEOUT.total_seconds()):
            is_listed = await _login(endpoint, credential, listed)
    except _NotAdmittedError as error:
        return LoginAnswer(Login.UNKNOWN, error.code)
    except _ServerError as error:
        return LoginAnswer(Login.REFUSED if error.code in _REFUSED else Login.UNKNOWN, error.code)
    except (OSError, TimeoutError, asyncio.IncompleteReadError, ScramError, ValueError):
        return NO_ANSWER
    return LoginAnswer(Login.OK, databases=tuple(listed) if listed is not None and is_listed else None)


def _verification(endpoint: Endpoint) -> ssl.SSLContext:
    """Return what verifies whoever answers: the endpoint's own authority, else the system's roots.

    Those are OpenSSL's default ones, as SSL_CERT_FILE and SSL_CERT_DIR may say. Raises ValueError where nothing does.
    """
    if not endpoint.is_verified:
        raise ValueError("nothing proves who answers")
    context = ssl.create_default_context(cadata=endpoint.ca or None)
    context.check_hostname = endpoint.sslmode != VERIFIED_BY_AUTHORITY
    context.set_alpn_protocols(["postgresql"])
    return context


async def _login(endpoint: Endpoint, credential: Credential, listed: list[tuple[str, int]] | None) -> bool:
    """Log in; return whether the server's databases were added to `listed`."""
    context = _verification(endpoint)
    reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
    try:
        writer.write(_SSL_REQUEST)
        if await reader.readexactly(1) != b"S":
            raise ValueError("the server offers no TLS")
        await writer.start_tls(context, server_hostname=endpoint.host)
        pairs = ("user", credential.username, "database", endpoint.database, "application_name", "fairlead-login")
        body = struct.pack("!i", _PROTOCOL_3) + b"".join(text.encode() + b"\0" for text in pairs) + b"\0"
        writer.write(struct.pack("!i", len(body) + 4) + body)
        await _authenticate(reader, writer, credential.password)
        # Settings of the role take effect only now: a login that they break is no login.
        while (await _message(reader))[0] != b"Z":
            pass
        is_listed = listed is not None and await _list(reader, writer, listed)
        writer.write(b"X\0\0\0\x04")
        writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            await asyncio.wait_for(writer.wait_closed(), 1)
        return is_listed
    finally:
        # A server that gives no answer closes no TLS session either.
        writer.transport.abort()


async def _list(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, listed: list[tuple[str, int]]) -> bool:
    """Add the server's databases with their oids (manual, "Message Flow: Simple Query"); return whether all came."""
    writer.write(b"Q" + struct.pack("!i", len(_DATABASES) + 5) + _DATABASES + b"\0")
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            while (message := await _message(reader))[0] != b"Z":
                if message[0] == b"D":
                    name, oid = _texts(message[1])
                    listed.append((name, int(oid)))
    except (_ServerError, OSError, TimeoutError, asyncio.IncompleteReadError, ValueError, struct.error):
        return False
    return True


def _texts(row: bytes) -> list[str]:
    """Return the columns of a DataRow, none of which is null."""
    (count,), at, texts = struct.unpack_from("!h", row), 2, []
    for _ in range(count):
        (length,) = struct.unpack_from("!i", row, at)
        texts.append(row[at + 4 : at + 4 + length].decode())
        at += 4 + length
    return texts


async def _authenticate(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, password: str) -> None:
    exchange, expected, proven = Exchange(password, randomness.token_hex(18)), b"", False
    try:
        kind, body = await _message(reader)
    except _ServerError as error:
        raise _NotAdmittedError(error.code) from None
    while True:
        if kind != b"R":
            raise ValueError("the server speaks something else than authentication")
        (code,) = struct.unpack_from("!i", body)
        match code:
            case 0 if proven:
                return
            case 10 if b"SCRAM-SHA-256" in body[4:].split(b"\0"):
                first = exchange.first
                _send(writer, b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first)
            case 11:
                final, expected = exchange.answer(body[4:])
                _send(writer, final)
            case 12 if expected and expected in body[4:].split(b","):
                proven = True
            case _:
                raise ValueError("the server asks for another method than SCRAM-SHA-256, or for no proof at all")
        kind, body = await _message(reader)


def _send(writer: asyncio.StreamWriter, body: bytes) -> None:
    writer.write(b"p" + struct.pack("!i", len(body) + 4) + body)


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    kind, length = struct.unpack("!ci", await reader.readexactly(5))
    if not _LENGTH_BYTES <= length <= _LONGEST_MESSAGE_BYTES:
        raise ValueError("the server sent a message of an absurd length")
    body = await reader.readexactly(length - _LENGTH_BYTES)
    if kind == b"E":
        fields = {part[:1]: part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
        raise _ServerError(fields.get(b"C", ""))
    return bytes(kind), body
