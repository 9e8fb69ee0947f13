"""The one write that ends a pass: the whole status at once, only when it differs, only over the one that was read."""

from __future__ import annotations

from typing import Final

from runtime import metrics
from runtime.conditions import find, instant
from runtime.errors import WriteConflict
from runtime.kube import Kube
from runtime.objects import Object, Resource, key_of, uid_of
from runtime.preconditions import patch_tests

_MORE_ATTEMPTS: Final = 2


async def write_status(
    kube: Kube, resource: Resource, cached: Object, status: Object, *, manager: str
) -> Object | None:
    """Replace the status of the object that `cached` is a view of; return the API's answer.

    None, and no request, when `status` equals the cached one. The caller remembers the answer in its store. Raises
    NotFound when the object is gone, WriteConflict when its name is another object's by now or another process has
    written its status, or another ApiError.

    A JSON patch with tests, since the status subresource of a custom resource ignores the uid of an apply: the dead
    object's status would land on its successor. Where somebody changed the object and left its status alone, an edit
    of the spec for one, the object is read and the status is sent once more: what a pass has done is reported, and
    the edit makes a pass of its own.
    """
    if cached.get("status", {}) == status:
        return None
    made = await _patched(kube, resource, cached, status, manager)
    waited = seconds_to_ready(cached, status)
    if waited is not None:
        metrics.TIME_TO_READY.labels(resource.group_kind).observe(waited)
    return made


async def record_status(
    kube: Kube, resource: Resource, decided_on: Object, status: Object, *, manager: str
) -> Object | None:
    """Replace the status of an object in the version that was decided on, as `write_status` does; return the answer.

    The answer proves that the object is as it was seen: raises WriteConflict over any edit.
    """
    if decided_on.get("status", {}) == status:
        return None
    return await _send(kube, resource, decided_on, status, manager)


async def _patched(kube: Kube, resource: Resource, cached: Object, status: Object, manager: str) -> Object:
    current = cached
    for _ in range(_MORE_ATTEMPTS):
        try:
            return await _send(kube, resource, current, status, manager)
        except WriteConflict:
            current = await kube.get(resource, key_of(cached))
            if uid_of(current) != uid_of(cached) or current.get("status", {}) != cached.get("status", {}):
                raise
    return await _send(kube, resource, current, status, manager)


async def _send(kube: Kube, resource: Resource, current: Object, status: Object, manager: str) -> Object:
    # Adding replaces what is there (RFC 6902, section 4.1).
    operations = [*patch_tests(current), {"op": "add", "path": "/status", "value": status}]
    return await kube.json_patch(resource, key_of(current), operations, manager=manager, subresource="status")


def seconds_to_ready(before: Object, status: Object) -> float | None:
    """Return how long an object that becomes Ready with this status was not: since its creation, or since it last was.

    None when it does not become Ready, or when a time stamp cannot be read.
    """
    known, ready = find(before, "Ready") or {}, find({"status": status}, "Ready") or {}
    if ready.get("status") != "True" or known.get("status") == "True":
        return None
    since = instant(str(known.get("lastTransitionTime") or before["metadata"].get("creationTimestamp")))
    until = instant(str(ready.get("lastTransitionTime")))
    return max(0.0, (until - since).total_seconds()) if since and until else None
