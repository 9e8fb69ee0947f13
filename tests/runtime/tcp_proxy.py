"""A TCP relay before the API server whose line can hang, be refused or be cut. It sees TLS only."""

import asyncio
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path

import msgspec
from ruamel.yaml import YAML

from tests.support.connections import Sessions, connected

_CHUNK = 65_536


class Line(Enum):
    """How the line behaves, for open connections and for new ones."""

    OPEN = auto()
    HUNG = auto()  # accepts and swallows
    REFUSED = auto()  # nobody listens, open connections are reset
    DROPPED = auto()  # accepts and resets


class TcpProxy:
    """One listening port in front of one target on this machine."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._sessions = Sessions(self._relay)
        self._writers: set[asyncio.StreamWriter] = set()
        self._open = asyncio.Event()
        self._line = Line.OPEN
        self._open.set()
        self.port = 0
        self.accepted = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._sessions.accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        if self._server:
            self._server.close()
        await self._sessions.end()

    async def become(self, line: Line) -> None:
        """Change the line's behaviour, at once."""
        was, self._line = self._line, line
        if line is Line.OPEN:
            self._open.set()
        else:
            self._open.clear()
        if line in (Line.REFUSED, Line.DROPPED) or was is Line.HUNG:
            # What was swallowed is lost: a connection that hung does not go on in the middle.
            self._reset()
        if line is Line.REFUSED and self._server:
            self._server.close()
            self._server = None
        elif line is not Line.REFUSED and self._server is None:
            await self.start()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self._line is Line.DROPPED:
            return
        async with connected("127.0.0.1", self._target_port) as (up_reader, up_writer):
            self._writers |= {writer, up_writer}
            try:
                await asyncio.gather(self._pump(reader, up_writer), self._pump(up_reader, writer))
            finally:
                self._writers -= {writer, up_writer}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                await self._open.wait()
                if writer.transport.is_closing():
                    return
                writer.write(chunk)
                await writer.drain()
        writer.transport.abort()

    def _reset(self) -> None:
        for writer in tuple(self._writers):
            writer.transport.abort()


def through(kubeconfig: Path, port: int, folder: Path) -> Path:
    """Return a copy of `kubeconfig` that leads through the proxy at `port`."""
    document = YAML(typ="safe").load(kubeconfig.read_text())
    for cluster in document["clusters"]:
        cluster["cluster"]["server"] = f"https://127.0.0.1:{port}"
    copy = folder / f"kubeconfig-{port}"
    # It has a token, as the original has.
    copy.touch(mode=0o600)
    # JSON is YAML.
    copy.write_bytes(msgspec.json.encode(document))
    return copy
