"""The simulated Azure without sockets and threads: ARM and Entra as the provider's transport calls them."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from devcloud.azure.api.calls import Call
from devcloud.azure.behaviour import AzureBehaviour
from devcloud.azure.entra.directory import (
    CLIENT_ID,
    CLIENT_SECRET,
    OWNER,
    SUBSCRIPTION,
    TENANT,
    Assignment,
    Principal,
    default_directory,
)
from devcloud.azure.platform import RESOURCE_GROUP
from devcloud.azure.refusals import Throttled
from devcloud.azure.resources import Resources
from devcloud.azure.simulator import Simulator
from devcloud.azure.state.catalog import FIRST_LOCATION
from devcloud.azure.state.model import Group, Server
from devcloud.simulator.clock import Clock
from devcloud.simulator.messages import Answer, Refusal, Request
from devcloud.simulator.rest import Grant
from fairlead.simulation.arm_logins import ServerLogins
from fairlead.simulation.calls import NOBODY, PROVIDER, STRANGER, Made, Weather
from providers.external.credential import NO_ANSWER, Credential, LoginAnswer
from providers.external.endpoint import Endpoint
from runtime import clock

CREDENTIALS: Final = {
    "AZURE_TENANT_ID": TENANT,
    "AZURE_CLIENT_ID": CLIENT_ID,
    "AZURE_CLIENT_SECRET": CLIENT_SECRET,
}
"""What the Secret of the ProviderConfig holds."""
ACCOUNT: Final = str(uuid.uuid5(uuid.NAMESPACE_DNS, CLIENT_ID))
ALICE: Final = "alice"
API: Final = "api-version=2025-08-01"
ENDPOINT: Final = "https://management.azure.com"
SERVERS: Final = "/providers/Microsoft.DBforPostgreSQL/flexibleServers"
_ACCEPTED: Final = 202
_THROTTLED: Final = 429
# A creation of six minutes takes one and a half: it is looked at every five seconds.
_DURATIONS: Final = 0.25
_KINDS: Final[Mapping[str, Callable[[Server], Mapping[str, object]]]] = {
    "databases": lambda server: server.databases,
    "firewallRules": lambda server: server.rules,
    "configurations": lambda server: server.overrides,
}
_ROLES: Final = {"flexibleServers": "servers", "firewallRules": "rules", "configurations": "settings"}
_VERBS: Final = {"patch": "change"}


@dataclass(slots=True)
class Azure:
    """One subscription; `emit` takes lines into the trace."""

    emit: Callable[..., None]
    chance: random.Random
    weather: Weather = field(default_factory=Weather)
    history: list[Made] = field(default_factory=list)
    simulator: Simulator = field(init=False)
    logins: ServerLogins = field(init=False)
    _token: str = field(init=False)

    def __post_init__(self) -> None:
        directory = default_directory()
        directory.add(Principal(client_id=ALICE, object_id=ALICE))
        directory.assign(Assignment(object_id=ALICE, scope=f"/subscriptions/{SUBSCRIPTION}", role=OWNER))
        self.logins = ServerLogins(self.emit)
        wall = Clock(durations=_DURATIONS, wall=clock.wall_seconds)
        self.simulator = Simulator(wall, directory, self.logins, scheme="https")
        # A signature of three thousand characters in each operation costs time and shows nothing here.
        self.simulator.controls.behaviour = AzureBehaviour(signed_urls=False, activity_lag_s=60.0)
        cloud = self.simulator.cloud
        cloud.resources.keep_group(Group(subscription=SUBSCRIPTION, name=RESOURCE_GROUP, location=FIRST_LOCATION))
        self._token = cloud.tokens.issue(Grant(principal=ALICE, account=TENANT))

    @property
    def resources(self) -> Resources:
        """All that there is."""
        return self.simulator.cloud.resources

    def servers(self) -> list[str]:
        """Return the servers, sorted."""
        return sorted(self.resources.servers)

    def left(self) -> set[str]:
        """Return all that is there: servers, and their databases, rules and chosen parameters."""
        present = self.resources.servers
        return {
            *present,
            *(f"{name}/{of}" for name, server in present.items() for kind in _KINDS for of in _KINDS[kind](server)),
        }

    def backups(self) -> list[str]:
        """Return nothing: no backup outlives its server."""
        return []

    def runs(self, server: str) -> bool:
        """Return whether a server is there and answers."""
        known = self.resources.servers.get(server)
        if known is None or known.properties.state != "Ready":
            return False
        behind = self.logins.servers.get(known.resource_id)
        return behind is not None and behind.runs

    def size_of(self, server: str, database: str) -> object:
        """Return the name of a server's SKU."""
        del database
        return self.resources.servers[server].sku.name

    def number_of(self, server: str, database: str) -> int:
        """Return the number under which a database was made, 0 where it is not there."""
        known = self.resources.servers[server]
        return self.logins.servers[known.resource_id].databases.get(database, 0)

    def admits(self, server: str, user: str, password: str, database: str) -> bool:
        """Return whether a login succeeds."""
        known = self.resources.servers.get(server)
        return (
            known is not None and self.runs(server) and self.logins.admits(known.resource_id, user, password, database)
        )

    def log_in(self, endpoint: Endpoint, credential: Credential) -> LoginAnswer:
        """Return what a server answers to a login of the provider's."""
        server = self.resources.servers.get(endpoint.host.partition(".")[0].removeprefix("db-"))
        if server is None or server.properties.state != "Ready":
            return NO_ANSWER
        return self.logins.answer(server.resource_id, credential, endpoint.database)

    def steer(self, name: str, **change: object) -> None:
        """Have something happen to a server behind the API's back."""
        self.emit("steer", name, sorted(change.items()))
        before = self.resources.servers[name]
        if change.get("replace"):
            self.history.append(Made(clock.monotonic(), NOBODY, "servers.replace", name, "", had=True))
        self.simulator.control("POST", ("servers", name), change)
        if change.get("replace"):
            self.logins.replace(before.resource_id, self.resources.servers[name].resource_id)

    async def run(self) -> None:
        """Let happen what happens by itself."""
        while True:
            await asyncio.sleep(5)
            self.simulator.tick()

    def ask(self, verb: str, path: str, body: Any = None) -> Answer:
        """Carry out a request of a stranger, by its path below the subscription's group."""
        url = f"{ENDPOINT}/subscriptions/{SUBSCRIPTION}/resourceGroups/{RESOURCE_GROUP}{path}?{API}"
        headers = {"authorization": f"Bearer {self._token}"}
        return self.answer(verb, url, headers, b"" if body is None else msgspec.json.encode(body))

    def answer(self, verb: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Carry out a request of somebody; its answer is that of the wire."""
        call: Call | None = None
        parts = urlsplit(url)
        request = Request(
            method=verb, path=unquote(parts.path), query=parts.query, parameters=dict(parse_qsl(parts.query)),
            headers={"host": parts.netloc, **{name.lower(): value for name, value in headers.items()}}, body=body,
        )  # fmt: skip
        try:
            call = self.simulator.admit(request)
            had = self._has(call)
            answer = self.simulator.perform(call)
        except Refusal as refusal:
            answer = self.simulator.refused(refusal, call)
        else:
            self._note(call, answer, had=had)
        who = "" if call is None or call.grant is None else call.grant.principal
        self.emit(round(clock.monotonic(), 6), who, verb, parts.path, answer.status)
        return answer

    def refuse(self, code: str, status: int) -> Answer:
        """Return a refusal that the cloud gives for no reason of the call's."""
        text = "It was refused."
        refusal = Throttled(text, 5) if status == _THROTTLED else Refusal(code, text, status=status)
        return self.simulator.refused(refusal, None)

    def _has(self, call: Call) -> bool:
        server = self.resources.servers.get(call.names.get("server", "").lower())
        inside = _KINDS.get(call.action.partition(".")[0])
        return server is not None and (inside is None or _child_of(call) in inside(server))

    def _note(self, call: Call, answer: Answer, *, had: bool) -> None:
        """Write down a change that was accepted, unless its operation has failed at once as its server was busy."""
        if call.grant is None or answer.status != _ACCEPTED or call.method == "GET":
            return
        operation = self.resources.operations.get(_operation_of(answer))
        if operation is not None and operation.error is not None:
            return
        now, who = clock.monotonic(), PROVIDER if call.grant.principal == ACCOUNT else STRANGER
        name, properties = call.names.get("server", ""), call.body.get("properties") or {}
        self.history.append(Made(now, who, _action_of(call, had=had), name, _child_of(call), had))
        server = self.resources.servers.get(name)
        if had and server is not None and "administratorLoginPassword" in properties:
            login = server.properties.administrator_login or ""
            self.history += [Made(now, who, "logins.change", name, of, had=True) for of in ("", login)]


def _action_of(call: Call, *, had: bool) -> str:
    """Return an action as the history calls it: a PUT makes or changes, and puts a parameter's default back."""
    kind, _, verb = call.action.partition(".")
    if verb == "put" and (call.body.get("properties") or {}).get("source") == "system-default":
        verb = "delete"
    if verb == "put":
        # What is inside of a server is made again where it was; only a server is changed by it.
        verb = "change" if had and kind == "flexibleServers" else "create"
    return f"{_ROLES.get(kind, kind)}.{_VERBS.get(verb, verb)}"


def _child_of(call: Call) -> str:
    return next((call.names[kind] for kind in ("database", "rule", "configuration") if kind in call.names), "")


def _operation_of(answer: Answer) -> str:
    """Return the handle of the operation that an answer began."""
    url = answer.headers["Azure-AsyncOperation"]
    return uuid.UUID(urlsplit(url).path.rpartition("/")[2]).hex
