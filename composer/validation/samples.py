"""Claims as the schema of their kind allows them: what a Composition must render before anybody uses it. Pure.

A sample holds what is required and one more field, or as much as goes together; of a field with a list of values each
is taken once, of a number also the least and the most, alone and with those of the other numbers. Which fields go
together is read from the schema's validation rules as far as these ask for presence alone
(`has(self.a) != has(self.b)`); the others are the API server's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any

import msgspec

from composer.render.child_metadata import group_kind_of
from composer.render.render import Rendered, render
from composer.render.request import Observed, Request
from composer.render.schema import Schema, defaulted
from composer.render.schema_limits import excesses
from composer.render.template import SANDBOX
from composer.render.values import Pending, Status
from runtime.objects import Object, metadata

_NOBODY = "00000000-0000-0000-0000-000000000000"
_COMPANIONS = 2
NOTHING_REPORTED: Mapping[str, Object] = {}
_SAMPLES_LIMIT = 80
# A label of RFC 1123 may begin with a digit, which names in SQL may not; names of claims may have 253 characters.
_CORNER_NAMES = ("0", "a" * 253)
_ALL = "all that goes together"
_LEAST = "nothing but what is required"
_INSTANT = "2026-01-01T00:00:00Z"
# One of them fits most patterns: names, labels, hours, instants, networks, versions.
_TEXTS = ("a", "abc", "a1", "16", "02:30", _INSTANT, "10.0.0.0/8", "1.0", "10Gi", "Sunday", "A", "a-b")
_EXAMPLE = re.compile(r"Example: (.+?)\.?$", re.DOTALL)
_HAS = re.compile(r"has\(\s*self\.(\w+)\s*\)")
_PRESENCE = re.compile(r"(?:!?has\(\s*self\.\w+\s*\)|==|!=|&&|\|\||[()\s])+")


@dataclass(frozen=True, slots=True)
class Sample:
    """One claim, and which field makes it differ. `is_plain`: no field of it could be left out, none is at a limit."""

    distinction: str
    spec: Object
    is_plain: bool = True
    name: str = "sample"

    @property
    def about(self) -> str:
        """What it has, as the end of a sentence."""
        return self.distinction or _ALL

    @property
    def fields(self) -> frozenset[str]:
        """The fields that it has, but for those that could not be made up."""
        return frozenset(name for name, value in self.spec.items() if not isinstance(value, Pending))

    @property
    def values(self) -> frozenset[str]:
        """Its texts, numbers and conditions, each as `field: value`."""
        return frozenset(
            f"{name}: {_shown(value)}" for name, value in self.spec.items() if isinstance(value, str | int | float)
        )


def samples(schema: Schema) -> tuple[Sample, ...]:
    """Return specs that the schema of a claim's spec allows; a field that cannot be made up is still to come."""
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    values = {name: tuple(_values(below)) for name, below in properties.items()}
    known = {name: choices for name, choices in values.items() if choices}
    unknown = {name: Pending(obj="claim", name=f"claim.spec.{name}") for name in values if name not in known}
    rules = _rules(schema)
    required = frozenset(schema.get("required") or ()) | {name for name in known if "default" in properties[name]}
    drafts = [Sample("", _first(known, _fullest(required, known, rules)))]
    least = _smallest(required, "", known, rules)
    if least is not None:
        drafts.append(Sample(_LEAST, _first(known, least)))
    for name, choice in known.items():
        together = _smallest(required, name, known, rules)
        for value in choice if together is not None else ():
            _add(drafts, f"{name}: {_shown(value)}", {**_first(known, together or required), name: value})
        if together is not None:
            for about, limits in _numbers_at_their_limits(properties, together):
                _add(drafts, about, {**_first(known, together), **limits}, at_limit=True)
    whole = [replace(draft, spec={**defaulted(draft.spec, schema), **unknown}) for draft in drafts[:_SAMPLES_LIMIT]]
    return tuple(
        replace(sample, is_plain=sample.is_plain and not any(other.fields < sample.fields for other in whole))
        for sample in whole
    )


def claim_with(schema: Schema, path: Sequence[str], value: Any) -> Object:
    """Return the smallest spec that the schema allows with a value at a path; empty where its rules allow none."""
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    name, *rest = path
    known = {other: tuple(_values(below)) for other, below in properties.items()}
    inner = claim_with(properties[name], rest, value) if rest else value
    known = {other: choices for other, choices in known.items() if choices} | {name: (inner,)}
    required = frozenset(schema.get("required") or ()) | {other for other in known if "default" in properties[other]}
    together = _smallest(required, name, known, _rules(schema))
    return {} if together is None else defaulted(_first(known, together), schema)


