"""The control API of a simulated cloud, `/_control`, beside the account that a test drives."""

from __future__ import annotations

import http.client
import io
import json
import threading
import urllib.error
import urllib.parse
from dataclasses import dataclass, field
from typing import Any, Protocol

_FIRST_REFUSAL, _LIMIT_S = 400, 60.0


class Served(Protocol):
    """A simulated cloud that serves."""

    @property
    def url(self) -> str:
        """Its one endpoint."""

    @property
    def control_token(self) -> str:
        """What a control call carries."""


@dataclass
class _Line:
    """The one connection that is kept: to the simulator that was called last, by whichever thread."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    connection: http.client.HTTPConnection = field(default_factory=lambda: http.client.HTTPConnection("127.0.0.1"))

    def exchange(self, place: str, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> bytes:
        """Send a request and return the body of the answer. Raises HTTPError when refused."""
        with self.lock:
            if place != f"{self.connection.host}:{self.connection.port}":
                self.connection.close()
                self.connection = http.client.HTTPConnection(place, timeout=_LIMIT_S)
            try:
                self.connection.request(method, path, body, headers)
                answer = self.connection.getresponse()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # It was closed since the last call.
                self.connection.close()
                self.connection.request(method, path, body, headers)
                answer = self.connection.getresponse()
            content = answer.read()
        if answer.status >= _FIRST_REFUSAL:
            raise urllib.error.HTTPError(path, answer.status, answer.reason, answer.headers, io.BytesIO(content))
        return content


_line = _Line()


def control(served: Served, method: str, path: str, body: object = None) -> Any:
    """Make a control call; return its JSON. Raises HTTPError where it is refused."""
    return send(served, method, f"_control/{path}", body, headers_of(served.control_token))


def send(served: Served, method: str, path: str, body: object, headers: dict[str, str]) -> Any:
    """Make a call with a body of JSON; return its JSON. Raises HTTPError when refused."""
    data = None if body is None else json.dumps(body).encode()
    place = urllib.parse.urlsplit(served.url).netloc
    return json.loads(_line.exchange(place, method, f"/{path}", data, headers))


def headers_of(token: str) -> dict[str, str]:
    """Return what a control call has to carry."""
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
