"""TLS before a PostgreSQL that was built without it, and the place where a network or an instance misbehaves.

Speaks the start of PostgreSQL's protocol 3 (its manual, "Message Flow": SSL Session Encryption, GSSAPI Session
Encryption, Canceling Requests in Progress), then relays bytes to the server's unix socket.
"""

import argparse
import asyncio
import contextlib
import signal
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from devcloud.postgres.authenticator import (
    Admit,
    Authenticator,
    Caller,
    Refuse,
    Silence,
    authenticate,
    no_encryption,
)

PORT = 5432
_SSL_REQUEST = 80877103
_GSSENC_REQUEST = 80877104
_CANCEL_REQUEST = 80877102
_HEAD = struct.Struct("!ii")
_START_MAX_BYTES = 10_000  # MAX_STARTUP_PACKET_LENGTH of PostgreSQL
_START_LIMIT_S = 60.0  # authentication_timeout's default
_CHUNK_BYTES = 65_536
_CLOSE_LIMIT_S = 1.0


@dataclass(frozen=True, slots=True)
class Serve:
    """Relay, after a delay in seconds."""

    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Cut:
    """Close the connection after that many bytes went to the client."""

    after_bytes: int = 0


Behaviour = Serve | Refuse | Silence | Cut
Policy = Callable[[str], Behaviour]
"""Choose how to treat a connection from an IP address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a TLS proxy listens and what it stands before.

    Attributes:
        host: The IP address to listen on.
        port: The TCP port; 0 takes a free one.
        socket: The server's unix socket.
        certificate: The certificate's file, PEM.
        key: The private key's file, PEM.
        requires_tls: Whether a session without TLS is refused.
    """

    host: str
    port: int
    socket: Path
    certificate: Path
    key: Path
    requires_tls: bool = True


