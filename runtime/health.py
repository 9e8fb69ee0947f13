"""Liveness, readiness and metrics over a few lines of HTTP/1.1 (RFC 9112): GET /healthz, /readyz, /metrics.

A check names its trouble, or returns None. Liveness fails only for what a restart can cure: an API server that is away
makes a process not ready, never dead.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeAlias

from runtime import clock, metrics

Check: TypeAlias = Callable[[], str | None]

_SECONDS: Final = 5.0
_HEAD_LINES: Final = 100
_LINE_BYTES: Final = 8192
_MOST_CONNECTIONS: Final = 32
_EXPOSED_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Health:
    """What is asked of a process; the names appear in the answers."""

    live: Mapping[str, Check]
    ready: Mapping[str, Check]


async def serve_health(
    health: Health, *, host: str, port: int, monotonic: Callable[[], float] = clock.monotonic
) -> asyncio.Server:
    """Listen on (host, port); port 0 takes a free one. The caller closes the server. Raises OSError when taken.

    Nobody is asked who he is, and this is the controller's own event loop: a connection has five seconds, the oldest
    gives way to a 33rd, and metrics are computed once a second.
    """
    server = _Server(health, monotonic)
    return await asyncio.start_server(server.answer, host, port, limit=_LINE_BYTES)


class _Server:
    """The connections that are open, oldest first, and the metrics as they were lately."""

    def __init__(self, health: Health, monotonic: Callable[[], float]) -> None:
        self._health = health
        self._monotonic = monotonic
        self._open: dict[asyncio.StreamWriter, None] = {}
        self._exposition = b""
        self._exposed_at = -math.inf

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close."""
        if len(self._open) >= _MOST_CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        self._open[writer] = None
        try:
            async with asyncio.timeout(_SECONDS):
                path = await _requested(reader)
                status, body, kind = self._response(path)
                writer.write(_encoded(status, body, kind))
                await writer.drain()
                writer.close()
                # Until the other side has taken it all.
                await writer.wait_closed()
        except (TimeoutError, OSError, ValueError):
            return
        finally:
            self._open.pop(writer, None)
            writer.transport.abort()

    def _response(self, path: str) -> tuple[HTTPStatus, bytes, str]:
        match path:
            case "/healthz" | "/livez":
                return _checked(self._health.live)
            case "/readyz":
                return _checked(self._health.ready)
            case "/metrics":
                return HTTPStatus.OK, self._exposed(), "text/plain; version=0.0.4; charset=utf-8"
            case _:
                return HTTPStatus.NOT_FOUND, b"GET /healthz, /readyz or /metrics\n", "text/plain"

    def _exposed(self) -> bytes:
        if self._monotonic() - self._exposed_at >= _EXPOSED_SECONDS:
            # The checks publish gauges: what is scraped is as of now, whoever asked for the health last.
            _checked(self._health.live)
            _checked(self._health.ready)
            self._exposition, self._exposed_at = metrics.exposition(), self._monotonic()
        return self._exposition


async def _requested(reader: asyncio.StreamReader) -> str:
    words = (await reader.readline()).split()
    for _ in range(_HEAD_LINES):
        if await reader.readline() in (b"\r\n", b"\n", b""):
            break
    if len(words) < 2 or words[0] not in (b"GET", b"HEAD"):  # noqa: PLR2004 - a method and a path
        return ""
    return words[1].decode("ascii", errors="replace").partition("?")[0]


def _checked(checks: Mapping[str, Check]) -> tuple[HTTPStatus, bytes, str]:
    results = [(name, check()) for name, check in checks.items()]
    lines = [f"[-] {name}: {trouble}" if trouble else f"[+] {name}: ok" for name, trouble in results]
    failed = any(trouble for _, trouble in results)
    status = HTTPStatus.SERVICE_UNAVAILABLE if failed else HTTPStatus.OK
    return status, ("\n".join(lines) + "\n").encode(), "text/plain; charset=utf-8"


def _encoded(status: HTTPStatus, body: bytes, kind: str) -> bytes:
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
