"""The start of an operation on an instance, whose turn it takes."""

from typing import Any, NamedTuple

from devcloud.gcp.api.calls import Call, Cloud
from devcloud.gcp.api.views import operation_view
from devcloud.gcp.refusals import in_progress
from devcloud.gcp.state.settings import Json
from devcloud.simulator.operations import InProgress, OperationError, OperationSpec

PENDING_S = 1.0


class Kind(NamedTuple):
    """A kind of operation: as the API calls it, and how long it runs; without a length it may be DONE at once."""

    name: str
    seconds: float = 0.0


def started(
    cloud: Cloud,
    call: Call,
    instance: str,
    kind: Kind,
    *,
    error: OperationError | None = None,
    **effect: Any,
) -> Json:
    """Start an operation; return it as the API shows it.

    Raises:
        Refusal: Another operation of the instance is open.
    """
    spec = OperationSpec(
        kind=kind.name,
        seconds=kind.seconds,
        pending_s=PENDING_S if kind.seconds else 0.0,
        effect={"user": call.principal, **effect},
        error=error,
    )
    try:
        operation = cloud.operations.start(f"{call.project}:{instance}", spec)
    except InProgress:
        raise in_progress(cloud.behaviour.in_progress_status) from None
    if not kind.seconds:
        cloud.operations.settle()
    return operation_view(cloud.operations.get(operation.id) or operation, call.version)
