"""The simulated Cloud SQL from its own side: what there is, who called, and what a stranger does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from devcloud.gcp.server import ROLE, Served
from runtime.objects import Object
from tests.support.simulator_control import control, send

REGION = "europe-west1"
OTHER_PROJECT = "other-project-271828"
_STRANGER = "alice@example.com"


@dataclass
class SimulatedSql:
    """One simulator; OTHER_PROJECT is an empty project, which the provider's service account reaches as well."""

    served: Served
    _token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        self.control("POST", "projects", {"id": OTHER_PROJECT, "number": "271828182845"})
        for project, member in ((self.served.project, _STRANGER), (OTHER_PROJECT, self.served.account)):
            self.control("POST", "bindings", {"project": project, "member": member, "roles": [ROLE]})
        self._token = self.control("POST", "tokens", {"principal": _STRANGER})["token"]

    def control(self, method: str, path: str, body: object = None) -> Any:
        """Make a control call; return its JSON."""
        return control(self.served, method, path, body)

    def instances(self) -> dict[str, Object]:
        """Return all instances by name."""
        return {str(instance["name"]): instance for instance in self.control("GET", "instances")}

    def steer(self, name: str, **change: Any) -> None:
        """Have something happen to an instance behind the API's back."""
        self.control("POST", f"instances/{self.served.project}/{name}", change)

    def behave(self, **behaviour: Any) -> None:
        """Choose the simulator's conduct."""
        self.control("POST", "behaviour", behaviour)

    def mark(self) -> int:
        """Return the number of the last call so far."""
        return max((int(call["seq"]) for call in self.control("GET", "audit?since=0")), default=0)

    def calls(self, since: int = 0) -> list[Object]:
        """Return the provider's calls after a mark, in their order; nobody else's."""
        calls = self.control("GET", f"audit?since={since}")
        return [call for call in calls if call["principal"] == self.served.account]

    def changes(self, since: int = 0) -> list[Object]:
        """Return those of them that change something, whatever became of them."""
        return [call for call in self.calls(since) if call["mutating"]]

    def operations(self) -> dict[str, bool]:
        """Return the provider's operations by handle, and whether one was looked at when it had ended."""
        polled_at: dict[str, datetime] = {}
        for call in self.calls():
            if call["action"] == "operations.get":
                polled_at[str(call["identifier"])] = datetime.fromisoformat(call["at"])
        own = (item for item in self.control("GET", "operations") if item["effect"].get("user") == self.served.account)
        return {str(operation["id"]): _is_read(operation, polled_at) for operation in own}

    def create(self, name: str, labels: Mapping[str, str]) -> None:
        """Create an instance as somebody else does."""
        settings: Object = {"tier": "db-custom-1-3840", "edition": "ENTERPRISE", "userLabels": dict(labels)}
        body: Object = {"name": name, "region": REGION, "databaseVersion": "POSTGRES_16", "settings": settings}
        self.call("POST", "instances", body)

    def call(self, method: str, path: str, body: object) -> Any:
        """Call the API as somebody else; `path` is below the project."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        return send(self.served, method, f"v1/projects/{self.served.project}/{path}", body, headers)

    def undisturbed(self, method: str, path: str) -> Any:
        """Call the API as somebody else whom no fault meets."""
        faults = self.control("GET", "faults")
        self.control("DELETE", "faults")
        answer = self.call(method, path, None)
        for fault in faults:
            self.control("POST", "faults", fault)
        return answer


def _is_read(operation: Object, polled_at: Mapping[str, datetime]) -> bool:
    ended_at, looked_at = operation["ended_at"], polled_at.get(str(operation["id"]))
    return bool(ended_at) and looked_at is not None and looked_at >= datetime.fromisoformat(ended_at)


def owner_in(instance: Object) -> tuple[str, str] | None:
    """Return installation and identity of an instance's labels, None without them."""
    labels = instance["settings"].get("userLabels", {})
    return (labels["fairlead-installation"], labels["fairlead-identity"]) if "fairlead-identity" in labels else None


def nested(path: tuple[str, ...], value: Any) -> Object:
    """Return a resource in which nothing but the value at a path stands."""
    for step in reversed(path):
        value = {step: value}
    body: Object = value
    return body


def value_at(resource: Object, path: tuple[str, ...]) -> Any:
    """Return what stands at a path of a resource, None for nothing."""
    value: Any = resource
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value
