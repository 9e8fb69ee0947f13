"""Whether values fit the schema of a CRD; after kube-openapi's `validation/validate` and apiextensions' ratcheting.

Not looked at: CEL rules, oneOf and its like, formats but date-time.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from devcloud.apiserver.objects.atoms import ABSENT, Schema
from devcloud.apiserver.objects.compare import is_same
from devcloud.apiserver.objects.refusals import (
    Fault,
    duplicate,
    invalid,
    mistyped,
    required,
    too_long,
    too_many,
    unsupported,
)
from runtime.objects import dumps

_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[tT]([01]\d|2[0-3]|24):([0-5]\d):([0-5]\d|60)(\.\d+)?([zZ]|[+-]\d\d:\d\d)", re.ASCII
)


def faults(schema: Schema, value: Any, old: Any = ABSENT, *, within: str = "") -> list[Fault]:
    """Return what is wrong with a value; what is as it was before is right.

    `within` is the path of the value where that is not the whole object.
    """
    complaints = dict.fromkeys(_Check(within).of_value(schema, value, old, ""))
    return list(complaints)


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


class _Check:
    """One look at a value."""

    def __init__(self, within: str) -> None:
        self._within = within

    def _field(self, path: str) -> str:
        name = path.removeprefix(".")
        return ".".join(part for part in (self._within, name) if part) or "<nil>"

    def of_value(self, schema: Schema, value: Any, old: Any, path: str) -> Iterator[Fault]:
        """Yield what is wrong with one value."""
        if old is not ABSENT and is_same(value, old):
            return
        yield from self._of_type(schema, value, path)
        if isinstance(value, str):
            yield from self._of_text(schema, value, path)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from self._of_number(schema, value, path)
        elif isinstance(value, list):
            yield from self._of_list(schema, value, old, path)
        if schema.get("enum") and not any(is_same(value, part) for part in schema["enum"]):
            yield unsupported(self._field(path), value, schema["enum"])
        if isinstance(value, dict):
            yield from self._of_object(schema, value, old, path)

    def _of_type(self, schema: Schema, value: Any, path: str) -> Iterator[Fault]:
        types = ["integer", "string"] if schema.get("x-kubernetes-int-or-string") else [schema.get("type", "")]
        kind, form = _kind_of(value), schema.get("format", "")
        if types == [""] or kind in types or (kind == "null" and schema.get("nullable")):
            return
        if kind == "integer" and "number" in types:
            return
        wanted = ",".join(types)
        if form and kind == "array" and wanted == "string":
            return
        if form and kind not in ("string", "array", "null"):
            wanted, kind = form, {"integer": "int64", "number": "float64"}.get(kind, "")
        detail = f"{path} in body must be of type {wanted}: {dumps(kind).decode()}"
        yield mistyped(self._field(path), kind, detail)

    def _of_text(self, schema: Schema, value: str, path: str) -> Iterator[Fault]:
        field = self._field(path)
        most, least, pattern = (schema.get(name) for name in ("maxLength", "minLength", "pattern"))
        if most is not None and len(value) > most:
            yield too_long(field, most)
        elif least is not None and len(value) < least:
            yield invalid(field, value, f"{path} in body should be at least {least} chars long")
        elif pattern and not compiled(pattern).search(value):
            yield invalid(field, value, f"{path} in body should match '{pattern}'")
        if schema.get("format") == "date-time" and not _is_date_time(value):
            yield mistyped(field, value, f"{path} in body must be of type date-time: {dumps(value).decode()}")

    def _of_number(self, schema: Schema, value: float, path: str) -> Iterator[Fault]:
        least, most, field = schema.get("minimum"), schema.get("maximum"), self._field(path)
        if most is not None and value > most:
            yield invalid(field, value, f"{path} in body should be less than or equal to {most}")
        if least is not None and value < least:
            yield invalid(field, value, f"{path} in body should be greater than or equal to {least}")

    def _of_list(self, schema: Schema, value: list[Any], old: Any, path: str) -> Iterator[Fault]:
        items, count = schema.get("items"), len(value)
        if items is not None:
            for index, part in enumerate(value):
                yield from self.of_value(items, part, _former(schema, part, old), f"{path}[{index}]")
        least, most = schema.get("minItems"), schema.get("maxItems")
        if least is not None and count < least:
            yield invalid(self._field(path), count, f"{path} in body should have at least {least} items")
        if most is not None and count > most:
            yield too_many(self._field(path), count, most)

    def _of_object(self, schema: Schema, value: dict[str, Any], old: Any, path: str) -> Iterator[Fault]:
        least, most, count = schema.get("minProperties"), schema.get("maxProperties"), len(value)
        if least is not None and count < least:
            yield invalid(self._field(path), count, f"{path} in body should have at least {least} properties")
        if most is not None and count > most:
            yield too_many(self._field(path), count, most)
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        former = old if isinstance(old, dict) else {}
        for name, part in value.items():
            if name in properties:
                below, at = properties[name], _child(path, name)
            elif isinstance(more, dict):
                below, at = more, f"{path}.{name}"
            else:
                continue
            yield from self.of_value(below, part, former.get(name, ABSENT), at)
        for name in schema.get("required") or ():
            if name not in value:
                yield required(self._field(f"{path}.{name}"))


def _former(schema: Schema, part: Any, old: Any) -> Any:
    """Return what an element of a map list was before; other elements cannot be paired."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list) or not isinstance(part, dict):
        return ABSENT
    keys = {name: part.get(name) for name in schema["x-kubernetes-list-map-keys"]}
    same = [item for item in old if isinstance(item, dict) and {name: item.get(name) for name in keys} == keys]
    return same[0] if same else ABSENT


