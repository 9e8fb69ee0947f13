"""A simulated Cloud SQL that is fast, and a client of its wire and of its control API."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from devcloud.gcp.server import Options, Served, running
from tests.support.refusing_databases import RefusingDatabases
from tests.support.simulator_control import headers_of
from tests.support.waiting import seen

QUICK = 0.0  # an operation ends as soon as its work is done
_LIMIT_S = 90.0

Json = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: status, JSON."""

    status: int
    body: Json

    @property
    def reason(self) -> str:
        """The first reason of an error, empty for none."""
        error = self.body.get("error")
        return str(error["errors"][0]["reason"]) if isinstance(error, dict) else ""

    @property
    def refusal(self) -> tuple[int, str]:
        """Status and reason."""
        return self.status, self.reason

    @property
    def message(self) -> str:
        """The sentence of an error."""
        return str(self.body["error"]["message"])


@dataclass(frozen=True, slots=True)
class Cloud:
    """The simulator, and a caller who holds a token."""

    served: Served
    token: str

    def send(self, method: str, path: str, body: object = None, *, token: str | None = None) -> Reply:
        """Send a request below the API's root; `{p}` in the path is the project."""
        token = self.token if token is None else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = f"{self.served.url}/{path.replace('{p}', f'projects/{self.served.project}')}"
        return fetch(url, method, body, headers)

    def call(self, method: str, path: str, body: object = None) -> Reply:
        """Call a method below the project."""
        return self.send(method, f"v1/{{p}}/{path}", body)

    def control(self, method: str, path: str, body: object = None) -> Any:
        """Make a control call; it must be answered."""
        reply = fetch(f"{self.served.url}/_control/{path}", method, body, headers_of(self.served.control_token))
        assert reply.status == 200, reply
        return reply.body

    def advance(self, seconds: float) -> None:
        """Move the simulated time on."""
        self.control("POST", "clock", {"advance_s": seconds})

    def at_real_length(self) -> None:
        """Let operations take as long as Cloud SQL's from here on, so that only `advance` ends them."""
        self.control("POST", "clock", {"durations": 1.0})

    def look(self, name: str = "db-1") -> Json:
        """Return an instance."""
        reply = self.call("GET", f"instances/{name}")
        assert reply.status == 200, reply
        return reply.body

    def ended(self, reply: Reply) -> Json:
        """Wait until the operation of a reply is DONE; return it."""
        assert reply.status == 200, reply
        return until(
            lambda: self.call("GET", f"operations/{reply.body['name']}").body,
            lambda operation: operation["status"] == "DONE",
        )

    def done(self, reply: Reply) -> Json:
        """Wait until the operation of a reply is DONE, and see that it succeeded."""
        operation = self.ended(reply)
        assert "error" not in operation, operation
        return operation

    def insert(self, name: str = "db-1", **settings: Any) -> Reply:
        """Ask for an instance."""
        body = {
            "name": name,
            "region": settings.pop("region", "europe-west1"),
            "databaseVersion": settings.pop("databaseVersion", "POSTGRES_16"),
            "rootPassword": "first-pass",
            "settings": {"tier": "db-custom-1-3840", "edition": "ENTERPRISE", **settings},
        }
        return self.call("POST", "instances", body)

    def created(self, name: str = "db-1", **settings: Any) -> Json:
        """Create an instance and wait for it."""
        self.done(self.insert(name, **settings))
        return self.look(name)

    def patch(self, body: object, name: str = "db-1") -> Reply:
        """Change an instance."""
        return self.call("PATCH", f"instances/{name}", body)


def fetch(url: str, method: str, body: object, headers: dict[str, str]) -> Reply:
    """Send JSON, or a form that is text; return the answer, also of a refusal."""
    data = body.encode() if isinstance(body, str) else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, method=method, data=data, headers=headers)  # noqa: S310 - loop-back
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310 - as above
            return Reply(reply.status, _content(reply.read()))
    except urllib.error.HTTPError as error:
        return Reply(error.code, _content(error.read()))


def _content(content: bytes) -> Any:
    return json.loads(content) if content[:1] in {b"{", b"["} else {"text": content.decode()}


def until(look: Callable[[], T], holds: Callable[[T], bool]) -> T:
    """Wait until something is shown; return what shows it."""
    return seen(look, holds, limit_s=_LIMIT_S)


def query(**parameters: object) -> str:
    """Return a query string."""
    return f"?{urllib.parse.urlencode(parameters)}"


def cloud_of(served: Served) -> Cloud:
    """Return a client of a server whose operations are quick, as its first service account."""
    token = Cloud(served, "").control("POST", "tokens", {"principal": served.account})["token"]
    return Cloud(served, token)


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    with running(Options(durations=QUICK, databases=RefusingDatabases())) as simulator:
        yield simulator


@pytest.fixture
def cloud(served: Served) -> Cloud:
    cloud = cloud_of(served)
    cloud.control("POST", "reset")
    cloud.control("POST", "clock", {"durations": QUICK, "speed": 1})
    return cloud
