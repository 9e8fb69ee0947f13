"""JSON patches (RFC 6902) and JSON merge patches (RFC 7386) of an API server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devcloud.apiserver.objects import refusals
from devcloud.apiserver.objects.compare import is_same
from devcloud.apiserver.schemas import copied
from runtime.objects import Object


def merged(value: Any, patch: Any) -> Any:
    """Return a value as a merge patch leaves it: null takes away."""
    if not isinstance(patch, dict):
        return patch
    made = dict(value) if isinstance(value, dict) else {}
    for name, part in patch.items():
        if part is None:
            made.pop(name, None)
        else:
            made[name] = merged(made.get(name), part)
    return made


def carried_out(operations: list[Object]) -> Callable[[Object], Object]:
    """Return what a JSON patch makes of an object; RefusedError when a test fails or a path is none."""

    def change(obj: Object) -> Object:
        whole: Any = copied(obj)
        try:
            for operation in operations:
                whole = _carried_out(whole, operation)
        except (KeyError, IndexError, TypeError, ValueError):
            raise refusals.failed_patch() from None
        made: Object = whole
        return made

    return change


def _carried_out(whole: Any, operation: Object) -> Any:
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    place = whole
    for part in parents:
        place = place[int(part)] if isinstance(place, list) else place[part]
    index: Any = int(last) if isinstance(place, list) and last != "-" else last
    match operation["op"]:
        case "test":
            present = place[index] if isinstance(place, list) else place.get(index)
            if not is_same(present, operation.get("value")):
                raise ValueError(operation["path"])
        case "remove":
            del place[index]
        case "add" if isinstance(place, list):
            at = len(place) if index == "-" else index + (len(place) + 1 if index < 0 else 0)
            if not 0 <= at <= len(place):
                raise IndexError(operation["path"])
            place.insert(at, copied(operation["value"]))
        case "add" | "replace" if isinstance(place, dict | list):
            # The API server's library replaces in an object what is not there.
            place[index] = copied(operation["value"])
        case _:
            raise ValueError(operation["op"])
    return whole
