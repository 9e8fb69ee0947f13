"""The one write that ends a pass: the whole status, by one forced apply, only when it differs."""

from __future__ import annotations

from runtime.kube import Kube
from runtime.objects import Object, Resource, key_of, uid_of


async def write_status(
    kube: Kube, resource: Resource, cached: Object, status: Object, *, manager: str
) -> Object | None:
    """Apply `status` whole on the status subresource of the object `cached` is a view of; return the API's answer.

    None, and no request, when `status` equals the cached one. `metadata.uid` makes an object that vanished a
    WriteConflict or NotFound, never a new one. The caller remembers the answer in its store. Raises ApiError.
    """
    if cached.get("status", {}) == status:
        return None
    key = key_of(cached)
    body: Object = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": key.name, "uid": uid_of(cached)} | ({"namespace": key.namespace} if key.namespace else {}),
        "status": status,
    }
    return await kube.apply(resource, body, manager=manager, force=True, subresource="status")
