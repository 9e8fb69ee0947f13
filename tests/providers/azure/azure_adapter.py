"""Azure under the contract of clouds: a simulated ARM over its wire, by a clock that is moved on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from providers.azure import FLEXIBLE_SERVERS
from providers.external.provider import Kind
from runtime.objects import Key, Object
from tests.providers.adapter import Adapter, Drift, ExternalObject, Mode, Property, Verb
from tests.providers.adapter_parts import owner_tags
from tests.providers.azure.arm_world import ArmWorld
from tests.providers.azure.azure_world import SERVER
from tests.providers.azure.simulated_arm import Arm, name_of, path_of
from tests.providers.gates import Calls
from tests.providers.world import World

_CODES: Mapping[Mode, tuple[str, int]] = {
    "refused": ("ServiceUnavailable", 503), "unanswered": ("", 0), "throttled": ("SubscriptionRequestsThrottled", 429),
    "forbidden": ("AuthorizationFailed", 403), "absent": ("ResourceNotFound", 404),
    "invalid": ("InvalidParameterValue", 400),
}  # fmt: skip
_OTHER_SUBSCRIPTION = "00000000-0000-4000-8000-000000000002"


@dataclass
class AzureServers(Adapter):
    """Flexible servers."""

    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.TAGS, Property.OPERATIONS, Property.PAGES, Property.LAG, Property.NOT_FOUND, Property.ACCOUNTS,
         Property.LOSS}
    )  # fmt: skip
    edit: ClassVar[Object] = {"backupRetentionDays": 9}
    loss: ClassVar[Object] = {"version": "17"}
    # A throttle pauses the account by the real time; test_arm.py is about it.
    errors: ClassVar[tuple[Mode, ...]] = ("refused", "forbidden")
    kind: ClassVar[Kind[Any, Any]] = FLEXIBLE_SERVERS
    fields: ClassVar[Object] = {
        **SERVER, "backupRetentionDays": 7, "publicNetworkAccess": "Enabled", "autoGrow": "Enabled",
        "activeDirectoryAuth": "Disabled",
    }  # fmt: skip
    actions: ClassVar[Mapping[Verb, str]] = {
        "create": "flexibleServers.put", "update": "flexibleServers.patch", "password": "flexibleServers.patch",
        "delete": "flexibleServers.delete", "observe": "flexibleServers.get",
        "list": "flexibleServers.listBySubscription",
    }  # fmt: skip
    arm: Arm = field(kw_only=True)

    def __post_init__(self) -> None:
        self.calls = Calls(self.gate)
        super().__post_init__()

    def new_world(self, process: str) -> World:
        return ArmWorld(self.arm, kind=self.kind, spec=self.fields, kube=self.kube, process=process, calls=self.calls)

    def pass_time(self, by: timedelta) -> None:
        self.arm.pass_time(by)

    def objects(self) -> Mapping[str, ExternalObject]:
        shown = {}
        for name, server in self.arm.servers().items():
            tags = server.get("tags") or {}
            owner = (tags["fairlead-installation"], tags["fairlead-identity"]) if "fairlead-identity" in tags else None
            shown[name] = ExternalObject(name, server["systemData"]["createdAt"].replace("0Z", "+00:00"), owner)
        return shown

    def writes(self) -> list[str]:
        made: set[str] = set()
        verbs = [(call, self._verb_of(call, made)) for call in self.arm.calls(since=0) if call["mutating"]]
        return [f"{verb} {name_of(call)}" for call, verb in verbs if call["seq"] > self.arm.since]

    def _verb_of(self, call: Object, made: set[str]) -> str:
        """Return what a call is to the contract; `made` are the children before it: their one PUT also changes."""
        verb = next(verb for verb, action in self.actions.items() if action == call["action"])
        if "administratorLoginPassword" in call["params"].get("properties", {}) and verb == "update":
            return "password"
        if verb == "create" and name_of(call) in made and Property.CHILDREN in self.properties:
            verb = "update"
        if call["outcome"] in {"ok", "dropped"}:
            (made.discard if verb == "delete" else made.add)(name_of(call))
        return verb

    def forget(self) -> None:
        self.arm.forget()

    def fail(self, verb: Verb, mode: Mode, times: int | None = 1) -> None:
        # A read whose error may pass by itself is sent three times within a pass.
        is_read = verb in {"observe", "list"} and mode == "refused"
        self.arm.fault(self.actions[verb], *_CODES[mode], times=3 * times if times is not None and is_read else times)

    def heal(self) -> None:
        self.arm.heal()

    def put(self, name: str, owner: tuple[str, ...] | None) -> None:
        self.arm.make(name if "/" in name else f"databases/{name}", owner_tags(owner, "fairlead-"))

    def before_create(self, act: Callable[[], None]) -> None:
        self.calls.before_create = act

    def vanish(self, name: str) -> None:
        self.arm.steer(name, vanish=True)

    def delete_by_hand(self, name: str) -> None:
        self.arm.person("DELETE", path_of(name))

    def strip_owner(self, name: str) -> None:
        self.arm.steer(name, tags={})

    def change_account(self) -> None:
        self.arm.allow(self.arm.principal, _OTHER_SUBSCRIPTION)
        config = deepcopy(self.kube.objects[self.world.provider.config_resource, Key("", "default")])
        config["metadata"]["generation"] += 1
        config["spec"]["subscriptionID"] = _OTHER_SUBSCRIPTION
        self.kube.store(self.world.provider.config_resource, config)

    def operations(self) -> Mapping[str, bool]:
        return self.arm.ends_read()

    def overlaps(self) -> list[str]:
        return self.arm.met_busy()

    def fail_operations(self, verb: Verb, sentence: str) -> None:
        del verb
        self.arm.control("POST", "operations", {"code": "InvalidParameterValue", "message": sentence, "times": None})

    def lose_operations(self) -> None:
        for handle in self.arm.operations():
            self.arm.control("DELETE", f"operations/{handle}")

    def lag(self, by: timedelta) -> None:
        self.arm.behave(list_lag_s=by.total_seconds(), get_lag_s=by.total_seconds())

    def drifts(self) -> tuple[Drift, ...]:
        fields: dict[str, tuple[tuple[str, str], Any, str]] = {
            "backupRetentionDays": (("backup", "backupRetentionDays"), 12, ""),
            "autoGrow": (("storage", "autoGrow"), "Disabled", ""),
            "publicNetworkAccess": (("network", "publicNetworkAccess"), "Disabled", ""),
            "activeDirectoryAuth": (("authConfig", "activeDirectoryAuth"), "Enabled", "DriftHeld"),
        }
        return tuple(self._drift(name, *row) for name, row in fields.items())

    def _drift(self, name: str, path: tuple[str, str], value: Any, held: str) -> Drift:
        def is_there(thing: str) -> bool:
            return bool(self.arm.server(thing)["properties"][path[0]][path[1]] == value)

        return Drift(name, lambda thing: self.arm.steer(thing, properties={path[0]: {path[1]: value}}), is_there, held)