class TLSProxy:
    """A TLS proxy of one server; `stop` and `start` again make the instance go away and return.

    With an authenticator it takes the logins itself, and the server behind must trust its socket.
    """

    def __init__(
        self, endpoint: Endpoint, policy: Policy | None = None, *, authenticator: Authenticator | None = None
    ) -> None:
        self._endpoint = endpoint
        self._policy = policy
        self._authenticator = authenticator
        self._behaviour: Behaviour = Serve()
        self._server: asyncio.Server | None = None
        self._sessions: set[asyncio.Task[None]] = set()
        self._port = endpoint.port
        self._context = _context(endpoint.certificate, endpoint.key)

    @property
    def port(self) -> int:
        """The port that it listens on, the same over stop and start."""
        return self._port

    def present(self, certificate: Path, key: Path) -> None:
        """Present another certificate from now on; sessions go on."""
        self._context = _context(certificate, key)

    def behave(self, behaviour: Behaviour) -> None:
        """Treat every connection from now on so, unless a policy decides."""
        self._behaviour = behaviour

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: The address is taken or cannot be used.
        """
        if self._server is not None:
            return
        self._server = await asyncio.start_server(self._accept, self._endpoint.host, self._port)
        self._port = int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Refuse connections and cut every session, as a stopped instance does."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        await self.sever()
        await server.wait_closed()

    async def sever(self) -> None:
        """Cut every session that is open, and go on listening."""
        sessions = list(self._sessions)
        for session in sessions:
            session.cancel()
        await asyncio.gather(*sessions, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = asyncio.current_task()
        if session is None:
            raise RuntimeError("a connection is served by a task")
        self._sessions.add(session)
        try:
            await self._serve(reader, writer)
        except (OSError, EOFError, TimeoutError, ssl.SSLError):
            # The other side is gone or speaks another protocol: closing is the answer.
            pass
        except asyncio.CancelledError:
            # `sever` ends the session; nobody awaits this task's result.
            pass
        finally:
            self._sessions.discard(session)
            _cut(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = str(writer.get_extra_info("peername")[0])
        behaviour = self._behaviour if self._policy is None else self._policy(peer)
        limit: int | None = None
        match behaviour:
            case Silence():
                await asyncio.Event().wait()
            case Cut(after_bytes=0):
                return
            case Cut(after_bytes=after_bytes):
                limit = after_bytes
            case Serve(delay_s=delay_s):
                await asyncio.sleep(delay_s)
            case Refuse():
                pass
            case _:
                assert_never(behaviour)
        first, encrypted = await asyncio.wait_for(self._negotiate(reader, writer), _START_LIMIT_S)
        if _code(first) == _CANCEL_REQUEST:
            await self._cancel(first)
            await _close(writer)
            return
        if isinstance(behaviour, Refuse):
            await _send_error(writer, behaviour)
        elif self._endpoint.requires_tls and not encrypted:
            await _send_error(writer, no_encryption(peer))
        elif await self._admits(Caller.parse(first, host=peer, encrypted=encrypted), reader, writer):
            await self._relay(first, reader, writer, limit)

    async def _admits(self, caller: Caller, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if self._authenticator is None:
            return True
        return await asyncio.wait_for(_enters(self._authenticator, caller, reader, writer), _START_LIMIT_S)

    async def _negotiate(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[bytes, bool]:
        """Answer requests for encryption until a packet of another kind; return that and what came with it."""
        encrypted = False
        while True:
            received = await _first_packet(reader)
            code = _code(received)
            if encrypted or code not in {_SSL_REQUEST, _GSSENC_REQUEST}:
                return received, encrypted
            if len(received) > _HEAD.size:
                # Unencrypted bytes behind the request would pass for encrypted ones (CVE-2021-23222).
                raise EOFError
            writer.write(b"S" if code == _SSL_REQUEST else b"N")
            await writer.drain()
            if code == _SSL_REQUEST:
                await writer.start_tls(self._context)
                encrypted = True

    async def _cancel(self, request: bytes) -> None:
        reader, writer = await asyncio.open_unix_connection(self._endpoint.socket)
        try:
            writer.write(request)
            await writer.drain()
            # The server closes when it has seen the request; so does libpq wait for us.
            await asyncio.wait_for(reader.read(1), _START_LIMIT_S)
        finally:
            _cut(writer)

    async def _relay(
        self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None
    ) -> None:
        try:
            server_reader, server_writer = await asyncio.open_unix_connection(self._endpoint.socket)
        except OSError:
            await _send_error(writer, Refuse("57P03", "the database system is not running"))
            return
        try:
            server_writer.write(first)
            pumps = [
                asyncio.ensure_future(_pump(reader, server_writer, None)),
                asyncio.ensure_future(_pump(server_reader, writer, limit)),
            ]
            try:
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                # TLS has no half-close: when one side ends, what was sent is flushed and both go.
                await _close(writer)
            finally:
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        finally:
            _cut(server_writer)


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    # libpq offers this protocol name (RFC 7301) and refuses a server that picks another.
    context.set_alpn_protocols(["postgresql"])
    return context


async def _enters(
    authenticator: Authenticator, caller: Caller, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    answer = await authenticator(caller)
    match answer:
        case Silence():
            await asyncio.Event().wait()
            return False
        case Admit():
            refusal = await authenticate(caller, answer, reader, writer)
        case Refuse():
            refusal = answer
        case _:
            assert_never(answer)
    if refusal is not None:
        await _send_error(writer, refusal)
    return refusal is None


async def _first_packet(reader: asyncio.StreamReader) -> bytes:
    """Read a packet without a type byte, and whatever arrived together with it."""
    received = b""
    length = _HEAD.size
    while len(received) < length:
        chunk = await reader.read(_START_MAX_BYTES)
        if not chunk:
            raise EOFError
        received += chunk
        if len(received) >= _HEAD.size:
            length = int(_HEAD.unpack_from(received)[0])
        if not _HEAD.size <= length <= _START_MAX_BYTES:
            raise EOFError
    return received


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None) -> None:
    while chunk := await reader.read(_CHUNK_BYTES):
        if limit is not None:
            chunk = chunk[:limit]
            limit -= len(chunk)
        writer.write(chunk)
        await writer.drain()
        if limit == 0:
            return


def _code(packet: bytes) -> int:
    return int(_HEAD.unpack_from(packet)[1])


async def _send_error(writer: asyncio.StreamWriter, refusal: Refuse) -> None:
    fields = {"S": "FATAL", "V": "FATAL", "C": refusal.sqlstate, "M": refusal.message}
    body = b"".join(f"{key}{value}".encode() + b"\0" for key, value in fields.items()) + b"\0"
    writer.write(b"E" + struct.pack("!i", len(body) + 4) + body)
    await writer.drain()
    await _close(writer)


def _cut(writer: asyncio.StreamWriter) -> None:
    # The first releases of Python 3.11 have lost what they would abort once TLS was closed from both sides.
    with contextlib.suppress(AttributeError):
        writer.transport.abort()


async def _close(writer: asyncio.StreamWriter) -> None:
    """Flush and say goodbye: libpq takes an end without TLS's close_notify for an attack."""
    with contextlib.suppress(OSError, TimeoutError):
        writer.close()
        await asyncio.wait_for(writer.wait_closed(), _CLOSE_LIMIT_S)


@asynccontextmanager
async def serving(endpoint: Endpoint, policy: Policy | None = None) -> AsyncIterator[TLSProxy]:
    """Run a TLS proxy in this event loop for the length of a block."""
    proxy = TLSProxy(endpoint, policy)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()


async def _run(endpoint: Endpoint) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with serving(endpoint) as proxy:
        print(f"TLS proxy: {endpoint.host}:{proxy.port} relays to {endpoint.socket}", flush=True)
        await ended.wait()


def main() -> None:
    """Run a TLS proxy as a process of its own, until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m devcloud.postgres.tls_proxy", description=__doc__)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--certificate", type=Path, required=True)
    parser.add_argument("--key", type=Path, required=True)
    arguments = parser.parse_args()
    asyncio.run(
        _run(
            Endpoint(
                host=arguments.host,
                port=arguments.port,
                socket=arguments.socket,
                certificate=arguments.certificate,
                key=arguments.key,
            )
        )
    )


if __name__ == "__main__":
    main()
