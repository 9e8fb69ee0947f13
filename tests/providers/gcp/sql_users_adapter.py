"""Users of Cloud SQL under the contract of clouds: with passwords, inside one instance that a stranger made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import quote

from providers.external.ownership import Owner
from providers.gcp import USERS
from providers.gcp.names import owner_labels
from runtime.objects import Object
from tests.providers.adapter import Drift, ExternalObject, Property, Verb
from tests.providers.gcp.sql_adapter import SqlAdapter
from tests.providers.gcp.sql_world import GatedWorld
from tests.providers.world import SERVER_OWNER, World

_SERVER = "of-the-platform"
_USERS = f"instances/{_SERVER}/users"
_ACTIONS: Mapping[Verb, str] = {
    "create": "users.insert", "update": "users.update", "password": "users.update", "delete": "users.delete",
    "observe": "users.list",
}  # fmt: skip


class SqlUsersAdapter(SqlAdapter):
    """Users; Cloud SQL's create changes the password of one who is there, and none has an id of its own."""

    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.OPERATIONS, Property.CHILDREN, Property.SERVERS, Property.HALTS}
    )
    lacks: ClassVar[frozenset[Property]] = frozenset({Property.DATA, Property.CREATES_ONLY})
    has_logins: ClassVar[bool] = True
    edit: ClassVar[Object] = {"databaseRoles": ["readers", "writers"]}
    actions: ClassVar[Mapping[Verb, str]] = _ACTIONS
    hidden: ClassVar[str] = "users.list"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sql.create(_SERVER, owner_labels(SERVER_OWNER))
        self.move_on(timedelta(minutes=10))

    def new_world(self, process: str) -> World:
        return GatedWorld(self.served, self.kube, process, self.calls, USERS)

    def ask(self, name: str = "db", *, policy: str = "Delete", **spec: Any) -> Object:
        fields = {"instance": _SERVER, "name": name, "databaseRoles": ["readers"], **spec.pop("parameters", {})}
        return super().ask(name, policy=policy, parameters=fields, **spec)

    def give_server(self, owner: Owner | None) -> str:
        former = dict.fromkeys(owner_labels(SERVER_OWNER))
        labels = former if owner is None else {**former, **owner_labels(owner)}
        self.sql.call("PATCH", f"instances/{_SERVER}", {"settings": {"userLabels": labels}})
        self.move_on(timedelta(minutes=10))
        return _SERVER

    def halt_server(self, *, halted: bool) -> None:
        self.sql.steer(_SERVER, state="SUSPENDED" if halted else "RUNNABLE")

    def take_server(self) -> None:
        self.sql.steer(_SERVER, vanish=True)

    def calls_inside(self) -> list[str]:
        inside = ("users.", "databases.", "instances.listServerCas")
        return [call["action"] for call in self.sql.calls(self.since) if call["action"].startswith(inside)]

    def objects(self) -> Mapping[str, ExternalObject]:
        listed = self.sql.undisturbed("GET", _USERS).get("items", [])
        names = [f"{_SERVER}/{user['name']}" for user in listed if user["name"] != "postgres"]
        return {name: ExternalObject(name, name, None) for name in names}

    def writes(self) -> list[str]:
        return [_write(call) for call in self.sql.changes(self.since)]

    def put(self, name: str, owner: tuple[str, ...] | None) -> None:
        del owner
        self.sql.call("POST", _USERS, {"name": name.rpartition("/")[2], "password": "Of-a-stranger-1"})

    def vanish(self, name: str) -> None:
        self.sql.call("DELETE", f"{_USERS}?name={quote(name.rpartition('/')[2])}", None)

    def drifts(self) -> tuple[Drift, ...]:
        return ()

    def before_create(self, act: Callable[[], None]) -> None:
        raise NotImplementedError("its create changes what is there (CREATES_ONLY)")


def _write(call: Object) -> str:
    body = call["params"].get("body", {})
    verbs = {"users.insert": "create", "users.delete": "delete", "users.update": "update"}
    verb = "password" if call["action"] == "users.update" and "password" in body else verbs[call["action"]]
    return f"{verb} {_SERVER}/{call['params'].get('name') or body['name']}"
