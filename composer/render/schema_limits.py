"""Whether plain data keep the limits of their schema: required fields, ranges, lengths, patterns. Pure.

Unknown fields and types are `composer.render.schema`'s; rules in CEL are the API server's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from composer.render.errors import Problem
from composer.render.schema import Schema, step

_SHOWN_CHARACTERS = 64


def absences(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    """Yield the required fields that are not there and have no default."""
    match value:
        case Mapping():
            properties: Mapping[str, Schema] = schema.get("properties") or {}
            for name in schema.get("required") or ():
                if name not in value and "default" not in properties.get(name, {}):
                    yield Problem("SchemaMismatch", f"{name} is missing", path)
            for name, item in value.items():
                yield from absences(item, step(schema, name) or {}, f"{path}.{name}")
        case list():
            for index, item in enumerate(value):
                yield from absences(item, schema.get("items") or {}, f"{path}[{index}]")
        case _:
            return


def excesses(value: Any, schema: Schema, path: str) -> Iterator[Problem]:
    """Yield where `value` leaves the limits of its schema, each with its path."""
    match value:
        case Mapping():
            yield from _count(value, schema, path, "Properties", "fields")
            for name, item in value.items():
                yield from excesses(item, step(schema, name) or {}, f"{path}.{name}")
        case list():
            yield from _count(value, schema, path, "Items", "elements")
            for index, item in enumerate(value):
                yield from excesses(item, schema.get("items") or {}, f"{path}[{index}]")
        case str():
            yield from _count(value, schema, path, "Length", "characters")
            pattern = schema.get("pattern")
            if pattern and not _matches(pattern, value):
                yield Problem("SchemaMismatch", f"{value[:_SHOWN_CHARACTERS]!r} does not match {pattern}", path)
        case bool() | None:
            return
        case int() | float():
            yield from _range(value, schema, path)
        case _:
            return


def _matches(pattern: str, value: str) -> bool:
    """Return whether a text has a match, an empty one too; what Python reads otherwise than RE2 is the API server's."""
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return True


def _count(value: Any, schema: Schema, path: str, suffix: str, unit: str) -> Iterator[Problem]:
    least, most = schema.get(f"min{suffix}", 0), schema.get(f"max{suffix}")
    if len(value) < least:
        yield Problem("SchemaMismatch", f"has {len(value)} {unit}, at least {least} are wanted", path)
    if most is not None and len(value) > most:
        yield Problem("SchemaMismatch", f"has {len(value)} {unit}, at most {most} are allowed", path)


def _range(value: float, schema: Schema, path: str) -> Iterator[Problem]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and value < least:
        yield Problem("SchemaMismatch", f"{value} is less than {least}", path)
    if most is not None and value > most:
        yield Problem("SchemaMismatch", f"{value} is more than {most}", path)
