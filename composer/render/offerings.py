"""What a Composition says under `offers` that it serves of a claim's fields, and what of a claim it refuses. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from composer.models import FieldOffering
from composer.render.errors import UNSUPPORTED_VALUE, Problem, near
from composer.render.schema import Schema

_MOST_LISTED = 12
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")


class Refusal(msgspec.Struct, frozen=True):
    """A field of a claim's spec that asks for what is not served, and the sentence for its developer."""

    path: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.path}: {self.sentence}"

    @property
    def problem(self) -> Problem:
        """The same as a problem of a render."""
        return Problem(UNSUPPORTED_VALUE, str(self))


def refusals(offerings: Mapping[str, FieldOffering], spec: Mapping[str, Any]) -> Iterator[Refusal]:
    """Yield all that a claim's spec asks for and a Composition does not serve."""
    for path, offering in offerings.items():
        value = _value_at(spec, path)
        sentence = None if value is None else _fault(value, offering)
        if sentence is not None:
            yield Refusal(path, sentence)


def _value_at(tree: Any, path: str) -> Any:
    """Return what stands at a path, None where nothing does. Names of a map may hold dots."""
    while path and isinstance(tree, Mapping):
        if path in tree:
            return tree[path]
        name, _, path = path.partition(".")
        tree = tree.get(name)
    return None


def _fault(value: Any, offering: FieldOffering) -> str | None:
    if offering.refused:
        return offering.refused
    strangers = [text for text in texts_of(value) if offering.values and text not in offering.values]
    if strangers:
        verb = "are" if len(strangers) > 1 else "is"
        return f"{', '.join(strangers)} {verb} not offered{_instead(strangers, offering.values)}"
    if offering.minimum is UNSET and offering.maximum is UNSET:
        return None
    number = int(str(value)) if _WHOLE_NUMBER.fullmatch(str(value)) else None
    if number is None:
        return f"{value} is no whole number; {in_words(offering.minimum, offering.maximum)} is offered"
    is_low = isinstance(offering.minimum, int) and number < offering.minimum
    is_high = isinstance(offering.maximum, int) and number > offering.maximum
    if is_low or is_high:
        return f"{number} is not offered; {in_words(offering.minimum, offering.maximum)} is"
    return None


def texts_of(value: Any) -> list[str]:
    """Return a value as texts: the elements of a list, the names of a map."""
    if isinstance(value, list | Mapping):
        return [str(item) for item in value]
    return [str(value).lower() if isinstance(value, bool) else str(value)]


def in_words(minimum: Any, maximum: Any) -> str:
    """Return a range in words; empty where neither end is set."""
    match minimum, maximum:
        case int(), int():
            return f"{minimum} to {maximum}"
        case int(), _:
            return f"{minimum} and more"
        case _, int():
            return f"{maximum} and less"
        case _:
            return ""


def _instead(strangers: Sequence[str], values: Sequence[str]) -> str:
    if len(values) <= _MOST_LISTED:
        return f"; offered: {', '.join(values)}"
    return near(strangers[0], values) or f"; `fairlead offers` lists the {len(values)} that are"


def narrowed(schema: Schema, offerings: Mapping[str, FieldOffering]) -> Schema:
    """Return the schema of a claim's spec without what a Composition does not serve."""
    for path, offering in offerings.items():
        schema = _narrowed(schema, path.split("."), offering)
    return schema


def _narrowed(schema: Schema, steps: Sequence[str], offering: FieldOffering) -> Schema:
    name, *rest = steps
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    if name not in properties:
        # A name in a map, of which the schema knows nothing.
        return schema
    if not rest and offering.refused:
        return {**schema, "properties": {other: below for other, below in properties.items() if other != name}}
    below = _narrowed(properties[name], rest, offering) if rest else _restricted(properties[name], offering)
    return {**schema, "properties": {**properties, name: below}}


def _restricted(schema: Schema, offering: FieldOffering) -> Schema:
    # The description has an example, which may be none of these.
    restricted = {name: item for name, item in schema.items() if name != "description"}
    limits = {"minimum": offering.minimum, "maximum": offering.maximum}
    restricted |= {name: limit for name, limit in limits.items() if isinstance(limit, int)}
    if not offering.values:
        return restricted
    match schema.get("type"):
        case "array":
            return {**restricted, "items": {**(schema.get("items") or {}), "enum": [*offering.values]}}
        case "object":
            restricted.pop("additionalProperties", None)
            return {**restricted, "properties": {offering.values[0]: {"type": "string", "enum": ["1"]}}}
        case "integer":
            return {**restricted, "enum": [int(value) for value in offering.values]}
        case "boolean":
            return {**restricted, "enum": [value == "true" for value in offering.values]}
        case _:
            return {**restricted, "enum": [*offering.values]}
