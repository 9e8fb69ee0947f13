"""A registry at a loop-back address that serves one OCI image layout, for reading alone (OCI distribution-spec 1.1)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from devcloud.oci import MANIFEST_TYPE

_HOST = "127.0.0.1"


@contextmanager
def serving(layout: Path) -> Iterator[str]:
    """Serve a layout under any repository's name; yield the registry's `host:port`."""
    server = _Registry(layout)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"{_HOST}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Registry(ThreadingHTTPServer):
    """One layout, whose only tag is `tag`."""

    def __init__(self, layout: Path) -> None:
        super().__init__((_HOST, 0), _Handler)
        (listed,) = json.loads((layout / "index.json").read_text())["manifests"]
        self.layout = layout
        self.tag, self.digest = listed["annotations"]["org.opencontainers.image.ref.name"], listed["digest"]


class _Handler(BaseHTTPRequestHandler):
    server: _Registry

    def do_GET(self) -> None:
        self._answer(is_head=False)

    def do_HEAD(self) -> None:
        self._answer(is_head=True)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Say nothing on standard error."""

    def _answer(self, *, is_head: bool) -> None:
        kind, _, reference = self.path.partition("?")[0].rpartition("/")
        if self.path == "/v2/":
            self._send(b"{}", "application/json", is_head=is_head)
        elif kind.endswith("/tags"):
            tags = json.dumps({"name": "fairlead", "tags": [self.server.tag]})
            self._send(tags.encode(), "application/json", is_head=is_head)
        elif kind.endswith("/manifests"):
            digest = self.server.digest if reference == self.server.tag else reference
            self._send_blob(digest, MANIFEST_TYPE, is_head=is_head)
        else:
            self._send_blob(reference, "application/octet-stream", is_head=is_head)

    def _send_blob(self, digest: str, media_type: str, *, is_head: bool) -> None:
        path = self.server.layout / "blobs" / digest.replace(":", "/")
        if not path.is_file():
            self.send_error(404)
            return
        self._send(path.read_bytes(), media_type, is_head=is_head, digest=digest)

    def _send(self, body: bytes, media_type: str, *, is_head: bool, digest: str = "") -> None:
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if not is_head:
            self.wfile.write(body)
