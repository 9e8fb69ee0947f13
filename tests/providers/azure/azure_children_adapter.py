"""What is inside a flexible server under the contract of clouds: databases and firewall rules, without tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from providers.azure.children.kinds import DATABASES, FIREWALL_RULES
from providers.external.cloud_api.tags import owner_tags
from providers.external.ownership import Owner
from providers.external.provider import Kind
from runtime.objects import Object
from tests.providers.adapter import Drift, ExternalObject, Property, Verb
from tests.providers.azure.azure_adapter import AzureServers
from tests.providers.world import SERVER_OWNER

_SERVER = "databases/fl-contract"


@dataclass
class AzureChildren(AzureServers):
    """Children of one server, in an ARM that heeds `If-None-Match`.

    Configurations are none of them: there always is a value, and the same PUT sets one, changes it and takes it back.

    `word` is that of their paths, `theirs` what somebody else's has that is not what `fields` asks for.
    """

    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.OPERATIONS, Property.CHILDREN, Property.SERVERS, Property.HALTS}
    )
    has_logins: ClassVar[bool] = False
    policies: ClassVar[tuple[str, ...]] = ("Orphan",)
    word: ClassVar[str]
    theirs: ClassVar[Object]

    def __post_init__(self) -> None:
        self.arm.behave(honours_if_none_match=True)
        self.arm.make(_SERVER, owner_tags(SERVER_OWNER))
        self.pass_time(timedelta(hours=1))
        super().__post_init__()

    def give_server(self, owner: Owner | None) -> str:
        self.arm.steer(_SERVER, tags={} if owner is None else owner_tags(owner))
        self.pass_time(timedelta(minutes=10))
        return _SERVER

    def halt_server(self, *, halted: bool) -> None:
        self.arm.steer(_SERVER, state="Disabled" if halted else "Ready")

    def take_server(self) -> None:
        self.arm.steer(_SERVER, vanish=True)

    def calls_inside(self) -> list[str]:
        return [call["action"] for call in self.arm.calls() if call["action"].startswith(self.word)]

    def objects(self) -> Mapping[str, ExternalObject]:
        names = [f"{_SERVER}/{child}" for child in self._children()]
        return {name: ExternalObject(name, self._incarnation(name), None) for name in names}

    def _incarnation(self, name: str) -> str:
        return name

    def _children(self) -> Mapping[str, Any]:
        children: Mapping[str, Any] = self.arm.server(_SERVER)["children"][self.word]
        return children

    def put(self, name: str, owner: tuple[str, ...] | None) -> None:
        del owner
        self.arm.control("POST", self._path(name), self.theirs)

    def vanish(self, name: str) -> None:
        self.arm.control("DELETE", self._path(name))

    def _path(self, name: str) -> str:
        _, server, child = name.split("/")
        return f"servers/{server}/{self.word}/{child}"


class AzureRules(AzureChildren):
    """Firewall rules; a rule that somebody made has a range of its own."""

    lacks: ClassVar[frozenset[Property]] = frozenset({Property.DATA, Property.PROOFS})
    edit: ClassVar[Object] = {"cidr": "198.51.100.0/24"}
    kind: ClassVar[Kind[Any, Any]] = FIREWALL_RULES
    fields: ClassVar[Object] = {"server": _SERVER, "cidr": "203.0.113.0/24"}
    word: ClassVar[str] = "firewallRules"
    theirs: ClassVar[Object] = {"startIpAddress": "192.0.2.1", "endIpAddress": "192.0.2.9"}
    actions: ClassVar[Mapping[Verb, str]] = {
        "create": "firewallRules.put", "update": "firewallRules.put", "delete": "firewallRules.delete",
        "observe": "firewallRules.get",
    }  # fmt: skip

    def drifts(self) -> tuple[Drift, ...]:
        def is_there(name: str) -> bool:
            return bool(self._children()[name.rpartition("/")[2]] == self.theirs)

        return (Drift("cidr", lambda name: self.put(name, None), is_there),)


class AzureDatabases(AzureChildren):
    """Databases: nothing of one is changed after its create, and ARM gives it no date of its own."""

    lacks: ClassVar[frozenset[Property]] = frozenset({Property.EDITS, Property.INCARNATIONS})
    edit: ClassVar[Object] = {}
    kind: ClassVar[Kind[Any, Any]] = DATABASES
    fields: ClassVar[Object] = {"server": _SERVER, "charset": "UTF8"}
    word: ClassVar[str] = "databases"
    theirs: ClassVar[Object] = {"charset": "LATIN1", "collation": "C"}
    actions: ClassVar[Mapping[Verb, str]] = {
        "create": "databases.put", "update": "databases.put", "delete": "databases.delete", "observe": "databases.get",
    }  # fmt: skip

    def ask(self, name: str = "db", *, policy: str = "Delete", **spec: Any) -> Object:
        return super().ask(name, policy=policy, **{**spec, "parameters": {"name": name, **spec.get("parameters", {})}})

    def _incarnation(self, name: str) -> str:
        created = str(self.arm.server(_SERVER)["systemData"]["createdAt"]).replace("0Z", "+00:00")
        return f"{created}/{name.rpartition('/')[2]}"

    def _children(self) -> Mapping[str, Any]:
        azures_own = {"azure_maintenance", "azure_sys", "postgres"}
        return {name: child for name, child in super()._children().items() if name not in azures_own}

    def drifts(self) -> tuple[Drift, ...]:
        return ()
