"""What Cloud SQL adds to the control API of tests (`devcloud.simulator.control`).

- `GET /instances`; `POST /instances/PROJECT/NAME`, one of: `{"state"}`, with `"suspensionReason"`; `{"vanish": true}`
  without a trace; `{"replace": true}` by another, empty incarnation; `{"set": {...}}`, fields changed by somebody else;
  `{"grow": GB}`, a disk that grew by itself; `{"rotate": true}`, an authority that Google replaced.
- `GET /backups`; `POST /backups/PROJECT/ID`: `{"state"}` or `{"vanish": true}`.
- `POST /projects`: `{"id", "number"}`. `POST /roles`: `{"name", "permissions"}`. `POST /bindings`: see
  `identities.Binding`. `POST /pools`: see `identities.Pool`. `POST /keys`: `{"email", "project"}`, answers with the
  JSON of a new key; `DELETE /keys/ID`. `POST /tokens`: `{"principal"}`; `DELETE /tokens`: all of them are void.
- `POST /metadata`: `{"email"}`, whose token the metadata server gives; empty closes it.
"""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from devcloud.gcp.api.instances import changed_behind, resized
from devcloud.gcp.api.messages import time_text
from devcloud.gcp.iam.identities import Binding, Identities, Pool
from devcloud.gcp.state.model import Instance, Project
from devcloud.gcp.state.world import World, new_uid
from devcloud.simulator.messages import ControlError, no_route
from devcloud.simulator.operations import Operations

Reshape = Callable[[Instance, str], None]


class Steering(msgspec.Struct, frozen=True, kw_only=True):
    """What control calls reach.

    Attributes:
        world: What there is.
        identities: Who calls.
        operations: What is under way.
        reshape: Has the databases follow: `dropped`, `made` or `rotated`.
    """

    world: World
    identities: Identities
    operations: Operations
    reshape: Reshape


class _Role(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    permissions: tuple[str, ...]


class _Key(msgspec.Struct, forbid_unknown_fields=True):
    email: str
    project: str


def answer(steering: Steering, method: str, path: tuple[str, ...], content: Any, now: datetime) -> Any:
    """Carry out a request of a test and return what becomes JSON.

    Args:
        steering: What it reaches.
        method: The HTTP method.
        path: The parts of the path after `/_control/`.
        content: Of the body.
        now: The real time, by which tokens live.

    Raises:
        ControlError: There is none of it, or it makes no sense.
    """
    match method, path:
        case "GET", ("instances",):
            return [instance.shown for instance in steering.world.instances.values()]
        case "GET", ("backups",):
            return list(steering.world.backups.values())
        case "POST", ("instances", project, name):
            return _steer(steering, f"{project}:{name}", content)
        case "POST", ("backups", project, backup):
            return _steer_backup(steering.world, f"{project}/{backup}", content)
        case "POST", ("projects",):
            project_of = msgspec.convert(content, Project)
            steering.world.projects[project_of.id] = project_of
            return {}
        case _:
            return _identities(steering.identities, method, path, content, now)


def _identities(identities: Identities, method: str, path: tuple[str, ...], content: Any, now: datetime) -> Any:
    match method, path:
        case "POST", ("roles",):
            role = msgspec.convert(content, _Role)
            identities.define_role(role.name, role.permissions)
        case "POST", ("bindings",):
            identities.bind(msgspec.convert(content, Binding))
        case "POST", ("pools",):
            identities.add_pool(msgspec.convert(content, Pool))
        case "POST", ("keys",):
            key = msgspec.convert(content, _Key)
            return identities.new_key(key.email, key.project)
        case "DELETE", ("keys", name) if identities.drop_key(name):
            pass
        case "POST", ("tokens",):
            return {"token": identities.issue(str(content["principal"]), now)}
        case "DELETE", ("tokens",):
            identities.tokens.grants.clear()
        case "POST", ("metadata",):
            identities.metadata_account = str(content["email"])
        case _:
            raise no_route(method, path)
    return {}


def _steer(steering: Steering, key: str, content: dict[str, Any]) -> dict[str, Any]:
    world = steering.world
    instance = world.instances.get(key)
    if instance is None:
        raise ControlError(f"there is no instance {key}")
    match content:
        case {"state": str(state)}:
            world.put(instance.shows(state=state, suspensionReason=content.get("suspensionReason", [])))
        case {"vanish": True}:
            steering.operations.abort(key)
            world.remove(key)
            steering.reshape(instance, "dropped")
        case {"replace": True}:
            steering.operations.abort(key)
            labels = {**instance.shown["settings"], "userLabels": {}, "settingsVersion": "1"}
            fresh = instance.shows(settings=labels, createTime=_later(instance.shown["createTime"]))
            users = {name: user for name, user in instance.users.items() if name == "postgres"}
            databases = {name: item for name, item in instance.databases.items() if name == "postgres"}
            fresh = msgspec.structs.replace(fresh, uid=new_uid(), users=users, databases=databases, password="")
            world.put(fresh)
            steering.reshape(instance, "dropped")
            steering.reshape(fresh, "made")
        case {"set": dict(change)}:
            world.put(changed_behind(instance, change))
        case {"grow": int(gib)}:
            world.put(resized(instance, gib))
        case {"rotate": True}:
            steering.reshape(instance, "rotated")
        case _:
            raise ControlError(f"{json.dumps(content)}: one of state, vanish, replace, set, grow, rotate")
    return {}


def _later(time: str) -> str:
    """Return another time than that of the former incarnation."""
    moment = datetime.fromisoformat(time)
    return time_text(moment + timedelta(seconds=1))


def _steer_backup(world: World, key: str, content: dict[str, Any]) -> dict[str, Any]:
    backup = world.backups.get(key)
    if backup is None:
        raise ControlError(f"there is no backup {key}")
    match content:
        case {"state": "ENQUEUED" | "RUNNING" | "SUCCESSFUL" | "FAILED" as state}:
            world.put_backup(msgspec.structs.replace(backup, state=state))
        case {"vanish": True}:
            world.drop_backup(key)
        case _:
            raise ControlError(f"{json.dumps(content)}: one of state, vanish")
    return {}
