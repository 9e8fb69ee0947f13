"""What RDS adds to the control API of tests (`devcloud.simulator.control`).

- `GET /instances`; `POST /instances/NAME`, one of: `{"status"}`, with `"seconds"` when it ends by itself;
  `{"vanish": true}` without a trace; `{"replace": true}` by another incarnation without tags; `{"set": {...}}`, wire
  fields changed by somebody else; `{"autoscale": true}`, a growth by storage autoscaling.
- `GET /snapshots`; `POST /snapshots/NAME`: `{"status"}` or `{"vanish": true}`.
- `GET /keys`, `POST /keys` (see `principals.Key`), `DELETE /keys/ID`; `POST /roles` (see `principals.Role`).
- `GET /events`, each with its `EventID`.
"""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec

from devcloud.aws.accounts import Accounts
from devcloud.aws.api.modifications import autoscaled
from devcloud.aws.api.views import instance_tree, tree_of
from devcloud.aws.iam.principals import Key, Principals, Role
from devcloud.aws.lifecycle.steps import Addressed, Record, Step
from devcloud.aws.region import Region, resource_id, visible
from devcloud.aws.state.model import Instance
from devcloud.simulator.messages import ControlError, no_route
from devcloud.simulator.work import Make

_EVENT_OF = {"storage-full": 7, "failed": 31, "incompatible-parameters": 35, "incompatible-network": 36}


def answer(accounts: Accounts, method: str, path: tuple[str, ...], content: Any) -> Any:
    """Carry out a request of a test and return what becomes JSON.

    Raises:
        ControlError: There is none of it, or it makes no sense.
    """
    match method, path:
        case "GET", ("events",):
            return [tree_of(event) for region in accounts.regions.values() for event in region.events]
        case _, ("instances" | "snapshots", *_):
            return _resources(accounts, method, path, content)
        case _, ("keys" | "roles", *_):
            return _principals(accounts.principals, method, path, content)
        case _:
            raise no_route(method, path)


def _principals(principals: Principals, method: str, path: tuple[str, ...], content: Any) -> Any:
    match method, path:
        case "GET", ("keys",):
            return sorted(principals.keys)
        case "POST", ("keys",):
            key = msgspec.convert(content, Key)
            principals.keys[key.access_key_id] = key
        case "DELETE", ("keys", name):
            principals.keys.pop(name, None)
        case "POST", ("roles",):
            principals.add_role(msgspec.convert(content, Role))
        case _:
            raise no_route(method, path)
    return {}


def _resources(accounts: Accounts, method: str, path: tuple[str, ...], content: Any) -> Any:
    accounts.settle()
    match method, path:
        case "GET", ("instances",):
            return [
                instance_tree(visible(record), region.now())
                for region in accounts.regions.values()
                for record in region.instances.values()
            ]
        case "GET", ("snapshots",):
            return [tree_of(snapshot) for region in accounts.regions.values() for snapshot in region.snapshots.values()]
        case "POST", ("instances", name):
            for region, record in _named(accounts, name):
                _steer(accounts, region, record, content)
                return {}
        case "POST", ("snapshots", name):
            for region in accounts.regions.values():
                if name in region.snapshots:
                    return _steer_snapshot(region, name, content)
        case _:
            pass
    raise no_route(method, path)


def _named(accounts: Accounts, name: str) -> Iterator[tuple[Region, Record]]:
    for region in list(accounts.regions.values()):
        if name in region.instances:
            yield region, region.instances[name]


def _steer(accounts: Accounts, region: Region, record: Record, content: dict[str, Any]) -> None:
    now = region.now()
    match content:
        case {"status": str(status)}:
            until = now + timedelta(seconds=float(content["seconds"])) if "seconds" in content else None
            region.put(msgspec.structs.replace(record, under=None, agenda=(), resting=status, resting_until=until))
            if status in _EVENT_OF:
                region.emit(_EVENT_OF[status], region.source(record.shown), now)
        case {"vanish": True}:
            region.remove(record.shown.db_instance_identifier)
            accounts.jobs.delete(record.shown.dbi_resource_id)
        case {"replace": True}:
            region.remove(record.shown.db_instance_identifier)
            accounts.jobs.delete(record.shown.dbi_resource_id)
            shown = msgspec.structs.replace(record.shown, dbi_resource_id=resource_id(), tag_list=())
            creation = Step(status="creating", seconds=0, work=Make(), ends=(Addressed(created=True),))
            region.put(
                Record(shown=shown, password=record.password, agenda=(creation,), window_seen=now, backup_seen=now)
            )
        case {"set": dict(fields)}:
            shown = msgspec.convert({**tree_of(record.shown), **fields}, Instance)
            region.put(msgspec.structs.replace(record, shown=shown))
        case {"autoscale": True}:
            region.put(autoscaled(record) or record)
        case _:
            raise ControlError(f"{json.dumps(content)}: one of status, vanish, replace, set, autoscale")


def _steer_snapshot(region: Region, name: str, content: dict[str, Any]) -> dict[str, str]:
    match content:
        case {"status": str(status)}:
            region.snapshots[name] = msgspec.structs.replace(region.snapshots[name], status=status)
        case {"vanish": True}:
            region.drop_snapshot(name)
        case _:
            raise ControlError(f"{json.dumps(content)}: one of status, vanish")
    return {}
