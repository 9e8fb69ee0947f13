"""A toy cloud that serves over HTTPS, and a client of its API and of its control API."""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from devcloud.simulator.server import running
from tests.devcloud.simulator.toy_cloud import Served, serving
from tests.support import simulator_control
from tests.support.simulator_control import send

_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Client:
    """A client that holds a bearer token."""

    served: Served
    token: str

    def call(self, method: str, path: str, body: object = None, *, token: str | None = None) -> Any:
        """Call the API; return its JSON. Raises HTTPError where it is refused."""
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        return send(self.served, method, f"v1/projects/p/{path}", body, headers, context=_context(self.served))

    def refusal(self, method: str, path: str, body: object = None, *, token: str | None = None) -> tuple[int, str]:
        """Return the status and the code of a call that must be refused."""
        with pytest.raises(urllib.error.HTTPError) as error:
            self.call(method, path, body, token=token)
        return error.value.code, json.loads(error.value.read())["error"]["code"]

    def control(self, method: str, path: str, body: object = None) -> Any:
        """Make a control call."""
        return control(self.served, method, path, body)

    def advance(self, seconds: float) -> None:
        """Move the simulated time on."""
        self.control("POST", "clock", {"advance_s": seconds})

    def until_done(self, operation: dict[str, Any]) -> dict[str, Any]:
        """Wait until an operation is done, the simulated time moved on."""
        limit = time.monotonic() + _LIMIT_S
        while (shown := self.call("GET", f"operations/{operation['id']}"))["status"] != "DONE":
            assert time.monotonic() < limit, f"never done: {shown}"
            self.advance(100)
        result: dict[str, Any] = shown
        return result

    def created(self, name: str = "db-1") -> dict[str, Any]:
        """Create a server and wait for it."""
        self.until_done(self.call("POST", "servers", {"name": name, "password": "first-pass"}))
        shown: dict[str, Any] = self.call("GET", f"servers/{name}")
        return shown


def control(served: Served, method: str, path: str, body: object = None) -> Any:
    """Make a control call; return its JSON. Raises HTTPError where it is refused."""
    return simulator_control.control(served, method, path, body, context=_context(served))


def client_of(served: Served) -> Client:
    """Return a client with a token that does not expire."""
    grant = {"principal": "provider@p", "account": "p"}
    return Client(served, control(served, "POST", "tokens", grant)["token"])


def _context(served: Served) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=served.authority)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with running(lambda: serving(tmp_path), name="toy cloud") as served:
        yield client_of(served)
