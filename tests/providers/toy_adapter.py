"""The toy service under the contract: servers with operations, servers without, and children of one server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from providers.external.observation import Phase
from providers.external.ownership import Owner
from runtime.objects import Object
from tests.providers.adapter import Adapter, Drift, ExternalObject, Mode, Property, Verb
from tests.providers.adapter_parts import FilledWorld, drifts_of, owner_in, owner_tags
from tests.providers.toy import CONFIGS, START, ToyCloud
from tests.providers.toy_client import SERVER, ToyClient, provider_of
from tests.providers.toy_service import Fault, GatedService, ToyService
from tests.providers.world import SERVER_OWNER, World

_ACTIONS: Mapping[Verb, tuple[str, ...]] = {
    "create": ("insert", "put"),
    "update": ("patch",),
    "password": ("password",),
    "delete": ("delete",),
    "observe": ("get",),
    "list": ("list",),
}
_VERBS = {action: verb for verb, actions in _ACTIONS.items() for action in actions}


class ToyWorld(FilledWorld):
    """Toy objects with a value in each field."""

    fields: ClassVar[Object] = {"size": 10, "zone": "a", "public": False, "retention": 7, "running": True}


@dataclass
class ToyServers(Adapter):
    """Servers whose changes are operations."""

    properties: ClassVar[frozenset[Property]] = frozenset(Property) - {
        Property.CHILDREN,
        Property.SERVERS,
        Property.HALTS,
        Property.LAG,
    }
    edit: ClassVar[Object] = {"size": 20}
    loss: ClassVar[Object] = {"retention": 0}
    client_type: Callable[[ToyService, bool], ToyClient] = ToyClient

    def __post_init__(self) -> None:
        has_operations = Property.OPERATIONS in self.properties
        self.service = GatedService(START, has_operations=has_operations, gate=self.gate)
        self.former: dict[str, Any] = {}
        super().__post_init__()

    def new_world(self, process: str) -> World:
        client = self.client_type(self.service, Property.TAGS in self.properties)
        return ToyWorld(ToyCloud(), kube=self.kube, process=process, provider=provider_of(client))

    def pass_time(self, by: timedelta) -> None:
        self.service.now += by

    def objects(self) -> Mapping[str, ExternalObject]:
        shown = {}
        for name, stored in (self.former | self.service.objects).items():
            shown[name] = ExternalObject(name, stored.incarnation, owner_in(stored.tags))
        return shown

    def writes(self) -> list[str]:
        calls = (line.partition(" ") for line in self.service.log)
        return [f"{_VERBS.get(action, action)} {name}" for action, _, name in calls]

    def forget(self) -> None:
        self.service.log.clear()
        self.service.reads.clear()

    def fail(self, verb: Verb, mode: Mode, times: int | None = 1) -> None:
        self.service.faults += [Fault(action, mode, times) for action in _ACTIONS[verb][:1]]

    def heal(self) -> None:
        self.service.faults.clear()

    def put(self, name: str, owner: tuple[str, ...] | None) -> None:
        is_tagged = owner is not None and Property.TAGS in self.properties
        self.service.put(name, ToyWorld.fields, owner_tags(owner) if is_tagged else None)

    def before_create(self, act: Callable[[], None]) -> None:
        self.service.before |= dict.fromkeys(_ACTIONS["create"], act)

    def vanish(self, name: str) -> None:
        del self.service.objects[name]

    def strip_owner(self, name: str) -> None:
        self.service.objects[name].tags.clear()

    def change_account(self) -> None:
        self.former, self.service.objects, self.service.account = dict(self.service.objects), {}, "account-2"
        key, config = next((key, obj) for key, obj in self.kube.objects.items() if key[0] == CONFIGS)
        changed = deepcopy(config)
        changed["metadata"]["generation"] += 1
        self.kube.store(key[0], changed)

    def drifts(self) -> tuple[Drift, ...]:
        objects = self.service.objects
        return drifts_of(
            {"size": (99, ""), "retention": (0, ""), "zone": ("b", "DriftHeld"), "public": (True, "DriftHeld")},
            lambda thing, name, value: objects[thing].fields.update({name: value}),
            lambda thing, name: objects[thing].fields[name],
        )

    def backups(self) -> tuple[str, ...]:
        return tuple(self.service.backups)

    def refuse_backups(self) -> None:
        self.service.takes_backups = False

    def operations(self) -> Mapping[str, bool]:
        return {handle: bool(running.polls) for handle, running in self.service.operations.items()}

    def overlaps(self) -> list[str]:
        return self.service.overlaps

    def fail_operations(self, verb: Verb, sentence: str) -> None:
        self.service.failing |= dict.fromkeys(_ACTIONS[verb], sentence)

    def lose_operations(self) -> None:
        for running in self.service.operations.values():
            running.is_lost = True

    def renew_authority(self, pem: str) -> None:
        self.service.authority = pem

    def stop(self, name: str) -> None:
        self.service.objects[name].fields["running"] = False

    def is_running(self, name: str) -> bool:
        return bool(self.service.objects[name].fields["running"])


class PlainServers(ToyServers):
    """Servers whose changes are done when they are answered."""

    properties = ToyServers.properties - {Property.OPERATIONS}


class ToyChildren(ToyServers):
    """Children of one server, which carry no tags and leave no backups."""

    properties = ToyServers.properties - {Property.TAGS, Property.BACKUPS, Property.PAGES} | {
        Property.CHILDREN,
        Property.SERVERS,
        Property.HALTS,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self.give_server(SERVER_OWNER)

    def give_server(self, owner: Owner | None) -> str:
        self.service.server_owner = owner
        return SERVER

    def halt_server(self, *, halted: bool) -> None:
        self.service.server_phase = Phase.FAILED if halted else Phase.READY

    def take_server(self) -> None:
        self.service.server_phase = None

    def calls_inside(self) -> list[str]:
        reads = [read for read in self.service.reads if read.startswith(("get ", "list ", "backups "))]
        return reads + self.service.log
