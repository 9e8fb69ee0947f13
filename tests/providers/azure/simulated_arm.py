"""A simulated ARM as its judges see it: what is there, what was called, and what a person does."""

from __future__ import annotations

import json
import urllib.parse
import urllib.request
from contextlib import AsyncExitStack
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from devcloud.azure.server import Served
from runtime.objects import Object
from tests.devcloud.azure.conftest import token_of
from tests.providers.azure.azure_world import SERVER
from tests.support.simulator_control import control, headers_of

GROUP = "databases"
OWNER = {"name": "Owner", "actions": ["*"]}
_API, _GROUPS_API = "2025-08-01", "2022-09-01"
_PERSON, _PERSON_ID, _PERSON_SECRET = "a-person", "object-of-a-person", "secret-of-a-person"
_PLAIN: Object = {
    "location": "uksouth",
    "sku": {"name": SERVER["skuName"], "tier": SERVER["skuTier"]},
    "properties": {
        "version": "16",
        "administratorLogin": "app",
        "administratorLoginPassword": "Sufficient-1",
        "createMode": "Create",
    },
}
_NO_LIMIT = dict.fromkeys(("read_per_s", "write_per_s", "delete_per_s", "burst", "read_burst"), 1_000_000)


@dataclass
class Arm:
    """What is in the subscription and what was called, from ARM's own side; what a person does there.

    `since` is the number of the last call that is not counted any more, `of_others` are the operations that somebody
    else began; `connected` is closed with it.
    """

    served: Served
    since: int = 0
    of_others: set[str] = field(default_factory=set)
    connected: AsyncExitStack = field(default_factory=AsyncExitStack)

    def __post_init__(self) -> None:
        # ARM's buckets are of the real time, which passes for nobody here.
        self.behave(retry_after_s=0, throttle=_NO_LIMIT)
        self.control("POST", "principals", {"client_id": _PERSON, "object_id": _PERSON_ID, "secrets": [_PERSON_SECRET]})
        self.allow(_PERSON_ID, self.served.subscription)
        self.principal = str(self.control("GET", "principals")[self.served.credentials[0]])
        self.token = token_of(self.served)
        self._persons_token = token_of(self.served, client_id=_PERSON, secret=_PERSON_SECRET)
        self.person("PUT", f"resourceGroups/{GROUP}", {"location": "uksouth"}, api=_GROUPS_API)

    # Its control

    def control(self, method: str, path: str, body: object = None) -> Any:
        """Make a control call; return its JSON."""
        return control(self.served, method, path, body)

    def behave(self, **chosen: Any) -> None:
        """Choose of ARM's conduct."""
        self.control("POST", "behaviour", chosen)

    def steer(self, name: str, **change: Any) -> None:
        """Have something happen to a server, by its external name, behind the API's back."""
        self.control("POST", f"servers/{_own(name)}", change)

    def fault(self, action: str, code: str = "", status: int = 0, **settings: Any) -> None:
        """Have calls of an action refused by a code; without one, cut after their effect."""
        kind = {"code": code, "status": status, "message": "It is refused."} if code else {"kind": "drop"}
        self.control("POST", "faults", {"action": action, "times": None, **kind, **settings})

    def pass_time(self, by: timedelta) -> None:
        """Let time pass at ARM."""
        self.control("POST", "clock", {"advance_s": by.total_seconds()})

    def heal(self) -> None:
        """Take away all faults."""
        self.control("DELETE", "faults")

    def allow(self, object_id: str, subscription: str) -> None:
        """Let somebody do everything in a subscription, which is made where there is none of the name."""
        self.control("POST", f"subscriptions/{subscription}", {"tenant": self.served.tenant})
        scope = f"/subscriptions/{subscription}"
        self.control("POST", "roles", {"object_id": object_id, "scope": scope, "role": OWNER})

    # What there is

    def server(self, name: str) -> Object:
        """Return a server, by its external name, as the newest API version shows it, and what is in it."""
        shown: Object = self.control("GET", f"servers/{_own(name)}")
        return shown

    def servers(self) -> dict[str, Object]:
        """Return every server of every subscription by its external name."""
        shown = self.control("GET", "views")
        return {f"{server['id'].split('/')[4].lower()}/{server['name']}": server for server in shown}

    def operations(self) -> dict[str, Object]:
        """Return the operations that the provider began, by their handles."""
        every: list[Object] = self.control("GET", "operations")
        return {operation["id"]: operation for operation in every if operation["id"] not in self.of_others}

    def calls(self, *actions: str, since: int | None = None) -> list[Object]:
        """Return the provider's calls since the last `forget`, or since a number: of some actions, or all."""
        log = self.control("GET", f"audit?since={self.since if since is None else since}")
        return [
            call for call in log if call["principal"] == self.principal and (not actions or call["action"] in actions)
        ]

    def changes(self) -> list[str]:
        """Return the actions of the provider's changing calls since the last `forget`, in order."""
        return [str(call["action"]) for call in self.calls() if call["mutating"]]

    def ends_read(self) -> dict[str, bool]:
        """Return every operation that the provider began, and whether it was asked for after its end."""
        polls = self.calls("azureAsyncOperation.get", since=0)
        polled_at = {str(poll["identifier"]).replace("-", ""): str(poll["at"]) for poll in polls}
        return {
            handle: operation["ended_at"] is not None and polled_at.get(handle, "") >= operation["ended_at"]
            for handle, operation in self.operations().items()
        }

    def met_busy(self) -> list[str]:
        """Return what the provider sent to a server that was busy: refused at once, or accepted and then failed."""
        errors = [(operation["target"], operation["error"] or {}) for operation in self.operations().values()]
        failed = [str(target) for target, error in errors if error.get("code") == "ServerIsBusy"]
        return failed + [str(call["action"]) for call in self.calls(since=0) if call["outcome"] == "ServerIsBusy"]

    def forget(self) -> None:
        """Count calls from here on."""
        self.since = max((int(call["seq"]) for call in self.control("GET", "audit?since=0")), default=0)

    # A person

    def person(self, method: str, path: str, body: object = None, *, api: str = _API) -> Any:
        """Call a path below the subscription as somebody else; return the JSON of the answer."""
        known = set(self.operations())
        url = f"{self.served.url}/subscriptions/{self.served.subscription}/{path}?api-version={api}"
        answer = _sent(url, method, body, self._persons_token)
        self.of_others |= set(self.operations()) - known
        return answer

    def make(self, name: str, tags: dict[str, str] | None = None, **properties: Any) -> None:
        """Create a server as somebody else does; it is Ready when its time is over."""
        body = deepcopy(_PLAIN) | ({"tags": tags} if tags else {})
        body["properties"] |= properties
        self.person("PUT", path_of(name), body)


def name_of(call: Object) -> str:
    """Return the external name of what a call of the log is about."""
    return f"{call['params']['group'].lower()}/{call['identifier']}"


def path_of(name: str, *below: str) -> str:
    """Return the path, below its subscription, of a server by its external name, or of what is in it."""
    group, server = name.split("/")
    return "/".join(("resourceGroups", group, "providers/Microsoft.DBforPostgreSQL/flexibleServers", server, *below))


def _own(name: str) -> str:
    return name.split("/")[1]


def _sent(url: str, method: str, body: object, token: str) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, method=method, data=data, headers=headers_of(token))  # noqa: S310 - loop-back
    with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310 - as above
        return json.loads(reply.read() or b"{}")
