"""How fields are merged, by the schema of a kind; after kube-openapi's `schemaconv`, structured-merge-diff's `schema`.

An atom says what a value may be; a map or a list of it is one field, or has fields of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

Schema: TypeAlias = Mapping[str, Any]


@dataclass(eq=False, slots=True)
class MapAtom:
    """Objects; `element` is None where no other fields than those declared are allowed."""

    fields: dict[str, Atom] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    element: Atom | None = None
    is_atomic: bool = False


@dataclass(eq=False, slots=True)
class ListAtom:
    """Lists; associative ones without keys are sets."""

    element: Atom
    is_atomic: bool = True
    keys: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class Atom:
    """What a value may be; `scalar` is numeric, string, boolean or untyped."""

    scalar: str = ""
    list: ListAtom | None = None
    map: MapAtom | None = None

    def form(self, value: object) -> str:
        """Return as which of its forms a value is read: map, list, scalar, or none."""
        if isinstance(value, dict):
            if self.map is not None:
                return "map"
        elif isinstance(value, list):
            if self.list is not None:
                return "list"
        elif value is not None and value is not ABSENT and self.scalar:
            return "scalar"
        if self.map is not None:
            return "map"
        if self.scalar:
            return "scalar"
        return "list" if self.list is not None else ""

    def field(self, name: str) -> Atom | None:
        """Return what a field may be, None where it is not allowed."""
        if self.map is None:
            return None
        return self.map.fields.get(name, self.map.element)

    def at(self, step: str) -> Atom:
        """Return what may be at a step of a path."""
        if step[:2] == "f:":
            return self.field(step[2:]) or UNTYPED
        return UNTYPED if self.list is None else self.list.element


class Absent:
    """No value, not even null."""


ABSENT: Final = Absent()
UNTYPED: Final = Atom("untyped")
UNTYPED.list, UNTYPED.map = ListAtom(UNTYPED), MapAtom(element=UNTYPED, is_atomic=True)
DEDUCED: Final = Atom("untyped", ListAtom(UNTYPED))
DEDUCED.map = MapAtom(element=DEDUCED)
_SCALARS: Final = {"integer": "numeric", "number": "numeric", "boolean": "boolean"}


def of_schema(schema: Schema, *, keeps_unknown: bool = False) -> Atom:
    """Return the atom of an OpenAPI schema (v3, structural)."""
    keeps_unknown = keeps_unknown or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    kind = "" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "")
    if kind == "object":
        return Atom(map=_map(schema, keeps_unknown=keeps_unknown))
    if kind == "array":
        return Atom(list=_list(schema, keeps_unknown=keeps_unknown))
    if kind == "string":
        return Atom("string" if schema.get("format", "") in ("", "byte") else "untyped")
    if kind:
        return Atom(_SCALARS[kind])
    return Atom("untyped", _list(schema, keeps_unknown=keeps_unknown), _map(schema, keeps_unknown=keeps_unknown))


def _map(schema: Schema, *, keeps_unknown: bool) -> MapAtom:
    properties: Schema = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    element: Atom | None = None
    if isinstance(more, Mapping):
        element = of_schema(more, keeps_unknown=keeps_unknown)
    elif more or (more is None and (keeps_unknown or not properties)):
        element = DEDUCED
    return MapAtom(
        {name: of_schema(part, keeps_unknown=keeps_unknown) for name, part in properties.items()},
        {name: part["default"] for name, part in properties.items() if "default" in part},
        element,
        schema.get("x-kubernetes-map-type") == "atomic",
    )


def _list(schema: Schema, *, keeps_unknown: bool) -> ListAtom:
    items = schema.get("items")
    element = UNTYPED if items is None else of_schema(items, keeps_unknown=keeps_unknown)
    kind = schema.get("x-kubernetes-list-type", "atomic")
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if kind == "map" else ()
    return ListAtom(element, kind == "atomic", keys)


def _text(text: str) -> Schema:
    return {"type": "string", "format": text}


STRING: Final[Schema] = {"type": "string"}
STRINGS: Final[Schema] = {"type": "object", "additionalProperties": STRING}
TIME: Final[Schema] = _text("date-time")
INTEGER: Final[Schema] = {"type": "integer"}
BOOLEAN: Final[Schema] = {"type": "boolean"}


def record(**fields: Schema) -> Schema:
    """Return the schema of an object with these fields and no others."""
    return {"type": "object", "properties": fields}


def several(items: Schema, *keys: str, kind: str = "atomic") -> Schema:
    """Return the schema of a list: of kind map where it has keys."""
    return {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map" if keys else kind,
        "x-kubernetes-list-map-keys": list(keys),
    }


_ENTRY: Final = record(
    apiVersion=STRING, fieldsType=STRING, fieldsV1={"type": "object"}, manager=STRING, operation=STRING,
    subresource=STRING, time=TIME,
)  # fmt: skip
_OWNER: Final = record(
    apiVersion=STRING, blockOwnerDeletion=BOOLEAN, controller=BOOLEAN, kind=STRING, name=STRING, uid=STRING
)
OBJECT_META: Final[Schema] = record(
    annotations=STRINGS,
    creationTimestamp=TIME,
    deletionGracePeriodSeconds=INTEGER,
    deletionTimestamp=TIME,
    finalizers=several(STRING, kind="set"),
    generateName=STRING,
    generation=INTEGER,
    labels=STRINGS,
    managedFields=several(_ENTRY),
    name=STRING,
    namespace=STRING,
    ownerReferences=several({**_OWNER, "x-kubernetes-map-type": "atomic"}, "uid"),
    resourceVersion=STRING,
    selfLink=STRING,
    uid=STRING,
)


def of_crd(schema: Schema) -> Atom:
    """Return the atom of a whole object from the schema of its CRD."""
    properties = {**(schema.get("properties") or {}), "apiVersion": STRING, "kind": STRING, "metadata": OBJECT_META}
    return of_schema({**schema, "type": "object", "properties": properties})
