"""The one write that ends a pass: the whole status at once, only when it differs, only on the object it speaks of."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from runtime import metrics
from runtime.conditions import find
from runtime.kube import Kube
from runtime.objects import Object, Resource, key_of, uid_of


async def write_status(
    kube: Kube, resource: Resource, cached: Object, status: Object, *, manager: str
) -> Object | None:
    """Replace the status of the object that `cached` is a view of; return the API's answer.

    None, and no request, when `status` equals the cached one. The caller remembers the answer in its store. Raises
    NotFound when the object is gone, WriteConflict when its name is another object's by now, or another ApiError.

    A JSON patch with a test on the uid, since the status subresource of a custom resource ignores the uid of an apply:
    the dead object's status would land on its successor.
    """
    if cached.get("status", {}) == status:
        return None
    operations: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": uid_of(cached)},
        # Adding replaces what is there (RFC 6902, section 4.1).
        {"op": "add", "path": "/status", "value": status},
    ]
    made = await kube.json_patch(resource, key_of(cached), operations, manager=manager, subresource="status")
    waited = seconds_to_ready(cached, status)
    if waited is not None:
        metrics.TIME_TO_READY.labels(resource.group_kind).observe(waited)
    return made


def seconds_to_ready(before: Object, status: Object) -> float | None:
    """Return how long an object that becomes Ready with this status was not: since its birth, or since it last was.

    None when it does not become Ready, or when a time stamp cannot be read.
    """
    known, ready = find(before, "Ready") or {}, find({"status": status}, "Ready") or {}
    if ready.get("status") != "True" or known.get("status") == "True":
        return None
    since = known.get("lastTransitionTime") or before["metadata"].get("creationTimestamp")
    try:
        passed = datetime.fromisoformat(str(ready.get("lastTransitionTime"))) - datetime.fromisoformat(str(since))
    except ValueError:
        return None
    return max(0.0, passed.total_seconds())
