"""A proxy before the API server that notes each mutating request of one process.

It terminates TLS under the plane's own authority, so that the process verifies it as it would the API server, and
passes everything on unchanged: credentials, user agent, streams.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from devcloud.certificates import Subject, authority_in
from devcloud.paths import write_private

Note = Callable[[str, str, bytes], None]
_HOST = "127.0.0.1"
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "upgrade", "content-length"})


class _Relay:
    """One process's way to a server."""

    def __init__(self, upstream: str, session: aiohttp.ClientSession, note: Note) -> None:
        self._upstream = upstream
        self._session = session
        self._note = note

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Relay one request."""
        body = await request.read()
        if request.method not in _READING:
            self._note(request.method, request.path, body)
        headers, url = _kept(request.headers.items()), self._upstream + request.raw_path
        try:
            async with self._session.request(request.method, url, headers=headers, data=body or None) as upstream:
                response = web.StreamResponse(status=upstream.status, headers=_kept(upstream.headers.items()))
                await response.prepare(request)
                async for chunk in upstream.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
                return response
        except (aiohttp.ClientError, ConnectionError):
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=502)


def _document(kubeconfig: Path) -> Any:
    return msgspec.json.decode(kubeconfig.read_bytes())


def _kept(items: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in items if name.lower() not in _HOP_BY_HOP]


@asynccontextmanager
async def kube_proxy(folder: Path, kubeconfig: Path, note: Note) -> AsyncIterator[Path]:
    """Run a proxy before the API server of a kubeconfig; yield a kubeconfig that goes through it.

    Args:
        folder: The plane's folder, whose `pki` holds the authority.
        kubeconfig: Whose credential the process has, written by devcloud.
        note: Called with method, path and body of each request that changes something, before it is sent on.
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
        proxy = _Relay(cluster["server"], session, note)
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
