"""Listeners and connections of tests: whoever ends one leaves no connection open, and no task that nobody holds.

The event loop holds tasks weakly. One that waits for an answer on a connection of its own, and is in nobody's hands,
is collected with that connection, which then was never closed.
"""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Serve = Callable[[StreamReader, StreamWriter], Awaitable[None]]
"""Serve one connection that was accepted; it is cut when this returns."""

_HOST = "127.0.0.1"


class Sessions:
    """The tasks that serve a listener's connections; `accept` is for `asyncio.start_server`, `end` ends them all."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_ended = False

    def accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve a connection until it ends, and cut it, also one whose task was cancelled before it began."""
        if self._is_ended:
            # It was accepted before the listener was closed.
            writer.transport.abort()
            return
        task = asyncio.create_task(self._session(reader, writer))
        self._tasks.add(task)

        def cut(ended: asyncio.Task[None]) -> None:
            self._tasks.discard(ended)
            writer.transport.abort()

        task.add_done_callback(cut)

    async def _session(self, reader: StreamReader, writer: StreamWriter) -> None:
        # An OSError or EOFError: the other side is gone, or was never reached.
        with suppress(OSError, EOFError):
            await self._serve(reader, writer)

    async def end(self) -> None:
        """Cut every connection, and return when nothing serves any."""
        self._is_ended = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[int]:
    """Listen on a free port of this machine for the length of a block; yield the port."""
    sessions = Sessions(serve)
    server = await asyncio.start_server(sessions.accept, _HOST, 0)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        await sessions.end()
        await server.wait_closed()


@asynccontextmanager
async def connected(host: str, port: int, *, source: str = "") -> AsyncIterator[tuple[StreamReader, StreamWriter]]:
    """Be connected for the length of a block, from an address of this machine where `source` names one.

    Raises:
        OSError: Nobody listens there.
    """
    reader, writer = await asyncio.open_connection(host, port, local_addr=(source, 0) if source else None)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()
