"""Relays of tests leave nothing behind: no open connection, and no task that nobody holds."""

import asyncio
import gc
import socket
import struct
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from devcloud.certificates import Subject, authority_in
from devcloud.postgres.tls_proxy import Endpoint, serving
from tests.runtime.tcp_proxy import Line, TcpProxy
from tests.support.connections import Sessions, connected, listening, relayed
from tests.support.late_line import LateLine
from tests.support.waiting import eventually

_LIMIT_S = 20.0


@dataclass
class Patient:
    """A server that answers nothing and never closes first; it notes who came, and who went."""

    port: int = 0
    came: asyncio.Event = field(default_factory=asyncio.Event)
    went: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: StreamReader, _writer: StreamWriter) -> None:
        self.came.set()
        try:
            while await reader.read(100):
                pass
        finally:
            self.went.set()


@pytest.fixture
async def patient() -> AsyncIterator[Patient]:
    server = Patient()
    async with listening(server.serve) as server.port:
        yield server


@asynccontextmanager
async def _left_as_before() -> AsyncIterator[None]:
    """Assert that the block leaves no task behind, other than those that serve what was there before."""
    before = asyncio.all_tasks()
    yield
    assert {task.get_name() for task in asyncio.all_tasks() - before if not task.done()} == set()


async def _unused_port() -> int:
    async with listening(Patient().serve) as port:
        return port


def _reset(writer: StreamWriter) -> None:
    """Reset a connection, as the end of a process that has not read all it was sent."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def test_relay_of_a_client_that_resets_ends_with_its_block_though_the_block_fails(patient: Patient) -> None:
    async def fail() -> None:
        async with relayed("127.0.0.1", patient.port, source="127.0.0.2") as port:
            _reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await patient.came.wait()
            _reset(writer)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    # Whoever would still wait for its server is held by nobody: a collection would close the connection with a warning.
    gc.collect()
    await asyncio.wait_for(patient.went.wait(), _LIMIT_S)


async def test_relay_leaves_no_task(patient: Patient) -> None:
    async with connected("127.0.0.1", patient.port):
        await patient.came.wait()
        async with _left_as_before(), relayed("127.0.0.1", patient.port, source="127.0.0.2") as port:
            patient.came.clear()
            _reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await patient.came.wait()
            writer.transport.abort()


async def test_client_of_a_relay_is_closed_where_nobody_listens() -> None:
    async with (
        relayed("127.0.0.1", await _unused_port(), source="127.0.0.2") as port,
        connected("127.0.0.1", port) as (reader, _writer),
    ):
        assert await _ended(reader)


async def test_tcp_proxy_closes_a_connection_for_which_nobody_listens() -> None:
    proxy = TcpProxy(await _unused_port())
    await proxy.start()
    async with connected("127.0.0.1", proxy.port) as (reader, _writer):
        assert await _ended(reader)
    await proxy.close()


async def test_late_line_closes_a_connection_for_which_nobody_listens() -> None:
    line = LateLine(await _unused_port())
    await line.start()
    async with connected("127.0.0.1", line.port) as (reader, _writer):
        assert await _ended(reader)
    await line.close()


async def test_tcp_proxy_that_was_refused_or_hung_relays_again() -> None:
    async with listening(_echo) as port:
        proxy = TcpProxy(port)
        await proxy.start()
        for line in (Line.REFUSED, Line.HUNG, Line.DROPPED):
            async with connected("127.0.0.1", proxy.port) as (reader, writer):
                writer.write(b"first")
                assert await reader.readexactly(5) == b"first"
                await proxy.become(line)
                await proxy.become(Line.OPEN)
                assert await _ended(reader)
        async with connected("127.0.0.1", proxy.port) as (reader, writer):
            writer.write(b"again")
            assert await reader.readexactly(5) == b"again"
        await proxy.close()


# At the second turn asyncio itself holds it, and asserts that its server is open (`Server._attach` of 3.11).
@pytest.mark.parametrize("turns", [1, 3, 4, 5, 6])
async def test_connection_that_is_accepted_while_its_listener_ends_is_cut(turns: int) -> None:
    sessions = Sessions(_echo)
    server = await asyncio.start_server(sessions.accept, "127.0.0.1", 0)
    with socket.socket() as client:
        # The kernel takes it at once; each turn of the loop then brings it one step further.
        client.connect(server.sockets[0].getsockname())
        client.settimeout(0)
        for _ in range(turns):
            await asyncio.sleep(0)
        server.close()
        await sessions.end()
        loop = asyncio.get_running_loop()
        with suppress(ConnectionResetError):
            assert await asyncio.wait_for(loop.sock_recv(client, 1), _LIMIT_S) == b""


async def test_late_line_delivers_what_a_client_sent_before_it_went() -> None:
    received: asyncio.Queue[bytes] = asyncio.Queue()

    async def record(reader: StreamReader, _writer: StreamWriter) -> None:
        while data := await reader.read(100):
            received.put_nowait(data)

    async with listening(record) as port:
        line = LateLine(port)
        await line.start()
        line.hold()
        async with connected("127.0.0.1", line.port) as (_reader, writer):
            writer.write(b"late")
            await eventually(lambda: _kept(line), "the request is held back", limit_s=_LIMIT_S)
        assert received.empty()
        await line.deliver()
        assert await asyncio.wait_for(received.get(), _LIMIT_S) == b"late"
        await line.close()


async def _kept(line: LateLine) -> bool:
    return line.kept == len(b"late")


async def _echo(reader: StreamReader, writer: StreamWriter) -> None:
    while data := await reader.read(100):
        writer.write(data)


async def test_tls_proxy_gives_up_a_cancel_that_its_server_does_not_take(tmp_path: Path) -> None:
    behind, path = Patient(), tmp_path / "postgres"
    sessions = Sessions(behind.serve)
    server = await asyncio.start_unix_server(sessions.accept, path)
    authority = authority_in(tmp_path, "ca")
    certificate, key = authority.issue(Subject("front", hosts=("127.0.0.1",))).write(tmp_path, "front")
    endpoint = Endpoint(host="127.0.0.1", port=0, socket=path, certificate=certificate, key=key)
    async with serving(endpoint) as proxy, connected("127.0.0.1", proxy.port) as (_reader, writer):
        writer.write(bytes.fromhex("0000001004d2162e0000000100000002"))
        await behind.came.wait()
    try:
        await asyncio.wait_for(behind.went.wait(), _LIMIT_S)
    finally:
        server.close()
        await sessions.end()
        await server.wait_closed()


async def _ended(reader: StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(1), _LIMIT_S) == b""
    except ConnectionResetError:
        return True