def _kind_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return {int: "integer", str: "string", list: "array", dict: "object"}[type(value)]


@functools.cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of Go's as Python's."""
    return re.compile(re.sub(r"(?<!\\)\$$", r"\\Z", pattern), re.ASCII)


def _is_date_time(text: str) -> bool:
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        return False
    try:
        datetime.strptime(match[1], "%Y-%m-%d")  # noqa: DTZ007 - a day has no zone
    except ValueError:
        return False
    return True


def doubles(schema: Schema, value: Any, old: Any = ABSENT, path: str = "") -> Iterator[Fault]:
    """Yield the elements that are twice in a set or a map list, but for what is as it was before."""
    if old is not ABSENT and isinstance(value, dict | list) and is_same(value, old):
        return
    if isinstance(value, dict):
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        former = old if isinstance(old, dict) else {}
        for name, part in value.items():
            if not isinstance(part, dict | list):
                continue
            if isinstance(more, dict):
                yield from doubles(more, part, former.get(name, ABSENT), f"{path}[{name}]")
            elif name in properties:
                yield from doubles(properties[name], part, former.get(name, ABSENT), _child(path, name))
    elif isinstance(value, list):
        yield from _doubles_of_list(schema, value, path)
        for index, part in enumerate(value):
            if isinstance(part, dict | list):
                yield from doubles(schema.get("items") or {}, part, ABSENT, f"{path}[{index}]")


def _doubles_of_list(schema: Schema, value: list[Any], path: str) -> Iterator[Fault]:
    kind, shown = schema.get("x-kubernetes-list-type"), value
    if kind == "map":
        for index, part in enumerate(value):
            if part is not None and not isinstance(part, dict):
                yield invalid(f"{path}[{index}]", part, "must be an object for an array of list-type map")
                return
        names = schema["x-kubernetes-list-map-keys"]
        shown = [{name: part[name] for name in names if name in part} for part in (item or {} for item in value)]
    elif kind != "set":
        return
    seen: dict[bytes, int] = {}
    for index, part in enumerate(shown):
        key = dumps(part)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:  # noqa: PLR2004 - said once
            yield duplicate(f"{path}[{index}]", part)
