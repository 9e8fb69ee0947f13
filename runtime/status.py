"""The one write that ends a pass: the whole status at once, only when it differs, only on the object it speaks of."""

from __future__ import annotations

from typing import Any

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
    return await kube.json_patch(resource, key_of(cached), operations, manager=manager, subresource="status")
