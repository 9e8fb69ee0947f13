"""Operations as they are asked for: `azureAsyncOperation` with a status, `operationResults` with a result."""

import uuid
from typing import Any

from devcloud.azure.api.calls import Call, Cloud, Handler, operation_headers, pause
from devcloud.azure.lifecycle import effects
from devcloud.azure.lifecycle.effects import effect_from
from devcloud.azure.state.views import server_view, time_text
from devcloud.simulator.messages import Answer, Refusal, json_answer
from devcloud.simulator.operations import Operation

_CANCELLED = "OperationCancelled"


def status(cloud: Cloud, call: Call) -> Answer:
    """Return how far an operation is: `InProgress`, `Succeeded`, `Failed`, `Canceled`; always with 200 (recorded)."""
    operation = _operation(cloud, call)
    content: dict[str, Any] = {
        "name": call.names["operation"],
        "status": _status_name(operation),
        "startTime": time_text(operation.created_at),
    }
    if operation.status == "DONE" and operation.error is not None:
        content["error"] = {"code": operation.error.code, "message": operation.error.message}
    return json_answer(content, headers={"Retry-After": pause(cloud, operation)})


def result(cloud: Cloud, call: Call) -> Answer:
    """Return what an operation came to: 202 until its end; then a server, nothing (204), or its error."""
    operation = _operation(cloud, call)
    if operation.status != "DONE":
        headers = operation_headers(cloud, call, operation, call.names["location"])
        return Answer(status=202, body=b"", headers=headers)
    if operation.error is not None:
        raise Refusal(operation.error.code, operation.error.message, status=409)
    effect = effect_from(operation.effect)
    if isinstance(effect, effects.CreateServer | effects.UpdateServer):
        server = cloud.resources.servers.get(effect.server)
        if server is not None:
            return json_answer(server_view(server, cloud.resources.state_of(server), call.api_version))
    return Answer(status=204, body=b"")


def _status_name(operation: Operation) -> str:
    if operation.status != "DONE":
        return "InProgress"
    if operation.error is None:
        return "Succeeded"
    return "Canceled" if operation.error.code == _CANCELLED else "Failed"


def _operation(cloud: Cloud, call: Call) -> Operation:
    """Return the operation of a handle.

    Raises:
        Refusal: There is none, or its handle is answered no more.
    """
    try:
        handle = uuid.UUID(call.names["operation"]).hex
    except ValueError:
        handle = ""
    operation = cloud.resources.operations.get(handle)
    if operation is None:
        message = f"The operation '{call.names['operation']}' was not found."
        raise Refusal("OperationNotFound", message, status=cloud.behaviour.lost_status)
    return operation


ACTIONS: dict[str, Handler] = {"azureAsyncOperation.get": status, "operationResults.get": result}
