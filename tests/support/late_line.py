"""A TCP relay before the API server that can keep what its clients send, and deliver it late.

It stands for a network, a proxy or a frozen process that holds a request back: what a client has sent arrives in full,
in order, however long the client has been gone by then. It sees TLS only.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.support.connections import Sessions, connected

_CHUNK = 65_536


class LateLine:
    """One listening port in front of one target on this machine; `close` ends it."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._sessions = Sessions(self._relay)
        self._open = asyncio.Event()
        self._open.set()
        self._kept: list[tuple[asyncio.StreamWriter, bytes]] = []
        self.port = 0

    @property
    def kept(self) -> int:
        """Return how many bytes wait for their delivery."""
        return sum(len(chunk) for _, chunk in self._kept)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._sessions.accept, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        if self._server:
            self._server.close()
        await self._sessions.end()

    def hold(self) -> None:
        """Keep from now on what clients send; answers and events still come through."""
        self._open.clear()

    async def deliver(self) -> None:
        """Send on all that was kept, in order, and keep nothing more."""
        while self._kept:
            writer, chunk = self._kept.pop(0)
            writer.write(chunk)
            with suppress(OSError):
                await writer.drain()
        self._open.set()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with connected("127.0.0.1", self._target_port) as (up_reader, up_writer):
            await asyncio.gather(self._requests(reader, up_writer), self._answers(up_reader, writer))

    async def _requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                if self._open.is_set():
                    writer.write(chunk)
                    await writer.drain()
                else:
                    self._kept.append((writer, chunk))
        # The client is gone: what it sent before is still on its way, and so may be the answers.
        if self._open.is_set():
            writer.transport.abort()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                if not writer.transport.is_closing():
                    writer.write(chunk)
        writer.transport.abort()
