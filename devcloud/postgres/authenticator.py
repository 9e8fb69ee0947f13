"""Who may enter a simulated instance: the login, taken in the TLS proxy, for a server that then trusts the TLS proxy.

A cloud refuses logins of a stopped instance, swallows packets of those whom its firewall shuts out, and starts a server
behind an address; PostgreSQL alone does none of it. The dialogue is that of its manual, "Message Flow: Start-up" and
"SASL Authentication".
"""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

from devcloud.postgres.scram import ScramError, ServerExchange, Verifier

_HEAD_BYTES = 8
_LONGEST_MESSAGE_BYTES = 10_000
_LENGTH_BYTES = 4  # a length counts itself
_SASL, _SASL_CONTINUE, _SASL_FINAL = 10, 11, 12
_MECHANISM = b"SCRAM-SHA-256"


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer the start of a session with a fatal error, as a server does (SQLSTATE, sentence)."""

    sqlstate: str
    message: str


def no_encryption(host: str) -> Refuse:
    """Return the refusal of a session without TLS: what pg_hba.conf's `hostssl` answers."""
    return Refuse("28000", f'no pg_hba.conf entry for host "{host}", no encryption')


@dataclass(frozen=True, slots=True)
class Silence:
    """Never answer: a firewall that swallows packets."""


@dataclass(frozen=True, slots=True)
class Admit:
    """Let in whoever proves this password; nobody where the role has none."""

    verifier: Verifier | None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who begins a session.

    Attributes:
        user: The role that it asks for.
        database: The database, by default of the role's name.
        application: Its `application_name`.
        host: The IP address that it comes from.
        encrypted: Whether it speaks TLS.
    """

    user: str
    database: str
    application: str
    host: str
    encrypted: bool

    @classmethod
    def parse(cls, packet: bytes, *, host: str, encrypted: bool) -> Self:
        """Read a StartupMessage that came from an address."""
        words = [word.decode(errors="replace") for word in packet[_HEAD_BYTES:].split(b"\0")]
        said = dict(zip(words[::2], words[1::2], strict=False))
        user = said.get("user", "")
        return cls(user, said.get("database") or user, said.get("application_name", ""), host, encrypted)


Authenticator = Callable[[Caller], Awaitable[Admit | Refuse | Silence]]
"""Decide on a caller; when it returns `Admit`, the server behind answers."""


async def authenticate(
    caller: Caller, admit: Admit, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> Refuse | None:
    """Ask a client for the proof of a password; None when it gave it.

    Raises:
        EOFError: The client went away, or speaks something else.
    """
    exchange = ServerExchange(admit.verifier or Verifier.of_nobody())
    refusal = Refuse("28P01", f'password authentication failed for user "{caller.user}"')
    await _ask(writer, _SASL, _MECHANISM + b"\0\0")
    mechanism, _, rest = (await _answer(reader)).partition(b"\0")
    if mechanism != _MECHANISM:
        return Refuse("08P01", "client selected an invalid SASL authentication mechanism")
    try:
        challenge = exchange.challenge(rest[_LENGTH_BYTES:].decode(errors="replace"))
        await _ask(writer, _SASL_CONTINUE, challenge.encode())
        proof = exchange.verdict((await _answer(reader)).decode(errors="replace"))
    except ScramError:
        return refusal
    await _ask(writer, _SASL_FINAL, proof.encode())
    return None


async def _ask(writer: asyncio.StreamWriter, code: int, body: bytes) -> None:
    writer.write(b"R" + struct.pack("!ii", len(body) + 2 * _LENGTH_BYTES, code) + body)
    await writer.drain()


async def _answer(reader: asyncio.StreamReader) -> bytes:
    kind, length = struct.unpack("!ci", await reader.readexactly(1 + _LENGTH_BYTES))
    if kind != b"p" or not _LENGTH_BYTES <= length <= _LONGEST_MESSAGE_BYTES:
        raise EOFError
    return await reader.readexactly(length - _LENGTH_BYTES)
