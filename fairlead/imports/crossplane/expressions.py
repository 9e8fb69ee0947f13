"""Crossplane's patches and transforms as expressions of a Composition. Pure.

Source: docs.crossplane.io, "Function Patch and Transform" (transforms map, match, math, string, convert), and the API
of crossplane-contrib/function-patch-and-transform (pt.fn.crossplane.io/v1beta1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

_VERB: Final = re.compile(r"%(?:%|[sdv])")
_ANY_VERB: Final = re.compile(r"%.")
_STEP: Final = re.compile(r"\[([^\]]*)\]|[^.\[\]]+")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_FIXED_BEGIN: Final = re.compile(r"\^([\w-]+)(\.\*)?")
_TRUE: Final = ["1", "t", "T", "TRUE", "true", "True"]


class NoPlaceError(ValueError):
    """What Crossplane says here has no expression; the text says why."""


def steps_of(path: str) -> tuple[str, ...]:
    """Return the steps of a field path: `spec.tags[a.b/c][0]` is spec, tags, a.b/c, 0."""
    return tuple((match[1] if match[1] is not None else match[0]).strip("'\"") for match in _STEP.finditer(path))


def joined(root: str, steps: Sequence[str]) -> str:
    """Return the expression of a path: names by dots, all else in brackets."""
    text = root
    for step in steps:
        text += f".{step}" if _NAME.fullmatch(step) else f"[{step}]" if step.isdigit() else f"[{literal(step)}]"
    return text


def literal(value: Any) -> str:
    """Return a value as an expression writes it."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            if "{{" in value or "}}" in value or "\n" in value:
                raise NoPlaceError(f"{value!r} cannot stand in an expression")
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"'{escaped}'"
        case Mapping():
            return "{" + ", ".join(f"{literal(str(name))}: {literal(item)}" for name, item in value.items()) + "}"
        case _:
            return "[" + ", ".join(map(literal, value)) + "]"


def formatted(template: str, values: Sequence[str]) -> str:
    """Return the expression of a Go format with %s, %d and %v. Raises NoPlaceError for other verbs."""
    left, parts, at = list(values), list[str](), 0
    for verb in _ANY_VERB.finditer(template):
        if not _VERB.fullmatch(verb[0]):
            raise NoPlaceError(f"format {template!r}: {verb[0]} has no expression")
        parts += [literal(template[at : verb.start()])] if verb.start() > at else []
        at = verb.end()
        if verb[0] == "%%":
            parts.append(literal("%"))
        elif not left:
            raise NoPlaceError(f"format {template!r} wants more values than there are")
        else:
            parts.append(left.pop(0))
    parts += [literal(template[at:])] if template[at:] else []
    return f"({' ~ '.join(parts) or literal('')})"


def transformed(expression: str, transforms: Sequence[Mapping[str, Any]]) -> str:
    """Return the expression of a value after transforms. Raises NoPlaceError."""
    for transform in transforms:
        kind = str(transform.get("type", ""))
        rule = _TRANSFORMS.get(kind)
        if rule is None:
            raise NoPlaceError(f"transform {kind} is not known here")
        expression = rule(expression, transform.get(kind) or {})
    return expression


def _mapped(expression: str, pairs: Mapping[str, Any]) -> str:
    return f"{literal(pairs)}[{expression}]"


def _calculated(expression: str, math: Mapping[str, Any]) -> str:
    match math.get("type", "Multiply"):
        case "Multiply":
            return f"({expression} * {literal(math['multiply'])})"
        case "ClampMin":
            return f"([{expression}, {literal(math['clampMin'])}] | max)"
        case "ClampMax":
            return f"([{expression}, {literal(math['clampMax'])}] | min)"
        case other:
            raise NoPlaceError(f"transform math of type {other} is not known here")


def _text(expression: str, string: Mapping[str, Any]) -> str:
    trim = str(string.get("trim", ""))
    match string.get("type", "Format"), string.get("convert", ""):
        case "Format", _:
            return formatted(str(string.get("fmt", "%s")), [expression])
        case "Convert", ("ToUpper" | "ToLower") as case:
            return f"({expression} | {'upper' if case == 'ToUpper' else 'lower'})"
        case "TrimPrefix", _:
            begin = f"{expression}[:{len(trim)}] == {literal(trim)}"
            return f"({expression}[{len(trim)}:] if {begin} else {expression})"
        case "TrimSuffix", _:
            end = f"{expression}[-{len(trim)}:] == {literal(trim)}"
            return f"({expression}[:-{len(trim)}] if {end} else {expression})"
        case kind, conversion:
            raise NoPlaceError(f"transform string {kind} {conversion}".rstrip() + " has no filter here")


def _converted(expression: str, convert: Mapping[str, Any]) -> str:
    kind, form = str(convert.get("toType")), convert.get("format") or "none"
    if form != "none":
        raise NoPlaceError(f"transform convert of format {form} has no filter here")
    match kind:
        case "string":
            # Go writes true where Python writes True.
            return f"({expression} | string | lower if {expression} is boolean else {expression} | string)"
        case "int" | "int64":
            return f"({expression} | int)"
        case "float64":
            return f"({expression} | float)"
        case "bool":
            return f"({expression} | string in {literal(_TRUE)})"
        case _:
            raise NoPlaceError(f"transform convert to {kind} has no filter here")


def _matched(expression: str, match: Mapping[str, Any]) -> str:
    is_input = match.get("fallbackTo", "Value") == "Input"
    text = expression if is_input else literal(match.get("fallbackValue"))
    for pattern in reversed(match.get("patterns") or ()):
        text = f"{literal(pattern.get('result'))} if {_condition(expression, pattern)} else {text}"
    return f"({text})"


def _condition(expression: str, pattern: Mapping[str, Any]) -> str:
    if pattern.get("type", "literal") == "literal":
        return f"{expression} == {literal(pattern.get('literal'))}"
    begin = _FIXED_BEGIN.fullmatch(str(pattern.get("regexp", "")))
    if begin is None:
        raise NoPlaceError(f"transform match of regexp {pattern.get('regexp')!r}: only ^text is a condition here")
    return f"({expression} | string)[:{len(begin[1])}] == {literal(begin[1])}"


_TRANSFORMS: Final = {
    "map": _mapped, "math": _calculated, "string": _text, "convert": _converted, "match": _matched,
}  # fmt: skip


def in_form(value: Any, form: str) -> Any:
    """Return a value in the form of its place (`Place.form`)."""
    return _FORMS[form](value) if form else value


_TIERS: Final = {"B": "Burstable", "GP": "GeneralPurpose", "MO": "MemoryOptimized"}


_FORMS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "gib": lambda value: int(value) // 1024,
    "enabled": lambda value: "Enabled" if value else "Disabled",
    "sku": lambda value: str(value).partition("_")[2],
    "tier": lambda value: _TIERS.get(str(value).partition("_")[0], "GeneralPurpose"),
    "map": lambda value: {str(item["name"]): str(item.get("value", "")) for item in value},
    "values": lambda value: [str(item["value"]) for item in value],
}


def expression_in_form(expression: str, form: str) -> str:
    """Return an expression whose value has the form of its place. Raises NoPlaceError."""
    match form:
        case "":
            return expression
        case "gib":
            return f"({expression} // 1024)"
        case "enabled":
            return f"('Enabled' if {expression} else 'Disabled')"
        case "sku":
            return f"(({expression} | split('_'))[1:] | join('_'))"
        case "tier":
            return f"{literal(_TIERS)}[{expression} | split('_') | first]"
        case _:
            raise NoPlaceError("a list of names and values is no map here: write each name as a field of the claim")