def values_of(schema: Schema) -> tuple[Any, ...]:
    """Return made-up values of one field: each of an enumeration, the limits of a number, else one."""
    limits = [schema[limit] for limit in ("minimum", "maximum") if limit in schema]
    return tuple(limits) if limits and "enum" not in schema else tuple(_values(schema))


def _rules(schema: Schema) -> list[str]:
    """Return the rules of a schema that ask for presence alone."""
    rules = (validation["rule"] for validation in schema.get("x-kubernetes-validations") or ())
    return [rule for rule in rules if _PRESENCE.fullmatch(rule)]


def named_at_the_limits(sample: Sample) -> tuple[Sample, ...]:
    """Return a claim again under the names that are hardest to make other names of."""
    return tuple(
        replace(sample, distinction=f"a name of {len(name)} characters, {name[0]!r} first", name=name, is_plain=False)
        for name in _CORNER_NAMES
    )


def _add(drafts: list[Sample], about: str, spec: Object, *, at_limit: bool = False) -> None:
    if all(spec != other.spec for other in drafts):
        drafts.append(Sample(about, spec, is_plain=not at_limit))


def _numbers_at_their_limits(
    properties: Mapping[str, Schema], fields: frozenset[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the numbers among these fields at their least, and at their most, alone and together."""
    for limit in ("minimum", "maximum"):
        numbers = {name: properties[name][limit] for name in sorted(fields) if limit in properties[name]}
        for chosen in (*({name: value} for name, value in numbers.items()), numbers):
            yield " and ".join(f"{name}: {value}" for name, value in chosen.items()), chosen


def _shown(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else "…"


def _first(known: Mapping[str, Sequence[Any]], fields: frozenset[str]) -> Object:
    return {name: known[name][0] for name in sorted(fields & known.keys())}


def _fullest(required: frozenset[str], known: Mapping[str, Any], rules: Sequence[str]) -> frozenset[str]:
    """Return as many fields as go together, in the order of the schema."""
    base = required & known.keys()
    together = base if _allowed(rules, base) else None
    for name in known:
        wider = _smallest(together or base, name, known, rules)
        together = wider or together
    return together or base


def _smallest(
    required: frozenset[str], name: str, known: Mapping[str, Any], rules: Sequence[str]
) -> frozenset[str] | None:
    """Return what is given with one field (or none) and as few others as the rules want; None when no few do."""
    base = (required & known.keys()) | ({name} if name else set())
    others = [other for other in known if other not in base]
    for count in range(_COMPANIONS + 1):
        for more in combinations(others, count):
            if _allowed(rules, base | set(more)):
                return base | set(more)
    return None


def _allowed(rules: Sequence[str], present: frozenset[str]) -> bool:
    return all(_holds(rule, present) for rule in rules)


def _holds(rule: str, present: frozenset[str]) -> bool:
    """Evaluate a rule of presence: a subset of CEL that reads like our own expressions."""
    text = _HAS.sub(lambda match: str(match[1] in present).lower(), rule)
    for ours, theirs in (("!true", "false"), ("!false", "true"), ("&&", " and "), ("||", " or ")):
        text = text.replace(ours, theirs)
    return _is_true(text)


@lru_cache(maxsize=4096)
def _is_true(text: str) -> bool:
    return bool(SANDBOX.compile_expression(text)())


def _values(schema: Schema) -> Iterator[Any]:
    """Yield made-up values of one schema, the default first: each of an enumeration, else one."""
    default = [schema["default"]] if "default" in schema else []
    yield from default
    if "enum" in schema:
        yield from (value for value in schema["enum"] if value not in default)
        return
    match schema.get("type"):
        case "boolean":
            yield from (value for value in (False, True) if value not in default)
        case "integer" | "number" if not default:
            example = _example(schema)
            is_number = isinstance(example, int | float)
            yield example if is_number else max(schema.get("minimum", 1), min(1, schema.get("maximum", 1)))
        case "string" if not default:
            yield from _texts(schema)
        case "array":
            example = _example(schema)
            items = list(_values(schema.get("items") or {}))[:1]
            yield from [example] if isinstance(example, list) and example else ([item] for item in items)
        case "object":
            yield from _objects(schema)
        case _:
            return


def _texts(schema: Schema) -> Iterator[str]:
    """Yield a made-up text: the description's example, else one that fits the pattern.

    A text of which nothing is known is left out: a rule that is not read here may forbid most of them.
    """
    example = _example(schema)
    known = (str(example),) if example is not None else ()
    if schema.get("format") == "date-time":
        known = (*known, _INSTANT)
    elif "pattern" in schema:
        known = (*known, *_TEXTS)
    yield from [text for text in known if not any(excesses(text, schema, ""))][:1]


def _example(schema: Schema) -> Any:
    """Return the example at the end of a description; None without one."""
    match = _EXAMPLE.search(str(schema.get("description") or ""))
    if match is None:
        return None
    try:
        return msgspec.json.decode(match[1])
    except msgspec.DecodeError:
        return match[1]


def _objects(schema: Schema) -> Iterator[Any]:
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        example = _example(schema)
        if isinstance(example, dict):
            yield example
            return
        values = ["a"] if additional.get("type") == "string" else list(_values(additional))
        yield from ({"a": value} for value in values[:1] if not any(excesses(value, additional, "")))
        return
    # Of what is nested, the fullest is enough.
    nested = samples(schema)[0].spec
    if nested:
        yield nested


def reports(schema: Schema) -> tuple[Object, Object]:
    """Return two made-up statuses that their schema allows, one of the first of all values and one of the last.

    A text of which nothing is known is "a". What is kept as it comes is left out, and so still to come.
    """
    first, last = _reported(schema, 0), _reported(schema, -1)
    return first if isinstance(first, dict) else {}, last if isinstance(last, dict) else {}


def _reported(schema: Schema, index: int) -> Any:
    match schema.get("type"):
        case "object":
            additional = schema.get("additionalProperties")
            properties = schema.get("properties") or ({"a": additional} if isinstance(additional, Mapping) else {})
            below = {name: _reported(item, index) for name, item in properties.items()}
            return {name: value for name, value in below.items() if value is not None}
        case "array":
            item = _reported(schema.get("items") or {}, index)
            return None if item is None else [item]
        case _ if schema.get("enum"):
            return schema["enum"][index]
        case "string":
            return next(_values(schema), "a")
        case "boolean":
            return index == -1
        case _:
            return next(_values(schema), None)


def request_of(
    composition: Object, kind: tuple[str, str], sample: Sample, environments: Mapping[str, Mapping[str, str]]
) -> Request:
    """Return the request that renders a sample of a kind (apiVersion, kind); an absent environment is still to come."""
    api_version, name = kind
    meta = {"name": sample.name, "namespace": "sample", "uid": _NOBODY}
    named = composition.get("environments") or ()
    known = {
        environment: environments.get(environment, Status(environment, f"env.{environment}", {}))
        for environment in named
    }
    return Request(
        "sample",
        composition,
        {"apiVersion": api_version, "kind": name, "metadata": meta, "spec": sample.spec},
        f"{_NOBODY}@sample/{sample.name}",
        environments=known,
        passwords={password["name"]: password["name"] for password in composition.get("passwords") or ()},
    )


def all_ready(request: Request, statuses: Mapping[str, Object] = NOTHING_REPORTED) -> Rendered:
    """Render, take what came out for ready, and render again until nothing new comes. Raises CompositionError.

    `statuses`: what the children report beside that, by kind (`Kind.group`).
    """
    # Nearly always all in one go: what one pass leaves open, another one shows.
    rendered = render(request, presume=lambda obj: _as_ready(obj, statuses))
    while rendered.waiting:
        seen = {(observed.resource, observed.key) for observed in request.observed}
        fresh = [child for child in rendered.children if child.slot not in seen]
        if not fresh:
            break
        made = tuple(Observed(child.resource, child.key, _as_ready(child.object, statuses)) for child in fresh)
        request = msgspec.structs.replace(request, observed=(*request.observed, *made))
        rendered = render(request)
    return rendered


def _as_ready(obj: Object, statuses: Mapping[str, Object]) -> Object:
    ready = {"type": "Ready", "status": "True", "reason": "Available", "observedGeneration": 1}
    reported = statuses.get(group_kind_of(obj), {})
    return {
        **obj,
        "metadata": {**metadata(obj), "generation": 1},
        "status": {**reported, "observedGeneration": 1, "conditions": [ready]},
    }
