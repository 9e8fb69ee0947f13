"""Fields that never become smaller: the largest value that was ever applied stays. Pure.

Whole numbers and Kubernetes quantities ("20Gi"), compared by how much they are and kept as they were written.

A Composition names the fields; what was applied is in the inventory. Where that was lost, the live object has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from composer.inventory import Entry
from composer.models import CompositionSpec, ResourceTemplate
from composer.quantities import Amount, measured
from composer.render.errors import CompositionError, Problem
from composer.render.schema import Schema, step
from runtime.objects import Object

_AMOUNTS = ("integer", "string")
_SHOWN_CHARACTERS = 64


class Floor(msgspec.Struct, frozen=True):
    """The least value of one field of one child, by resource, forEach key, kind (`Kind.group`) and path."""

    resource: str
    key: str
    group_kind: str
    path: str
    value: Amount


class Kept(msgspec.Struct, frozen=True):
    """A field that keeps a larger value than the composition asks for now; `wanted` is None where it is left out."""

    path: str
    value: Amount
    wanted: Amount | None


def floors_of(children: Iterable[tuple[Entry, Object | None]], spec: CompositionSpec) -> tuple[Floor, ...]:
    """Return the floors of a claim's children, each with its live object; they are called as the composition does."""
    sources = {resource.name: resource for resource in spec.resources if resource.floors}
    floored = ((entry, live, sources.get(entry.resource)) for entry, live in children)
    return tuple(
        floor for entry, live, source in floored if source is not None for floor in _floors(entry, live, source)
    )


def _floors(entry: Entry, live: Object | None, source: ResourceTemplate) -> Iterator[Floor]:
    for path in source.floors:
        value = entry.floors.get(path)
        # The memory is a status, which others may write.
        if measured(value) is None:
            value = _amount_at(live, path) if live is not None else None
        carried_out = _carried_out(live, source.carried_out.get(path))
        if value is not None and carried_out is not None and _number(carried_out) < _number(value):
            # What was applied and never carried out may be taken back.
            value = carried_out
        if value is not None:
            yield Floor(entry.resource, entry.key, entry.group_kind, path, value)


def _carried_out(live: Object | None, path: str | None) -> Amount | None:
    """Return how much of a floor the object's own status says was carried out; None where it does not say."""
    return _amount_at(live, path) if path is not None and live is not None else None


def raised(obj: Object, floors: Sequence[Floor]) -> tuple[Object, tuple[Kept, ...]]:
    """Return an object with no field below its floor, and which fields were raised."""
    kept: list[Kept] = []
    for floor in floors:
        wanted = _amount_at(obj, floor.path)
        if wanted is None or _number(wanted) < _number(floor.value):
            obj = _with(obj, floor.path.split("."), floor.value)
            kept.append(Kept(floor.path, floor.value, wanted))
    return obj, tuple(kept)


def reached(obj: Object, paths: Sequence[str]) -> dict[str, Amount]:
    """Return the values of these fields, which are the floors once the object is applied."""
    return {path: value for path in paths if (value := _amount_at(obj, path)) is not None}


def refuse_unmeasured(obj: Object, source: ResourceTemplate, path: str) -> None:
    """Raise CompositionError for a value that has a floor and is no amount; `path` is the resource's own.

    It would pass for a field that is left out, and be replaced without a word.
    """
    for field in source.floors:
        value = _value_at(obj, field)
        if value is not None and measured(value) is None:
            shown = repr(str(value)[:_SHOWN_CHARACTERS])
            message = f"{shown} has a floor, and is neither a whole number nor a quantity like 20Gi"
            raise CompositionError(Problem("SchemaMismatch", message, f"{path}.template.{field}", resource=source.name))


def _number(amount: Amount) -> Fraction:
    return measured(amount) or Fraction(0)


def _amount_at(obj: Object, path: str) -> Amount | None:
    """Return the whole number or quantity at a path; None where there is none."""
    value = _value_at(obj, path)
    return None if measured(value) is None else value


def _value_at(obj: Object, path: str) -> Any:
    value: Any = obj
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _with(obj: Object, names: Sequence[str], value: Amount) -> Object:
    first, *rest = names
    if not rest:
        return {**obj, first: value}
    below = obj.get(first)
    return {**obj, first: _with(below if isinstance(below, dict) else {}, rest, value)}


def faults(source: ResourceTemplate, schema: Schema, path: str) -> Iterator[Problem]:
    """Yield the floors of one resource, at `path`, that can be no amount by the schema of its kind."""
    for floor_path in (*source.floors, *source.carried_out.values()):
        field_schema: Schema | None = schema
        for name in floor_path.split("."):
            field_schema = step(field_schema, name) if field_schema is not None else None
        if field_schema is None or field_schema.get("type", "integer") not in _AMOUNTS:
            field = "floors" if floor_path in source.floors else "carriedOut"
            message = f"{floor_path} is neither a whole number nor a quantity of kind {source.template.get('kind')}"
            yield Problem("SchemaMismatch", message, f"{path}.{field}", resource=source.name)
    for floor_path in sorted(set(source.carried_out) - set(source.floors)):
        yield Problem(
            "SchemaMismatch", f"{floor_path} is none of the floors", f"{path}.carriedOut", resource=source.name
        )
