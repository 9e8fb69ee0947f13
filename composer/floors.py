"""Whole numbers that never become smaller: the largest value that was ever applied stays. Pure.

A Composition names the fields; what was applied is in the inventory. Where that was lost, the live object tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from composer.models import CompositionSpec, ResourceTemplate
from composer.problems import Problem
from composer.schema import Schema, step
from composer.view import Known, View
from runtime.objects import Object


class Floor(msgspec.Struct, frozen=True):
    """The least value of one field of one child, by resource, forEach key, kind (`Kind.group`) and path."""

    resource: str
    key: str
    group_kind: str
    path: str
    value: int


class Kept(msgspec.Struct, frozen=True):
    """A field that keeps a larger value than the composition asks for now; `wanted` is None where it is left out."""

    path: str
    value: int
    wanted: int | None


def floors_of(view: View, spec: CompositionSpec) -> tuple[Floor, ...]:
    """Return the floors of a claim's children; the view calls them as the composition does."""
    paths = {resource.name: resource.floors for resource in spec.resources if resource.floors}
    return tuple(floor for known in view.known for floor in _floors(known, paths.get(known.entry.resource, ())))


def _floors(known: Known, paths: Sequence[str]) -> Iterator[Floor]:
    entry = known.entry
    for path in paths:
        value = entry.floors.get(path)
        if value is None and known.live is not None:
            value = value_at(known.live, path)
        if value is not None:
            yield Floor(entry.resource, entry.key, entry.group_kind, path, value)


def raised(obj: Object, floors: Sequence[Floor]) -> tuple[Object, tuple[Kept, ...]]:
    """Return an object with no field below its floor, and which fields were raised."""
    kept: list[Kept] = []
    for floor in floors:
        wanted = value_at(obj, floor.path)
        if wanted is None or wanted < floor.value:
            obj = _with(obj, floor.path.split("."), floor.value)
            kept.append(Kept(floor.path, floor.value, wanted))
    return obj, tuple(kept)


def reached(obj: Object, paths: Sequence[str]) -> dict[str, int]:
    """Return the values of these fields, which are the floors once the object is applied."""
    return {path: value for path in paths if (value := value_at(obj, path)) is not None}


def value_at(obj: Object, path: str) -> int | None:
    """Return the whole number at a path; None where there is none."""
    found: Any = obj
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _with(obj: Object, names: Sequence[str], value: int) -> Object:
    first, *rest = names
    if not rest:
        return {**obj, first: value}
    below = obj.get(first)
    return {**obj, first: _with(below if isinstance(below, dict) else {}, rest, value)}


def faults(source: ResourceTemplate, schema: Schema, path: str) -> Iterator[Problem]:
    """Find floors of one resource, at `path`, that are no whole numbers by the schema of its kind."""
    for each in source.floors:
        found: Schema | None = schema
        for name in each.split("."):
            found = step(found, name) if found is not None else None
        if found is None or found.get("type", "integer") != "integer":
            what = f"{each} is no whole number of kind {source.template.get('kind')}"
            yield Problem("SchemaMismatch", what, f"{path}.floors", resource=source.name)
