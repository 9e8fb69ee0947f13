"""What an OpenAPI v3 schema of a CRD says about data: unknown fields, wrong types, defaults, list keys. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from composer.render.errors import Problem, near
from composer.render.template import Leaf

Schema = Mapping[str, Any]
_OBJECT_META = frozenset({"labels", "annotations"})


def step(schema: Schema, name: str) -> Schema | None:
    """Return the schema of a field; None when the schema has no such field, empty when anything goes."""
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    if name in properties:
        return properties[name]
    if schema.get("x-kubernetes-preserve-unknown-fields") or not schema:
        return {}
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        return additional
    return {} if additional is True else None


def unknown_step(schema: Schema, path: Sequence[str]) -> tuple[int, str] | None:
    """Return the first step of a path that the schema does not have: its index and the nearest name."""
    current: Schema = schema
    for index, name in enumerate(path):
        following = step(current, name)
        if following is None:
            return index, near(name, current.get("properties") or ())
        if not following:
            return None
        current = following
    return None


def mismatches(tree: Any, schema: Schema, path: str) -> Iterator[Problem]:
    """Compare a template with the schema of its kind: unknown fields and wrong types. Expressions have any type."""
    if isinstance(tree, Leaf) and len(tree.parts) == 1:
        return
    wanted = schema.get("type")
    if isinstance(tree, Mapping):
        if wanted not in (None, "object"):
            yield _wrong_type(path, wanted, "a map")
            return
        yield from _fields(tree, schema, path)
    elif isinstance(tree, list):
        if wanted not in (None, "array"):
            yield _wrong_type(path, wanted, "a list")
            return
        for index, item in enumerate(tree):
            yield from mismatches(item, schema.get("items") or {}, f"{path}[{index}]")
    else:
        yield from _scalar(tree, schema, path)


def _fields(tree: Mapping[str, Any], schema: Schema, path: str) -> Iterator[Problem]:
    for name, item in tree.items():
        below = step(schema, name)
        if below is None:
            known = near(name, schema.get("properties") or ())
            yield Problem("SchemaMismatch", f"unknown field {name!r}{known}", f"{path}.{name}")
        elif below:
            yield from mismatches(item, below, f"{path}.{name}")


def _scalar(tree: Any, schema: Schema, path: str) -> Iterator[Problem]:
    if schema.get("x-kubernetes-int-or-string") or (tree is None and schema.get("nullable")):
        return
    wanted = schema.get("type")
    actual = "a text" if isinstance(tree, Leaf) else _name_of_type(tree)
    fits = {"string": "a text", "integer": "a whole number", "number": "a number", "boolean": "true or false"}
    if wanted == "number" and actual == "a whole number":
        return
    if wanted and fits.get(wanted, wanted) != actual:
        yield _wrong_type(path, wanted, actual)
        return
    allowed = schema.get("enum")
    if allowed and not isinstance(tree, Leaf) and tree not in allowed:
        offered = ", ".join(map(str, allowed))
        yield Problem("SchemaMismatch", f"{tree!r} is none of {offered}{near(str(tree), map(str, allowed))}", path)


def _name_of_type(value: Any) -> str:
    match value:
        case str():
            return "a text"
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case float():
            return "a number"
        case _:
            return "null"


def _wrong_type(path: str, wanted: str | None, actual: str) -> Problem:
    hint = "; quote it" if wanted == "string" and actual in ("a number", "a whole number", "true or false") else ""
    return Problem("SchemaMismatch", f"wants {wanted}, found {actual}{hint}", path)


def template_mismatches(tree: Mapping[str, Any], schema: Schema, path: str) -> Iterator[Problem]:
    """Compare a whole manifest with the schema of its kind; of the metadata only labels and annotations are known."""
    # A CRD may leave these two out; the API server knows them.
    properties = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, **(schema.get("properties") or {})}
    properties["metadata"] = {
        "type": "object",
        "properties": {name: {"type": "object", "additionalProperties": {"type": "string"}} for name in _OBJECT_META},
    }
    yield from mismatches(tree, {**schema, "properties": properties}, path)


def types_of(schema: Schema) -> Schema:
    """Return a schema without the values that it lists: what remains are names and types."""
    types = {name: item for name, item in schema.items() if name != "enum"}
    if isinstance(types.get("properties"), Mapping):
        types["properties"] = {name: types_of(below) for name, below in types["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(types.get(name), Mapping):
            types[name] = types_of(types[name])
    return types


def defaulted(value: Any, schema: Schema) -> Any:
    """Fill in the schema's defaults, as the API server does on a write."""
    if isinstance(value, Mapping):
        properties: Mapping[str, Schema] = schema.get("properties") or {}
        filled = {name: below["default"] for name, below in properties.items() if "default" in below} | dict(value)
        return {name: defaulted(item, step(schema, name) or {}) for name, item in filled.items()}
    if isinstance(value, list):
        return [defaulted(item, schema.get("items") or {}) for item in value]
    return value


def project(live: Any, desired: Any, schema: Schema | None) -> Any:
    """Cut `live` down to the paths that `desired` has: map lists by the schema's keys, other lists whole.

    What we sent and what the API server made of it may differ in form (quantities, dropped empty lists); the
    projection of its own answer is therefore what later states are compared with.
    """
    # Data of JSON only: the test for a dict costs a tenth of the one for a Mapping, and each pass makes hundreds.
    if isinstance(desired, dict) and isinstance(live, dict):
        below = schema or {}
        return {
            name: project(live.get(name), item, step(below, name) or {})
            if isinstance(item, dict | list)
            else live.get(name)
            for name, item in desired.items()
        }
    if isinstance(desired, list) and isinstance(live, list) and schema:
        keys = schema.get("x-kubernetes-list-map-keys")
        if schema.get("x-kubernetes-list-type") == "map" and keys:
            return _project_map_list(live, desired, keys, schema.get("items") or {})
        if schema.get("x-kubernetes-list-type") == "set":
            return [item for item in live if item in desired]
    return live


def _project_map_list(live: list[Any], desired: list[Any], keys: Sequence[str], items: Schema) -> list[Any]:
    def key(item: Any) -> tuple[Any, ...]:
        return tuple(item.get(name) for name in keys) if isinstance(item, dict) else ()

    wanted = {key(item): item for item in desired}
    return [project(item, wanted[key(item)], items) for item in live if key(item) in wanted]


def is_json(value: Any) -> bool:
    """Return whether all numbers below `value` can be written as JSON that every reader understands."""
    match value:
        case Mapping():
            return all(isinstance(name, str) and is_json(item) for name, item in value.items())
        case list():
            return all(is_json(item) for item in value)
        case float():
            return math.isfinite(value)
        case int():
            return -(2**63) <= value < 2**63
        case None | str():
            return True
        case _:
            return False
