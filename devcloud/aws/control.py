"""The control API of tests: JSON below `/_control`, on the same port, unsigned and with a token (see `unsigned`).

- `GET|POST /clock`: `{"advance_s", "speed", "durations"}`, any of them.
- `GET|POST|DELETE /faults`: see `faults.Fault`.
- `GET|POST /behaviour`: see `behaviour.Behaviour`, any of its fields.
- `GET /instances`; `POST /instances/NAME`, one of: `{"status"}`, with `"seconds"` when it ends by itself;
  `{"vanish": true}` without a trace; `{"replace": true}` by another incarnation without tags; `{"set": {...}}`, wire
  fields changed by somebody else; `{"autoscale": true}`, a growth by storage autoscaling.
- `GET /snapshots`; `POST /snapshots/NAME`: `{"status"}` or `{"vanish": true}`.
- `GET /keys`, `POST /keys` (see `principals.Key`), `DELETE /keys/ID`; `POST /roles` (see `principals.Role`).
- `POST /network`: `{"unreachable": [patterns]}`, databases that the provider's own logins do not reach.
- `GET /audit?since=SEQ`, `DELETE /audit`; `GET /events`, each with its `EventID`; `POST /reset`.
"""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec

from devcloud.aws.api.modifications import autoscaled
from devcloud.aws.api.views import instance_tree, tree_of
from devcloud.aws.faults import Fault
from devcloud.aws.iam.principals import Key, Role
from devcloud.aws.lifecycle.steps import Addressed, Make, Record, Step
from devcloud.aws.region import Region, resource_id, visible
from devcloud.aws.simulator import Simulator, replaced
from devcloud.aws.state.model import Instance

_EVENT_OF = {"storage-full": 7, "failed": 31, "incompatible-parameters": 35, "incompatible-network": 36}


class Wrong(Exception):  # noqa: N818 - what a test asked wrongly, answered with status 400
    """The request makes no sense; the text says why."""


async def answer(simulator: Simulator, method: str, path: tuple[str, ...], body: bytes, since: int) -> Any:
    """Carry out a request of a test.

    Args:
        simulator: Whom it concerns.
        method: The HTTP method.
        path: The parts of the path after `/_control/`.
        body: JSON, or nothing.
        since: After which call the audit log is asked for.

    Returns:
        What becomes JSON.

    Raises:
        Wrong: It makes no sense.
    """
    try:
        content = msgspec.json.decode(body) if body.strip() else {}
        return await _routed(simulator, method, path, content, since)
    except (msgspec.ValidationError, msgspec.DecodeError, KeyError) as error:
        raise Wrong(f"{method} /_control/{'/'.join(path)}: {error}") from None


async def _routed(simulator: Simulator, method: str, path: tuple[str, ...], content: Any, since: int) -> Any:
    match method, path:
        case "GET", ("audit",):
            return simulator.audit.since(since)
        case "DELETE", ("audit",):
            simulator.audit.clear()
        case "GET", ("events",):
            return [tree_of(event) for region in simulator.regions.values() for event in region.events]
        case _, ("instances" | "snapshots", *_):
            return _resources(simulator, method, path, content)
        case "POST", ("network",):
            await simulator.jobs.databases.set_unreachable(msgspec.convert(content["unreachable"], tuple[str, ...]))
        case "POST", ("reset",):
            simulator.reset()
        case _, ("keys" | "roles", *_):
            return _principals(simulator, method, path, content)
        case _:
            return _conduct(simulator, method, path, content)
    return {}


def _conduct(simulator: Simulator, method: str, path: tuple[str, ...], content: Any) -> Any:
    match method, path:
        case "GET" | "POST", ("clock",):
            _set_clock(simulator, content)
            clock = simulator.clock
            return {"now": clock.now(), "speed": clock.speed, "durations": clock.durations}
        case "GET", ("faults",):
            return simulator.faults.waiting
        case "POST", ("faults",):
            simulator.faults.add(msgspec.convert(content, Fault))
        case "DELETE", ("faults",):
            simulator.faults.waiting.clear()
        case "GET" | "POST", ("behaviour",):
            simulator.behaviour = replaced(simulator.behaviour, content)
            return simulator.behaviour
        case _:
            raise Wrong(f"{method} /_control/{'/'.join(path)} is nothing")
    return {}


class _Setting(msgspec.Struct, forbid_unknown_fields=True):
    advance_s: float = 0.0
    speed: float | None = None
    durations: float | None = None


def _set_clock(simulator: Simulator, content: Any) -> None:
    setting, clock = msgspec.convert(content, _Setting), simulator.clock
    if setting.speed is not None:
        clock.run_at(setting.speed)
    if setting.durations is not None:
        clock.durations = setting.durations
    clock.advance(setting.advance_s)
    simulator.tick()


def _principals(simulator: Simulator, method: str, path: tuple[str, ...], content: Any) -> Any:
    principals = simulator.principals
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
            raise Wrong(f"{method} /_control/{'/'.join(path)} is nothing")
    return {}


def _resources(simulator: Simulator, method: str, path: tuple[str, ...], content: Any) -> Any:
    for region in simulator.regions.values():
        region.settle()
    match method, path:
        case "GET", ("instances",):
            return [
                instance_tree(visible(record), region.now())
                for region in simulator.regions.values()
                for record in region.instances.values()
            ]
        case "GET", ("snapshots",):
            return [
                tree_of(snapshot) for region in simulator.regions.values() for snapshot in region.snapshots.values()
            ]
        case "POST", ("instances", name):
            for region, record in _named(simulator, name):
                _steer(simulator, region, record, content)
                return {}
        case "POST", ("snapshots", name):
            for region in simulator.regions.values():
                if name in region.snapshots:
                    return _steer_snapshot(region, name, content)
        case _:
            pass
    raise Wrong(f"{method} /_control/{'/'.join(path)} is nothing")


def _named(simulator: Simulator, name: str) -> Iterator[tuple[Region, Record]]:
    for region in list(simulator.regions.values()):
        if name in region.instances:
            yield region, region.instances[name]


def _steer(simulator: Simulator, region: Region, record: Record, content: dict[str, Any]) -> None:
    now = region.now()
    match content:
        case {"status": str(status)}:
            until = now + timedelta(seconds=float(content["seconds"])) if "seconds" in content else None
            region.put(msgspec.structs.replace(record, under=None, agenda=(), resting=status, resting_until=until))
            if status in _EVENT_OF:
                region.emit(_EVENT_OF[status], region.source(record.shown), now)
        case {"vanish": True}:
            region.remove(record.shown.db_instance_identifier)
            simulator.jobs.delete(record.shown.dbi_resource_id)
        case {"replace": True}:
            region.remove(record.shown.db_instance_identifier)
            simulator.jobs.delete(record.shown.dbi_resource_id)
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
            raise Wrong(f"{json.dumps(content)}: one of status, vanish, replace, set, autoscale")


def _steer_snapshot(region: Region, name: str, content: dict[str, Any]) -> dict[str, str]:
    match content:
        case {"status": str(status)}:
            region.snapshots[name] = msgspec.structs.replace(region.snapshots[name], status=status)
        case {"vanish": True}:
            region.drop_snapshot(name)
        case _:
            raise Wrong(f"{json.dumps(content)}: one of status, vanish")
    return {}
