"""A template worker's pipe gives whole frames, and says when there will be none."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from composer.workers.pipe import WorkerPipe

_LIMIT = 1000


def _framed(content: bytes) -> bytes:
    return struct.pack("!I", len(content)) + content


async def _open() -> tuple[WorkerPipe, socket.socket]:
    ours, theirs = socket.socketpair()
    return await WorkerPipe.open(ours, _LIMIT), theirs


@pytest.mark.parametrize("sizes", [(0,), (1,), (3, 4, 5), (_LIMIT,), (7, 0, _LIMIT)], ids=str)
@pytest.mark.parametrize("piece", [1, 5, 5000])
async def test_frames_are_received_whole_however_they_are_split(sizes: tuple[int, ...], piece: int) -> None:
    pipe, worker = await _open()
    contents = [bytes([65 + index]) * size for index, size in enumerate(sizes)]
    text = b"".join(map(_framed, contents))

    async def write() -> None:
        for start in range(0, len(text), piece):
            worker.sendall(text[start : start + piece])
            await asyncio.sleep(0)

    with worker:
        writing = asyncio.create_task(write())
        received = [await asyncio.wait_for(pipe.receive(), 20) for _ in contents]
        await writing
        pipe.close()

    assert (received, pipe.has_bytes) == (contents, False)


@pytest.mark.parametrize(
    ("written", "then", "text"),
    [
        pytest.param(b"", "close", "gone", id="nothing"),
        pytest.param(b"\0\0", "close", "gone", id="half-a-head"),
        pytest.param(_framed(b"abc")[:-1], "close", "gone", id="half-a-frame"),
        pytest.param(struct.pack("!I", _LIMIT + 1), "wait", "more than a frame", id="too-large"),
        pytest.param(b"\xff" * (2 * _LIMIT), "wait", "more than a frame", id="a-flood"),
    ],
)
async def test_a_worker_without_a_frame_is_an_error_and_no_wait(written: bytes, then: str, text: str) -> None:
    pipe, worker = await _open()
    waiting = asyncio.create_task(pipe.receive())
    worker.sendall(written)
    if then == "close":
        worker.close()

    with pytest.raises(ConnectionError, match=text):
        await asyncio.wait_for(waiting, 20)
    worker.close()
    pipe.close()


async def test_a_request_to_a_worker_that_is_gone_is_an_error() -> None:
    pipe, worker = await _open()
    worker.close()
    with pytest.raises(ConnectionError):
        await asyncio.wait_for(pipe.receive(), 20)

    with pytest.raises(ConnectionError, match="gone"):
        pipe.send(b"{}")
    pipe.close()
