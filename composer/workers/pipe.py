"""The composer's end of a template worker's pipe: frames of four bytes of length, big endian, then so many bytes."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Final, cast

_HEAD: Final = struct.Struct("!I")


class WorkerPipe(asyncio.Protocol):
    """Frames in both directions. A protocol of its own: each render of each pass goes through it."""

    def __init__(self, limit_bytes: int) -> None:
        self._largest = _HEAD.size + limit_bytes
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._is_lost = False
        self._arrival: asyncio.Future[None] | None = None

    @classmethod
    async def open(cls, pipe: socket.socket, limit_bytes: int) -> WorkerPipe:
        """Take over a connected socket; `limit_bytes` is the largest frame that is accepted. Raises OSError."""
        _, protocol = await asyncio.get_running_loop().create_unix_connection(lambda: cls(limit_bytes), sock=pipe)
        return protocol

    @property
    def has_bytes(self) -> bool:
        """Whether the worker wrote something that nobody received."""
        return bool(self._received)

    def send(self, frame: bytes) -> None:
        """Write one frame. Raises ConnectionError when the worker is gone."""
        if self._transport is None or self._is_lost:
            raise ConnectionError("the worker is gone")
        self._transport.write(_HEAD.pack(len(frame)) + frame)

    async def receive(self) -> bytes:
        """Wait for one frame. Raises ConnectionError when the worker is gone, or writes more than a frame may have."""
        while not self._has_frame():
            if self._is_lost:
                raise ConnectionError("the worker is gone")
            self._arrival = asyncio.get_running_loop().create_future()
            try:
                await self._arrival
            finally:
                self._arrival = None
        end = self._end()
        frame = bytes(self._received[_HEAD.size : end])
        del self._received[:end]
        return frame

    def close(self) -> None:
        """Close the pipe at once, whatever was not written yet."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport (asyncio.Protocol)."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Collect what the worker writes, at most one frame of the largest size (asyncio.Protocol)."""
        self._received += data
        if len(self._received) > self._largest:
            self.connection_lost(None)
            self.close()
        elif not len(self._received) < self._end() <= self._largest:
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's form
        """Wake who waits for a frame (asyncio.Protocol)."""
        self._is_lost = True
        self._wake()

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _has_frame(self) -> bool:
        if self._end() > self._largest:
            raise ConnectionError("the worker says more than a frame may have")
        return len(self._received) >= self._end()

    def _end(self) -> int:
        """Return how many bytes the first frame takes, those of its head as long as that is not there."""
        if len(self._received) < _HEAD.size:
            return _HEAD.size
        length: int = _HEAD.unpack_from(self._received)[0]
        return _HEAD.size + length
