"""Liveness, readiness and metrics over a few lines of HTTP/1.1 (RFC 9112): GET /healthz, /readyz, /metrics.

A check names its trouble, or returns None. Liveness fails only for what a restart can cure: an API server that is away
makes a process not ready, never dead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, TypeAlias

from runtime import metrics

Check: TypeAlias = Callable[[], str | None]

_HEAD_SECONDS: Final = 5.0
_HEAD_LINES: Final = 100


@dataclass(frozen=True, slots=True)
class Health:
    """What is asked of a process; the names appear in the answers."""

    live: Mapping[str, Check]
    ready: Mapping[str, Check]


async def serve_health(health: Health, *, host: str, port: int) -> asyncio.Server:
    """Listen on (host, port); port 0 takes a free one. The caller closes the server. Raises OSError when taken."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                path = await _requested(reader)
                status, body, kind = _response(health, path)
                writer.write(_encoded(status, body, kind))
                await writer.drain()
        except (TimeoutError, OSError, ValueError):
            return
        finally:
            writer.close()

    return await asyncio.start_server(answer, host, port)


async def _requested(reader: asyncio.StreamReader) -> str:
    words = (await reader.readline()).split()
    for _ in range(_HEAD_LINES):
        if await reader.readline() in (b"\r\n", b"\n", b""):
            break
    if len(words) < 2 or words[0] not in (b"GET", b"HEAD"):  # noqa: PLR2004 - a method and a path
        return ""
    return words[1].decode("ascii", errors="replace").partition("?")[0]


def _response(health: Health, path: str) -> tuple[HTTPStatus, bytes, str]:
    match path:
        case "/healthz" | "/livez":
            return _checked(health.live)
        case "/readyz":
            return _checked(health.ready)
        case "/metrics":
            # The checks publish gauges: what is scraped is as of now, whoever asked for the health last.
            _checked(health.live)
            _checked(health.ready)
            return HTTPStatus.OK, metrics.exposition(), "text/plain; version=0.0.4; charset=utf-8"
        case _:
            return HTTPStatus.NOT_FOUND, b"GET /healthz, /readyz or /metrics\n", "text/plain"


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
