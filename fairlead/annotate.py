"""How the command line writes annotations: on the object that it read and on no later one; a lost race reads again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead.cluster import existing
from fairlead.exits import CommandError
from runtime.errors import WriteConflict
from runtime.kube import Kube
from runtime.objects import Key, Object, Resource, annotations_of, metadata
from runtime.preconditions import patch_tests

MANAGER: Final = "fairlead-cli"
_ATTEMPTS = 5
# Whoever writes by hand keeps nothing in force; every other manager is a tool that may put its own value back.
_BY_HAND = ("kubectl", MANAGER)

Changes = Mapping[str, str | None]
"""Annotations to set, and with None to remove."""


async def annotate(kube: Kube, resource: Resource, key: Key, decide: Callable[[Object], Changes]) -> Object:
    """Read an object, let `decide` say what changes, and write that; return the object as it was read.

    Raises CommandError where there is no such object, from `decide`, and where others were first five times.
    """
    for _ in range(_ATTEMPTS):
        obj = await existing(kube, resource, key)
        operations = patch(obj, decide(obj))
        if not operations:
            return obj
        try:
            await kube.json_patch(resource, key, [*patch_tests(obj), *operations], manager=MANAGER)
        except WriteConflict:
            continue
        return obj
    raise CommandError(f"{resource.kind} {key.name} was changed by others each time; try again")


def patch(obj: Object, changes: Changes) -> list[dict[str, Any]]:
    """Return the operations (RFC 6902) that lead to these annotations, none where they are there already. Pure."""
    present = annotations_of(obj)
    operations: list[dict[str, Any]] = []
    for name, value in changes.items():
        path = f"/metadata/annotations/{name.replace('~', '~0').replace('/', '~1')}"
        if value is None and name in present:
            operations.append({"op": "remove", "path": path})
        elif value is not None and present.get(name) != value:
            operations.append({"op": "add", "path": path, "value": value})
    if operations and not metadata(obj).get("annotations"):
        operations.insert(0, {"op": "add", "path": "/metadata/annotations", "value": {}})
    return operations


def tools_with(obj: Object, annotation: str) -> list[str]:
    """Return the field managers, hands left out, that have set an annotation and may set it again. Pure."""
    managers = []
    for entry in metadata(obj).get("managedFields") or ():
        fields = ((entry.get("fieldsV1") or {}).get("f:metadata") or {}).get("f:annotations") or {}
        if f"f:{annotation}" in fields and not str(entry.get("manager", "")).startswith(_BY_HAND):
            managers.append(str(entry["manager"]))
    return sorted(set(managers))
