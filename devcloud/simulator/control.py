"""The control API of tests: JSON below `/_control`, on the same port, without the cloud's signature and with a token.

- `GET|POST /clock`: `{"advance_s", "speed", "durations"}`, any of them.
- `GET|POST|DELETE /faults`: see `faults.Fault`.
- `GET|POST /behaviour`: see `behaviour.Behaviour` and the cloud's own, any of its fields.
- `GET /operations`; `POST /operations`: see `operations.OperationFailure`; `DELETE /operations`: no more of them fail;
  `DELETE /operations/HANDLE`: the handle is answered no more, its operation goes on.
- `POST /network`: `{"unreachable": [patterns]}`, databases that the provider's own logins do not reach.
- `GET /audit?since=SEQ`, `DELETE /audit`; `POST /reset`.

Each cloud adds its own (`Service.control`).
"""

from typing import Any

import msgspec

from devcloud.simulator.behaviour import BehaviourT, replaced
from devcloud.simulator.messages import ControlError, no_route
from devcloud.simulator.operations import OperationFailure, Operations
from devcloud.simulator.service import CallT, SavedT, Service


async def answer(
    service: Service[CallT, BehaviourT, SavedT], method: str, path: tuple[str, ...], body: bytes, since: int
) -> Any:
    """Carry out a request of a test.

    Args:
        service: Whom it concerns.
        method: The HTTP method.
        path: The parts of the path after `/_control/`.
        body: JSON, or nothing.
        since: After which call the log is asked for.

    Returns:
        What becomes JSON.

    Raises:
        ControlError: It makes no sense.
    """
    try:
        content = msgspec.json.decode(body) if body.strip() else {}
        return await _routed(service, method, path, content, since)
    except (msgspec.ValidationError, msgspec.DecodeError, KeyError) as error:
        raise ControlError(f"{method} /_control/{'/'.join(path)}: {error}") from None


async def _routed(
    service: Service[CallT, BehaviourT, SavedT], method: str, path: tuple[str, ...], content: Any, since: int
) -> Any:
    controls = service.controls
    match method, path:
        case "GET", ("audit",):
            return controls.audit.since(since)
        case "DELETE", ("audit",):
            controls.audit.clear()
        case "POST", ("network",):
            await service.databases.set_unreachable(msgspec.convert(content["unreachable"], tuple[str, ...]))
        case "POST", ("reset",):
            service.reset()
            controls.reset()
        case _:
            return _conduct(service, method, path, content)
    return {}


def _conduct(service: Service[CallT, BehaviourT, SavedT], method: str, path: tuple[str, ...], content: Any) -> Any:
    controls = service.controls
    match method, path:
        case "GET" | "POST", ("behaviour",):
            controls.behaviour = replaced(controls.behaviour, content)
            return controls.behaviour
        case "GET" | "POST", ("clock",):
            return _clock(service, content)
        case _, ("faults",):
            return _faults(service, method, content)
        case _, ("operations", *handles) if service.operations is not None:
            return _operations(service.operations, method, tuple(handles), content)
        case _:
            return service.control(method, path, content)


class _Setting(msgspec.Struct, forbid_unknown_fields=True):
    advance_s: float = 0.0
    speed: float | None = None
    durations: float | None = None


def _clock(service: Service[CallT, BehaviourT, SavedT], content: Any) -> Any:
    setting, clock = msgspec.convert(content, _Setting), service.controls.clock
    if setting.speed is not None:
        clock.run_at(setting.speed)
    if setting.durations is not None:
        clock.durations = setting.durations
    clock.advance(setting.advance_s)
    service.tick()
    return {"now": clock.now(), "speed": clock.speed, "durations": clock.durations}


def _faults(service: Service[CallT, BehaviourT, SavedT], method: str, content: Any) -> Any:
    faults = service.controls.faults
    match method:
        case "GET":
            return faults.waiting
        case "POST":
            faults.add(msgspec.convert(content, service.fault_type))
        case "DELETE":
            faults.waiting.clear()
        case _:
            raise no_route(method, ("faults",))
    return {}


def _operations(operations: Operations, method: str, handles: tuple[str, ...], content: Any) -> Any:
    match method, handles:
        case "GET", ():
            return operations.saved()
        case "POST", ():
            operations.failures.append(msgspec.convert(content, OperationFailure))
        case "DELETE", ():
            operations.failures.clear()
        case "DELETE", (handle,) if operations.lose(handle):
            pass
        case _:
            raise no_route(method, ("operations", *handles))
    return {}
