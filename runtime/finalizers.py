"""Finalizers. They are added by apply; here is how one is removed. Pure."""

from __future__ import annotations

from typing import Any

from runtime.objects import Object, finalizers_of
from runtime.preconditions import patch_tests


def removal(obj: Object, finalizer: str) -> list[dict[str, Any]]:
    """Return the JSON patch that removes `finalizer` from exactly this object at exactly this version.

    Empty when the object does not carry it. The tests make the patch fail (WriteConflict) when the object is another
    one, was changed meanwhile, or holds another finalizer at that place (RFC 6902, section 4.6).
    """
    held = finalizers_of(obj)
    if finalizer not in held:
        return []
    path = f"/metadata/finalizers/{held.index(finalizer)}"
    return [
        *patch_tests(obj),
        {"op": "test", "path": path, "value": finalizer},
        {"op": "remove", "path": path},
    ]
