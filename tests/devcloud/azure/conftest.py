"""A simulated Azure, and a client of its wire whose operations end when a test moves the time on."""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from devcloud.azure.server import Options, Served, running
from tests.support.refusing_databases import RefusingDatabases
from tests.support.waiting import seen

VERSION = "2025-08-01"
PASSWORD = "Sufficient-1"
PROVIDER = "providers/Microsoft.DBforPostgreSQL"
SCOPE = "https://management.azure.com/.default"
SERVER: dict[str, Any] = {
    "location": "uksouth",
    "sku": {"name": "Standard_D4s_v3", "tier": "GeneralPurpose"},
    "properties": {
        "administratorLogin": "myadmin",
        "administratorLoginPassword": PASSWORD,
        "version": "16",
        "storage": {"storageSizeGB": 128},
    },
}
_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its status, its headers by name in small letters, its JSON (None for no body), or its text."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def refusal(self) -> tuple[int, str]:
        """The status and the code of a refusal."""
        return self.status, self.body["error"]["code"]


def send(
    url: str,
    method: str = "GET",
    *,
    data: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    authority: Path | None = None,
) -> Reply:
    """Make a request, over HTTPS by an authority; return what was answered, a refusal too."""
    parts = urllib.parse.urlsplit(url)
    if authority is None:
        connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    else:
        context = ssl.create_default_context(cafile=authority)
        connection = http.client.HTTPSConnection(parts.netloc, timeout=60, context=context)
    with contextlib.closing(connection):
        connection.request(method, f"{parts.path}?{parts.query}", body=data, headers=dict(headers or {}))
        answer = connection.getresponse()
        body = answer.read().decode()
    is_json = answer.headers.get_content_type() == "application/json"
    content = json.loads(body) if body and is_json else body or None
    return Reply(answer.status, {name.lower(): value for name, value in answer.headers.items()}, content)


def token_of(served: Served, *, client_id: str = "", secret: str = "") -> str:
    """Return a token by client credentials."""
    form = {
        "grant_type": "client_credentials",
        "client_id": client_id or served.credentials[0],
        "client_secret": secret or served.credentials[1],
        "scope": SCOPE,
    }
    data = urllib.parse.urlencode(form).encode()
    token = send(f"{served.url}/{served.tenant}/oauth2/v2.0/token", "POST", data=data, authority=served.authority)
    return str(token.body["access_token"])


@dataclass(frozen=True, slots=True)
class Arm:
    """A client that holds a token, in one resource group; `step_s` moves the time on while it waits for operations."""

    served: Served
    token: str = field(repr=False)
    group: str = "rg"
    step_s: float = 400.0

    @property
    def group_path(self) -> str:
        return f"/subscriptions/{self.served.subscription}/resourceGroups/{self.group}"

    def path(self, rest: str = "pg1") -> str:
        """Return the path of a server, or of what is in it: `pg1/databases/app`."""
        return f"{self.group_path}/{PROVIDER}/flexibleServers/{rest}"

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        version: str = VERSION,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Call a path of ARM, or a whole URL that it answered."""
        is_url = path.startswith("http")
        mark = "&" if "?" in path else "?"
        query = "" if is_url or not version else f"{mark}api-version={version}"
        url = path if is_url else self.served.url + urllib.parse.quote(path, safe="/?&=$") + query
        data = None if body is None else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **(headers or {})}
        return send(url, method, data=data, headers=sent, authority=self.served.authority)

    def control(self, method: str, path: str, body: object = None) -> Any:
        """Make a control call; it must not be refused."""
        headers = {"Authorization": f"Bearer {self.served.control_token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        url = f"{self.served.url}/_control/{path}"
        reply = send(url, method, data=data, headers=headers, authority=self.served.authority)
        assert reply.status == 200, reply
        return reply.body

    def behave(self, **chosen: Any) -> None:
        """Choose of the cloud's conduct."""
        self.control("POST", "behaviour", chosen)

    def advance(self, seconds: float) -> None:
        """Move the simulated time on."""
        self.control("POST", "clock", {"advance_s": seconds})

    def poll(self, accepted: Reply) -> Any:
        """Return what the operation of a 202 now answers."""
        assert accepted.status == 202, accepted
        return self.call("GET", accepted.headers["azure-asyncoperation"]).body

    def until_done(self, accepted: Reply) -> Any:
        """Return the last answer of an operation, the simulated time moved on until it is there."""

        def step() -> Any:
            self.advance(self.step_s)
            return self.poll(accepted)

        return seen(step, lambda shown: shown["status"] != "InProgress", limit_s=_LIMIT_S)

    def put(self, name: str = "pg1", *, api: str = VERSION, **properties: Any) -> Reply:
        """Ask for a server; a property of None is left out."""
        merged = {**SERVER["properties"], **properties}
        wanted = {key: value for key, value in merged.items() if value is not None}
        return self.call("PUT", self.path(name), {**SERVER, "properties": wanted}, version=api)

    def created(self, name: str = "pg1", **properties: Any) -> Any:
        """Create a server, wait for it, return it."""
        assert self.until_done(self.put(name, **properties))["status"] == "Succeeded"
        return self.get(name)

    def get(self, rest: str = "pg1", *, version: str = VERSION) -> Any:
        """Return what is there; it must be."""
        reply = self.call("GET", self.path(rest), version=version)
        assert reply.status == 200, reply
        return reply.body

    def patch(self, properties: object, name: str = "pg1", **more: Any) -> Reply:
        """Ask for a change of a server."""
        return self.call("PATCH", self.path(name), {"properties": properties, **more})

    def child(self, rest: str, **properties: Any) -> Reply:
        """Ask for what is in a server."""
        return self.call("PUT", self.path(rest), {"properties": properties})


@pytest.fixture(scope="session")
def served() -> Iterator[Served]:
    with running(Options(databases=RefusingDatabases())) as simulator:
        yield simulator


@pytest.fixture(scope="session")
def owner(served: Served) -> str:
    return token_of(served)


@pytest.fixture
def arm(served: Served, owner: str) -> Arm:
    """Return a client of a cloud that holds one empty resource group."""
    arm = Arm(served, owner)
    arm.control("POST", "reset")
    arm.control("POST", "clock", {"speed": 1})
    group = arm.call("PUT", arm.group_path, {"location": "uksouth"}, version="2020-06-01")
    assert group.status == 201, group
    return arm
