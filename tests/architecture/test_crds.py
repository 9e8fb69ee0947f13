"""Every CRD is documentation, is bounded, and says what its model says."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tests.architecture import tree

SHORTEST_DESCRIPTION = 30

Schema = Mapping[str, Any]


@functools.cache
def _crds() -> dict[str, dict[str, Any]]:
    return {
        f"{crd['spec']['names']['kind']}.{crd['spec']['group']}": crd
        for _, crd in tree.documents(tree.CRDS)
        if crd["kind"] == "CustomResourceDefinition"
    }


def _schema(crd: Mapping[str, Any]) -> Schema:
    (version,) = crd["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    return schema


def _fields(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Yield every field below a schema with its path; `[]` steps into lists and `{}` into maps."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from _fields(field, f"{path}.{name}")
    if "items" in schema:
        yield f"{path}[]", schema["items"]
        yield from _fields(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield f"{path}{{}}", schema["additionalProperties"]
        yield from _fields(schema["additionalProperties"], f"{path}{{}}")


def _own_fields(crd: Mapping[str, Any]) -> list[tuple[str, Schema]]:
    return [(path, field) for path, field in _fields(_schema(crd)) if path.startswith((".spec", ".status"))]


def _kinds() -> list[tuple[str, bool]]:
    """Return every kind of every provider, as `<kind>.<group>`, and whether its objects are inside a server."""
    providers = [importlib.import_module(f"providers.{cloud}").PROVIDER for cloud in tree.clouds("providers")]
    kinds = [kind for provider in providers for kind in provider.kinds]
    return [(f"{kind.resource.kind}.{kind.resource.group}", kind.inside) for kind in kinds]


def test_crd_says_what_is_inside_a_server() -> None:
    """The composer reads the label: what is inside a server is deleted at once with it."""
    labels = {kind: crd["metadata"].get("labels", {}) for kind, crd in _crds().items()}
    labelled = {kind for kind in labels if labels[kind].get("fairlead.dev/inside") == "true"}

    assert labelled == {kind for kind, inside in _kinds() if inside}


def test_every_field_is_described() -> None:
    mute = [
        kind + path
        for kind, crd in _crds().items()
        for path, field in [("", _schema(crd)), *_own_fields(crd)]
        if not path.endswith(("[]", "{}")) and len(field.get("description", "")) < SHORTEST_DESCRIPTION
    ]

    assert mute == []


def test_every_field_is_bounded() -> None:
    fields = ((kind + path, field) for kind, crd in _crds().items() for path, field in _own_fields(crd))

    assert [place for place, field in fields if _is_unbounded(field)] == []


def _is_unbounded(field: Schema) -> bool:
    match field.get("type"):
        case "string":
            return not ("maxLength" in field or "enum" in field or field.get("format") == "date-time")
        case "array":
            return "maxItems" not in field
        case "object":
            return "additionalProperties" in field and "maxProperties" not in field
        case _:
            return False


# kubectl prints the first match: Ready comes before Synced, so the reason is that of whichever is False.
PRINTED = [
    ("Ready", '.status.conditions[?(@.type=="Ready")].status'),
    ("Synced", '.status.conditions[?(@.type=="Synced")].status'),
    ("Reason", '.status.conditions[?(@.status=="False")].reason'),
]


def _printed(crd: Mapping[str, Any]) -> list[tuple[str, str]]:
    (version,) = crd["spec"]["versions"]
    columns = [(column["name"], column["jsonPath"]) for column in version["additionalPrinterColumns"]]
    return [column for column in columns if ".conditions[" in column[1] and column[0] != "Message"]


def test_kubectl_shows_first_what_speaks_against_an_object() -> None:
    assert {kind for kind, crd in _crds().items() if _printed(crd) != PRINTED} == set()


def test_status_starts_unobserved() -> None:
    """A waiter (kstatus, Flux, Argo CD) must not take an object for current that no controller has seen."""
    versions = {kind: version for kind, crd in _crds().items() for version in crd["spec"]["versions"]}
    defaults = {kind: _schema(crd)["properties"]["status"].get("default") for kind, crd in _crds().items()}

    assert {kind for kind, version in versions.items() if version["subresources"] != {"status": {}}} == set()
    assert {kind for kind, default in defaults.items() if default != {"observedGeneration": -1}} == set()


def test_conditions_merge_by_type() -> None:
    conditions = {
        kind: _schema(crd)["properties"]["status"]["properties"]["conditions"] for kind, crd in _crds().items()
    }
    merged = ("map", ["type"])

    assert {
        kind
        for kind, schema in conditions.items()
        if (schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")) != merged
    } == set()


def test_messages_of_rules_say_what_to_do() -> None:
    rules = [
        (kind, rule)
        for kind, crd in _crds().items()
        for _, field in [("", _schema(crd)), *_fields(_schema(crd))]
        for rule in field.get("x-kubernetes-validations", ())
    ]

    assert len(rules) > len(_crds())
    assert [(kind, rule["rule"]) for kind, rule in rules if len(rule.get("message", "")) < SHORTEST_DESCRIPTION] == []


@functools.cache
def _models() -> dict[str, type[msgspec.Struct]]:
    """Return the models that `composer.models` and every `providers.<cloud>` declare in CRD_MODELS.

    A model is one of the whole object, or of its `spec` alone.
    """
    homes = {"": "composer.models"} | {cloud: f"providers.{cloud}" for cloud in tree.clouds("providers")}
    return {
        f"{kind}.{_group(kind, cloud)}": model
        for cloud, home in homes.items()
        for kind, model in getattr(importlib.import_module(home), "CRD_MODELS", ())
    }


def _group(kind: str, cloud: str) -> str:
    """Return the group of a kind: a cloud's own, or the one of the composer's groups that has it."""
    if cloud:
        return f"{cloud}.fairlead.dev"
    return next((group for group in ("fairlead.dev", "database.fairlead.dev") if f"{kind}.{group}" in _crds()), "")


def test_every_crd_has_its_model() -> None:
    assert sorted(_models()) == sorted(_crds())


class Field(msgspec.Struct, frozen=True):
    """What a model and a CRD must agree on about one field."""

    types: frozenset[str]
    required: bool
    choices: frozenset[str]
    bounds: tuple[tuple[str, object], ...]


BOUNDS = ("minLength", "maxLength", "pattern", "minimum", "maximum", "minItems", "maxItems")
ANYTHING = frozenset({"anything"})


def _resolve(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    while "$ref" in schema:
        schema = definitions[schema["$ref"].rsplit("/", 1)[1]]
    branches = [branch for branch in schema.get("anyOf", ()) if branch.get("type") != "null"]
    if len(branches) == 1:
        return _resolve(branches[0], definitions)
    return schema


def _types(schema: Schema) -> frozenset[str]:
    if schema.get("x-kubernetes-int-or-string"):
        return frozenset({"integer", "string"})
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return ANYTHING
    if "enum" in schema and "type" not in schema:
        return frozenset({"string"})
    if "anyOf" in schema:
        return frozenset(branch["type"] for branch in schema["anyOf"] if "type" in branch)
    type_ = schema.get("type", ())
    return frozenset({type_}) if isinstance(type_, str) else frozenset(type_) or ANYTHING


def _shape(schema: Schema, definitions: Mapping[str, Schema], path: str = "") -> Iterator[tuple[str, Field]]:
    """Yield every field with what it is; stops where anything is allowed."""
    schema = _resolve(schema, definitions)
    required = frozenset(schema.get("required", ()))
    children = [(f"{path}.{name}", child, name in required) for name, child in schema.get("properties", {}).items()]
    if "items" in schema:
        children.append((f"{path}[]", schema["items"], True))
    if isinstance(schema.get("additionalProperties"), Mapping):
        children.append((f"{path}{{}}", schema["additionalProperties"], True))
    for where, child, needed in children:
        whole = _resolve(child, definitions)
        types = _types(whole)
        bounds = tuple((key, whole[key]) for key in BOUNDS if key in whole)
        yield where, Field(types, needed, frozenset(map(str, whole.get("enum", ()))), bounds)
        if types != ANYTHING:
            yield from _shape(whole, definitions, where)


def _parts(kind: str) -> dict[str, type[msgspec.Struct]]:
    """Return the modelled parts of an object by path."""
    model = _models()[kind]
    if {"spec", "status"} & set(model.__struct_fields__):
        return {"": model}
    return {".spec": model}


def _of_model(kind: str) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for path, part in _parts(kind).items():
        (schema,), definitions = msgspec.json.schema_components((part,), ref_template="#/$defs/{name}")
        fields.update(_shape(schema, definitions, path))
    return fields


def _of_crd(kind: str) -> dict[str, Field]:
    modelled = tuple(f"{path}." if path else (".spec", ".status") for path in _parts(kind))
    flat = tuple(part for prefix in modelled for part in (prefix if isinstance(prefix, tuple) else (prefix,)))
    return {path: field for path, field in _shape(_schema(_crds()[kind]), {}) if path.startswith(flat)}


def _differences(model: Mapping[str, Field], crd: Mapping[str, Field], defaulted: frozenset[str]) -> Iterator[str]:
    yield from (
        f"{path} is in the model alone" for path in model.keys() - crd.keys() if not _inside_anything(path, crd)
    )
    yield from (
        f"{path} is in the CRD alone" for path in crd.keys() - model.keys() if not _inside_anything(path, model)
    )
    for path in sorted(model.keys() & crd.keys()):
        ours, theirs = model[path], crd[path]
        if ANYTHING not in (ours.types, theirs.types) and ours.types != theirs.types:
            yield f"{path} is {sorted(ours.types)} in the model, {sorted(theirs.types)} in the CRD"
        if ours.required != theirs.required and not (ours.required and path in defaulted):
            yield f"{path} is {'required' if ours.required else 'optional'} in the model alone"
        if ours.choices != theirs.choices and ours.choices:
            yield f"{path} allows {sorted(ours.choices)} in the model, {sorted(theirs.choices)} in the CRD"
        if ours.bounds and ours.bounds != theirs.bounds:
            yield f"{path} is bounded by {ours.bounds} in the model, {theirs.bounds} in the CRD"


def _inside_anything(path: str, fields: Mapping[str, Field]) -> bool:
    return any(field.types == ANYTHING and path.startswith(parent) for parent, field in fields.items())


def _drift(kind: str) -> Iterator[str]:
    defaulted = frozenset(path for path, field in _own_fields(_crds()[kind]) if "default" in field)
    return _differences(_of_model(kind), _of_crd(kind), defaulted)


def test_each_crd_is_its_model() -> None:
    assert sorted(f"{kind}: {difference}" for kind in _models() for difference in _drift(kind)) == []
