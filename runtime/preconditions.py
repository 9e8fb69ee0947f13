"""What binds a write to the object, and to the version of it, on which it was decided. Pure.

The fence in front of each request cannot hold back what has left it: bytes that a frozen process, a proxy or the
network delivers late. So every write to what exists names the version that was read while the process led; whatever
its successor has written since makes the API server refuse it (409, or a failed `test`: WriteConflict).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from runtime.objects import Object, annotations_of, uid_of, version_of

_VERSION: Final = "/metadata/resourceVersion"


def patch_tests(obj: Object) -> list[dict[str, Any]]:
    """Return the first operations of a JSON patch that is meant for this object at this version (RFC 6902, 4.6)."""
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid_of(obj)},
        {"op": "test", "path": _VERSION, "value": version_of(obj)},
    ]


def apply_metadata(obj: Object) -> Object:
    """Return what the `metadata` of an apply has beside the name, to be meant for this object at this version."""
    return {"uid": uid_of(obj), "resourceVersion": version_of(obj)}


def is_bound(body: Object) -> bool:
    """Return whether the body of an apply or a PUT names the object and the version that it is meant for."""
    meta = body.get("metadata") or {}
    return bool(meta.get("uid")) and bool(meta.get("resourceVersion"))


def is_tested(operations: Iterable[dict[str, Any]]) -> bool:
    """Return whether a JSON patch tests the version that it is meant for."""
    return any(
        operation["op"] == "test" and operation["path"] == _VERSION and operation["value"] for operation in operations
    )


def annotation_patch(live: Object, wanted: Any) -> list[dict[str, Any]]:
    """Return the JSON patch that sets annotations, and removes those that are None, of exactly this object."""
    present = annotations_of(live)
    operations = patch_tests(live)
    if not present:
        operations.append({"op": "add", "path": "/metadata/annotations", "value": {}})
    for name, value in wanted.items():
        path = "/metadata/annotations/" + name.replace("~", "~0").replace("/", "~1")
        if value is not None:
            operations.append({"op": "add", "path": path, "value": value})
        elif name in present:
            operations.append({"op": "remove", "path": path})
    return operations
