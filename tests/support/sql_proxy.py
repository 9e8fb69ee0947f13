"""A relay before PostgreSQL's unix socket that shows each statement with a lasting effect to a gate.

It reads the frontend/backend protocol 3 (PostgreSQL's manual, "Message Formats"). A statement inside a transaction
lasts by the COMMIT alone, so the COMMIT is the effect; outside of one each statement that is no query is.
TLS ends at devcloud's TLS proxy, which stands before this relay.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.connections import Sessions
from tests.support.gate import Effect, Gate, SeveredError

_LENGTH = struct.Struct("!i")
_TYPED_HEAD_BYTES = 5
_COMMENT = re.compile(rb"--[^\n]*\n|/\*.*?\*/", re.DOTALL)
_LITERAL = re.compile(rb"'(?:[^']|'')*'|\$(\w*)\$.*?\$\1\$", re.DOTALL)
_QUOTED = re.compile(rb'"(?:[^"]|"")*"')
_READS = frozenset(
    {"SELECT", "SHOW", "SET", "RESET", "VALUES", "TABLE", "DISCARD", "DEALLOCATE", "SAVEPOINT", "EXPLAIN"}
)
_BEGINS = frozenset({"BEGIN", "START"})
_COMMITS = frozenset({"COMMIT", "END"})
_ENDS = frozenset({"ROLLBACK", "ABORT"})


@dataclass(frozen=True, slots=True)
class Message:
    """One message of either side; `kind` is empty for a start-up packet."""

    kind: bytes
    body: bytes

    @property
    def raw(self) -> bytes:
        """Return the bytes on the wire."""
        return self.kind + _LENGTH.pack(len(self.body) + _LENGTH.size) + self.body


@dataclass(slots=True)
class Statements:
    """What one session has said so far: which of its requests has a lasting effect, and whose it is."""

    scopes: re.Pattern[bytes]
    scope: str = ""
    pending: list[str] | None = None  # the mutating statements of the open transaction; None outside of one
    prepared: dict[bytes, bytes] = field(default_factory=dict)

    def effect_of(self, request: list[Message]) -> Effect | None:
        """Return the effect of one request (a Query, or the messages up to a Sync), None for a reading one."""
        for message in request:
            scope = self.scopes.search(message.body)
            if scope is not None:
                self.scope = scope[0].decode()
        words = [words for text in self._texts(request) for words in _statements(text)]
        done = [effect for effect in map(self._lasting, words) if effect]
        if not done:
            return None
        own = re.escape(self.scope.upper())
        text = re.sub(rf"\w*{own}\w*", "_", "; ".join(done)) if own else "; ".join(done)
        return Effect(self.scope, f"SQL {text}")

    def _texts(self, request: list[Message]) -> list[bytes]:
        texts = []
        for message in request:
            match message.kind:
                case b"Q":
                    texts.append(message.body.rstrip(b"\0"))
                case b"P":
                    name, text, _rest = message.body.split(b"\0", 2)
                    self.prepared[name] = text
                case b"B":
                    _portal, name, _rest = message.body.split(b"\0", 2)
                    texts.append(self.prepared.get(name, b""))
                case _:
                    pass
        return texts

    def _lasting(self, words: str) -> str:
        first = words.partition(" ")[0]
        if first in _BEGINS:
            self.pending = []
            return ""
        if first in _ENDS and "TO" not in words.split():
            self.pending = None
            return ""
        if first in _COMMITS:
            pending, self.pending = self.pending, None
            return f"COMMIT({', '.join(pending)})" if pending else ""
        if first in _READS and "PG_TERMINATE_BACKEND" not in words:
            return ""
        if self.pending is None:
            return words
        self.pending.append(words)
        return ""


def _statements(text: bytes) -> list[str]:
    """Split a text into statements and keep of each what is the same in every run: its leading key words."""
    bare = _QUOTED.sub(b"_", _LITERAL.sub(b"_", _COMMENT.sub(b" ", text)))
    statements = []
    for part in bare.split(b";"):
        words = part.decode(errors="replace").upper().split()
        if not words:
            continue
        if words[0] in _READS:
            statements.append(" ".join(words))
        else:
            kept = [word for word in words if word[0].isalpha() or word[0] == "_"][:3]
            statements.append(" ".join(kept))
    return statements


class Session:
    """One client's connection and the server's other end of it."""

    def __init__(self, gate: Gate, scopes: re.Pattern[bytes]) -> None:
        self._gate = gate
        self._statements = Statements(scopes)

    async def serve(
        self,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        """Relay until one side ends."""
        reader, writer = client
        server_reader, server_writer = server
        start = await _start_packet(reader)
        self._statements.effect_of([Message(b"", start)])
        server_writer.write(start)
        await _relay_login(client, server)
        while request := await _request(reader):
            effect = self._statements.effect_of(request)
            expects_answer = request[-1].kind in {b"Q", b"S"}

            async def send(request: list[Message] = request, *, answered: bool = expects_answer) -> list[bytes]:
                server_writer.write(b"".join(message.raw for message in request))
                await server_writer.drain()
                return [raw async for raw in _answer(server_reader)] if answered else []

            async def deliver(answer: list[bytes]) -> None:
                writer.write(b"".join(answer))
                await writer.drain()

            if effect is None:
                await deliver(await send())
            else:
                await self._gate.carry(effect, send, deliver)


async def _start_packet(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(_LENGTH.size)
    return head + await reader.readexactly(_LENGTH.unpack(head)[0] - _LENGTH.size)


async def _message(reader: asyncio.StreamReader) -> Message:
    head = await reader.readexactly(_TYPED_HEAD_BYTES)
    body = await reader.readexactly(_LENGTH.unpack(head[1:])[0] - _LENGTH.size)
    return Message(head[:1], body)


async def _request(reader: asyncio.StreamReader) -> list[Message]:
    """Return the messages up to the one that the server answers; empty when the client has ended."""
    messages: list[Message] = []
    try:
        while True:
            message = await _message(reader)
            if message.kind == b"X":
                return []
            messages.append(message)
            if message.kind in {b"Q", b"S"}:
                return messages
    except asyncio.IncompleteReadError:
        return []


async def _answer(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while True:
        message = await _message(reader)
        yield message.raw
        if message.kind == b"Z":
            return


async def _relay_login(
    client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
) -> None:
    reader, writer = client
    server_reader, server_writer = server
    asks_for_more = frozenset({3, 5, 10, 11})  # AuthenticationCleartext, MD5, SASL, SASLContinue
    while True:
        message = await _message(server_reader)
        writer.write(message.raw)
        await writer.drain()
        if message.kind == b"Z":
            return
        if message.kind == b"R" and _LENGTH.unpack(message.body[:4])[0] in asks_for_more:
            server_writer.write((await _message(reader)).raw)
            await server_writer.drain()


@asynccontextmanager
async def sql_proxy(socket: Path, upstream: Path, gate: Gate, scopes: re.Pattern[bytes]) -> AsyncIterator[None]:
    """Relay connections to a unix socket to another one.

    Args:
        socket: Where to listen.
        upstream: The server's socket.
        gate: What the effects pass.
        scopes: Finds the scope's name in a message.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(upstream)
        try:
            # The test cut the line.
            with contextlib.suppress(SeveredError):
                await Session(gate, scopes).serve((reader, writer), (server_reader, server_writer))
        finally:
            server_writer.transport.abort()

    sessions = Sessions(serve)
    server = await asyncio.start_unix_server(sessions.accept, socket)
    try:
        yield
    finally:
        server.close()
        await sessions.end()
        await server.wait_closed()
