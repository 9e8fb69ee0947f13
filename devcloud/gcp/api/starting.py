"""The start of an operation on an instance, whose turn it takes."""

from typing import Any

from devcloud.gcp.api.calls import Call, Cloud
from devcloud.gcp.api.views import operation_view
from devcloud.gcp.refusals import in_progress
from devcloud.gcp.state.settings import Json
from devcloud.simulator.operations import InProgress, OperationError, OperationSpec

PENDING_S = 1.0


def started(
    cloud: Cloud,
    call: Call,
    instance: str,
    *,
    kind: str,
    seconds: float,
    error: OperationError | None = None,
    **effect: Any,
) -> Json:
    """Start an operation; return it as the API shows it. One without a length may be DONE at once.

    Raises:
        Refusal: Another operation of the instance is open.
    """
    spec = OperationSpec(
        kind=kind,
        seconds=seconds,
        pending_s=PENDING_S if seconds else 0.0,
        effect={"user": call.principal, **effect},
        error=error,
    )
    try:
        operation = cloud.operations.start(f"{call.project}:{instance}", spec)
    except InProgress:
        raise in_progress() from None
    if not seconds:
        cloud.operations.settle()
    return operation_view(cloud.operations.get(operation.id) or operation, call.version)
