"""Whether what a Composition says under `offers` fits the schema of its claims. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from composer.models import FieldOffering
from composer.render.errors import Problem, near
from composer.render.offerings import texts_of
from composer.render.schema import Schema

BY_THE_COMPOSER: Final = frozenset(
    {
        "compositionRef",
        "compositionRevisionRef",
        "compositionSelector",
        "connectionSecretName",
        "deletionPolicy",
        "deletionProtection",
    }
)
"""The fields that the composer itself carries out, whatever the Composition is."""
_NUMBERS = ("integer", "number")


def faults(offerings: Mapping[str, FieldOffering], schema: Schema) -> Iterator[Problem]:
    """Yield what is wrong with the offers of a Composition; `schema` is that of its claims' spec."""
    for path, offering in offerings.items():
        message = _fault(path, offering, schema)
        if message:
            yield Problem("SchemaMismatch", message, f"spec.offers.{path}")


def _fault(path: str, offering: FieldOffering, schema: Schema) -> str | None:
    *above, name = path.split(".")
    if path.partition(".")[0] in BY_THE_COMPOSER:
        return "is carried out by the composer; which policies there are is said by deletionPolicies"
    holder: Schema = schema
    for step in above:
        below = (holder.get("properties") or {}).get(step)
        if below is None and "additionalProperties" in holder:
            break
        if below is None:
            return f"unknown field {step!r}{near(step, holder.get('properties') or ())}"
        holder = below
    in_map = "additionalProperties" in holder
    field = holder.get("additionalProperties") if in_map else (holder.get("properties") or {}).get(name)
    if not isinstance(field, Mapping):
        return f"unknown field {name!r}{near(name, holder.get('properties') or ())}"
    is_always_there = not in_map and (name in (holder.get("required") or ()) or "default" in field)
    return _unfit(
        offering, field, is_always_there=is_always_there, takes_numbers=in_map or field.get("type") in _NUMBERS
    )


def _unfit(offering: FieldOffering, field: Schema, *, is_always_there: bool, takes_numbers: bool) -> str | None:
    """Return why a field cannot be offered so, the first of its reasons."""
    least, most = offering.minimum, offering.maximum
    has_range = isinstance(least, int) or isinstance(most, int)
    allowed = _allowed(field)
    strangers = [value for value in offering.values if allowed and value not in allowed]
    default = set(texts_of(field["default"])) if "default" in field else set()
    is_whole = all(value.lstrip("-").isdigit() for value in offering.values)
    reasons = (
        (
            sum((bool(offering.refused), bool(offering.values), has_range)) != 1,
            "give one of: refused, values, or minimum and maximum",
        ),
        (
            offering.refused and is_always_there,
            "every claim has it, so that none would be served; name its values instead",
        ),
        (
            isinstance(least, int) and isinstance(most, int) and least > most,
            f"minimum {least} is more than maximum {most}",
        ),
        (has_range and not takes_numbers, f"is of type {field.get('type')}, which has no minimum and no maximum"),
        (strangers, "".join(f"{value!r} is no value of it{near(value, allowed)}" for value in strangers[:1])),
        (field.get("type") in _NUMBERS and not is_whole, "its values are whole numbers"),
        (
            offering.values and not default <= {*offering.values},
            f"{', '.join(default)} is missing, which claims have that leave it out",
        ),
    )
    return next((sentence for holds, sentence in reasons if holds), None)


def _allowed(field: Schema) -> tuple[str, ...]:
    """Return the values that a schema lists; empty where it lists none."""
    if field.get("type") == "boolean":
        return ("true", "false")
    listed: Any = (field.get("items") or field).get("enum") or ()
    return tuple(str(value) for value in listed)
