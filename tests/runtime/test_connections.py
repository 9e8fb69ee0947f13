"""Relays of tests leave nothing behind: no open connection, and no task that nobody holds."""

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from devcloud.certificates import Subject, authority_in
from devcloud.postgres.tls_proxy import Endpoint, serving
from tests.support.connections import Sessions, connected

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
