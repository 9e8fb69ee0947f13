"""JSON patches (RFC 6902) of an API server: the operations test, add, replace and remove."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from runtime.errors import Invalid, WriteConflict
from runtime.objects import Object


def carry_out(obj: Object, operation: Object) -> None:
    """Carry out one operation; WriteConflict when a test fails, Invalid when a path is none."""
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    place: Any = obj
    try:
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        _carry_out(place, last, operation)
    except (KeyError, IndexError, TypeError) as error:
        raise Invalid(f"{operation['path']}: {error!r}", status=422, reason="Invalid") from None


def _carry_out(place: Any, last: str, operation: Object) -> None:
    index: Any = int(last) if isinstance(place, list) and last != "-" else last
    match operation["op"]:
        case "test":
            present = place[index] if isinstance(place, list) else place.get(index)
            if present != operation["value"]:
                raise WriteConflict(operation["path"], status=409, reason="Conflict")
        case "remove":
            del place[index]
        case "replace":
            place[index]
            place[index] = deepcopy(operation["value"])
        case _ if isinstance(place, list):
            place.insert(len(place) if last == "-" else index, deepcopy(operation["value"]))
        case _:
            place[index] = deepcopy(operation["value"])
