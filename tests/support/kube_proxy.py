"""A proxy before the API server that shows each mutating request of one process to a gate.

It terminates TLS under the plane's own authority, so that the process verifies it as it would the API server, and
passes everything on unchanged: credentials, user agent, streams.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from devcloud.certificates import Subject, authority_in
from devcloud.paths import write_private
from tests.support.gate import Effect, Gate, SeveredError

Note = Callable[[str, str, bytes], None]
Lag = Callable[[str], Awaitable[None]]
_HOST = "127.0.0.1"
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_PATH = re.compile(
    r"^/apis?/(?:[^/]+/)?v[^/]+/(?:namespaces/(?P<namespace>[^/]+)/)?(?P<plural>[^/]+)(?:/[^/]+)?(?:/(?P<sub>[^/]+))?$"
)
# Leases and Events are not effects on what a user owns: losing one costs nothing.
_IGNORED = frozenset({"leases", "events"})
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "upgrade", "content-length"})


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    headers: list[tuple[str, str]]
    body: bytes


async def _no_lag(_path: str) -> None:
    return


class Relay:
    """One process's way to a server; `name` returns what a request (method, path, body) would change, if anything."""

    def __init__(
        self,
        upstream: str,
        session: aiohttp.ClientSession,
        gate: Gate,
        *,
        name: Callable[[str, str, bytes], Effect | None],
        note: Note = lambda *_: None,
        lag: Lag = _no_lag,
    ) -> None:
        self._upstream = upstream
        self._session = session
        self._gate = gate
        self._name = name
        self._note = note
        self._lag = lag

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Relay one request."""
        body = await request.read()
        effect = self._name(request.method, request.path, body)
        if effect is None:
            return await self._stream(request, body)
        self._note(request.method, request.path, body)
        replies: list[_Reply] = []

        async def send() -> _Reply:
            return await self._send(request, body)

        async def deliver(reply: _Reply) -> None:
            replies.append(reply)

        try:
            await self._gate.carry(effect, send, deliver)
        except SeveredError:
            return _cut(request)
        reply = replies[0]
        return web.Response(status=reply.status, headers=reply.headers, body=reply.body)

    async def _send(self, request: web.Request, body: bytes) -> _Reply:
        async with self._session.request(
            request.method, self._upstream + request.raw_path, headers=_headers(request), data=body
        ) as response:
            content = await response.read()
            return _Reply(response.status, _kept(response.headers.items()), content)

    async def _stream(self, request: web.Request, body: bytes) -> web.StreamResponse:
        try:
            async with self._session.request(
                request.method, self._upstream + request.raw_path, headers=_headers(request), data=body or None
            ) as upstream:
                response = web.StreamResponse(status=upstream.status, headers=_kept(upstream.headers.items()))
                await response.prepare(request)
                async for chunk in upstream.content.iter_any():
                    await self._lag(request.path_qs)
                    await response.write(chunk)
                await response.write_eof()
                return response
        except (aiohttp.ClientError, ConnectionError):
            return _cut(request)


def effect_of(method: str, path: str) -> Effect | None:
    """Name the effect of a request; None for one that changes nothing that matters."""
    if method in _READING:
        return None
    match = _PATH.match(path)
    if match is None or match["plural"] in _IGNORED:
        return None
    resource = match["plural"] + (f"/{match['sub']}" if match["sub"] else "")
    return Effect(match["namespace"] or "", f"{method} {resource}")


def _document(kubeconfig: Path) -> Any:
    return msgspec.json.decode(kubeconfig.read_bytes())


def _headers(request: web.Request) -> list[tuple[str, str]]:
    return _kept(request.headers.items())


def _kept(items: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in items if name.lower() not in _HOP_BY_HOP]


def _cut(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=502)


@asynccontextmanager
async def kube_proxy(
    folder: Path, kubeconfig: Path, gate: Gate, *, note: Note = lambda *_: None, lag: Lag = _no_lag
) -> AsyncIterator[Path]:
    """Run a proxy before the API server of a kubeconfig; yield a kubeconfig that goes through it.

    Args:
        folder: The plane's folder, whose `pki` holds the authority.
        kubeconfig: Whose credential the process has, written by devcloud.
        gate: What the requests pass.
        note: Called with method, path and body of each request that changes something, before it is sent on.
        lag: Awaited with path and query before each part of an answer to a reading request is passed on.
    """
    document = await asyncio.to_thread(_document, kubeconfig)
    cluster = document["clusters"][0]["cluster"]
    authority = authority_in(folder / "pki", "kubernetes-ca")
    name = f"proxy-{kubeconfig.name}"
    certificate, key = authority.issue(Subject("kube-apiserver", hosts=(_HOST, "localhost"))).write(folder, name)
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_context.load_cert_chain(certificate, key)
    client_context = ssl.create_default_context(cadata=authority.pem.decode())
    connector = aiohttp.TCPConnector(ssl=client_context, limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False, timeout=timeout) as session:
        proxy = Relay(
            cluster["server"], session, gate, name=lambda method, path, _: effect_of(method, path), note=note, lag=lag
        )
        application = web.Application(client_max_size=64 * 2**20)
        application.router.add_route("*", "/{path:.*}", proxy.answer)
        runner = web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, _HOST, 0, ssl_context=server_context)
            await site.start()
            port = runner.addresses[0][1]
            cluster["server"] = f"https://{_HOST}:{port}"
            through = kubeconfig.with_name(f"{kubeconfig.name}.proxy-{port}")
            write_private(through, msgspec.json.encode(document))
            yield through
        finally:
            await runner.cleanup()
