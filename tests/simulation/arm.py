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
from devcloud.azure.simulator import Simulator
from devcloud.azure.state.catalog import FIRST_LOCATION
from devcloud.azure.state.model import Group, Server
from devcloud.simulator.clock import Clock
from devcloud.simulator.messages import Answer, Refusal, Request
from devcloud.simulator.rest import Grant
from runtime import clock
from tests.simulation.arm_logins import ServerLogins
from tests.simulation.cloud_sql import Made, Weather

CREDENTIALS: Final = {
    "AZURE_TENANT_ID": TENANT,
    "AZURE_CLIENT_ID": CLIENT_ID,
    "AZURE_CLIENT_SECRET": CLIENT_SECRET,
}
"""What the Secret of the ProviderConfig holds."""
ACCOUNT: Final = str(uuid.uuid5(uuid.NAMESPACE_DNS, CLIENT_ID))
STRANGER: Final = "alice"
API: Final = "api-version=2025-08-01"
ENDPOINT: Final = "https://management.azure.com"
SERVERS: Final = "/providers/Microsoft.DBforPostgreSQL/flexibleServers"
_ACCEPTED: Final = 202
_THROTTLED: Final = 429
# A creation of six minutes takes one and a half: it is looked at every five seconds.
_DURATIONS: Final = 0.25


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
        directory.add(Principal(client_id=STRANGER, object_id=STRANGER))
        directory.assign(Assignment(object_id=STRANGER, scope=f"/subscriptions/{SUBSCRIPTION}", role=OWNER))
        self.logins = ServerLogins(self.emit)
        wall = Clock(durations=_DURATIONS, wall=clock.wall_seconds)
        self.simulator = Simulator(wall, directory, self.logins, scheme="https")
        # A signature of three thousand characters in each operation costs time and shows nothing here.
        self.simulator.controls.behaviour = AzureBehaviour(signed_urls=False)
        cloud = self.simulator.cloud
        cloud.resources.keep_group(Group(subscription=SUBSCRIPTION, name=RESOURCE_GROUP, location=FIRST_LOCATION))
        self._token = cloud.tokens.issue(Grant(principal=STRANGER, account=TENANT))

    def servers(self) -> Mapping[str, Server]:
        """Return what there is by name."""
        return self.simulator.cloud.resources.servers

    def state_of(self, server: Server) -> str:
        """Return the state that a server shows."""
        return self.simulator.cloud.resources.state_of(server)

    def steer(self, name: str, **change: object) -> None:
        """Have something happen to a server behind the API's back."""
        self.emit("steer", name, sorted(change.items()))
        before = self.servers()[name]
        if change.get("replace"):
            self.history.append(Made(clock.monotonic(), "", "flexibleServers.replace", name, "", had=True))
        self.simulator.control("POST", ("servers", name), change)
        if change.get("replace"):
            self.logins.replace(before.resource_id, self.servers()[name].resource_id)

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
        server = self.servers().get(call.names.get("server", "").lower())
        if server is None:
            return False
        children = {**server.databases, **server.rules, **server.overrides}
        return not _child_of(call) or _child_of(call) in children

    def _note(self, call: Call, answer: Answer, *, had: bool) -> None:
        """Write down a change that was accepted, unless its operation has failed at once as its server was busy."""
        if call.grant is None or answer.status != _ACCEPTED or call.method == "GET":
            return
        operation = self.simulator.cloud.resources.operations.get(_operation_of(answer))
        if operation is None or operation.error is None:
            server = call.names.get("server", "")
            made = Made(clock.monotonic(), call.grant.principal, call.action, server, _child_of(call), had)
            self.history.append(made)


def _child_of(call: Call) -> str:
    return next((call.names[kind] for kind in ("database", "rule", "configuration") if kind in call.names), "")


def _operation_of(answer: Answer) -> str:
    """Return the handle of the operation that an answer began."""
    url = answer.headers["Azure-AsyncOperation"]
    return uuid.UUID(urlsplit(url).path.rpartition("/")[2]).hex
