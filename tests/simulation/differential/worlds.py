"""The kinds on which two API servers are compared: ours under groups of their own, without CEL, and one with it all."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from runtime.objects import CONFIG_MAPS, LEASES, SECRETS, Object, Resource
from tests.support import yaml_texts

_CRDS: Final = Path(__file__).resolve().parents[3] / "crds"
_FILES: Final = (
    "database.fairlead.dev_postgresqlinstances",
    "gcp.fairlead.dev_cloudsqlinstances",
    "gcp.fairlead.dev_cloudsqlusers",
    "onprem.fairlead.dev_postgresdatabases",
    "azure.fairlead.dev_flexibleserverfirewallrules",
)
GROUP: Final = "differential.dev"


def _list(items: Object, *keys: str, kind: str = "map") -> Object:
    made: Object = {"type": "array", "items": items, "x-kubernetes-list-type": kind}
    return made | ({"x-kubernetes-list-map-keys": list(keys)} if keys else {})


def _record(*required: str, **fields: Object) -> Object:
    return {"type": "object", "properties": fields} | ({"required": list(required)} if required else {})


_TEXT: Final[Object] = {"type": "string"}
_PORT: Final = _record(
    "number",
    "protocol",
    number={"type": "integer", "minimum": 1, "maximum": 9},
    protocol={"type": "string", "default": "TCP", "enum": ["TCP", "UDP"]},
    name=_TEXT,
    hosts=_list(_TEXT, kind="set"),
)
_SPEC: Final = _record(
    size={"type": "integer", "default": 3},
    ratio={"type": "number", "maximum": 2},
    mode={"type": "string", "enum": ["Slow", "Fast"]},
    on={"type": "boolean", "default": True},
    code={"type": "string", "pattern": "^[a-z]{2}$", "nullable": True},
    since={"type": "string", "format": "date-time"},
    either={"x-kubernetes-int-or-string": True},
    ports=_list(_PORT, "number", "protocol") | {"maxItems": 3},
    people=_list(_record("name", name=_TEXT, roles=_list(_TEXT, kind="atomic"), note=_TEXT), "name"),
    tags=_list(_TEXT, kind="set"),
    steps=_list(_record(name=_TEXT, count={"type": "integer", "default": 1}), kind="atomic"),
    names={"type": "object", "additionalProperties": _TEXT, "maxProperties": 3},
    whole=_record(a=_TEXT, b=_TEXT) | {"x-kubernetes-map-type": "atomic"},
    nested=_record(left=_record(x=_TEXT, y={"type": "integer"}), right={"type": "object", "default": {"z": "z"},
                   "properties": {"z": _TEXT, "w": {"type": "string", "default": "w"}}}),
    free={"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"size": {"type": "integer"}}},
)  # fmt: skip
_CONDITION: Final = _record("type", "status", type=_TEXT, status=_TEXT, reason={"type": "string", "maxLength": 4})
_STATUS: Final = _record(
    phase=_TEXT,
    conditions=_list(_CONDITION, "type"),
    observedGeneration={"type": "integer", "format": "int64", "default": -1},
)


def _thing(kind: str, plural: str, *, has_status: bool) -> Object:
    schema = _record("spec", spec=_SPEC, status=_STATUS)
    version: Object = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    version["subresources"] = {"status": {}} if has_status else {}
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _without_cel(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_cel(part) for name, part in value.items() if name != "x-kubernetes-validations"}
    return [_without_cel(part) for part in value] if isinstance(value, list) else value


def _copied(file: str) -> Object:
    crd: Object = _without_cel(yaml_texts.load(_CRDS / f"{file}.yaml"))
    spec = crd["spec"]
    spec["group"] = spec["group"].replace("fairlead.dev", GROUP)
    spec["names"].pop("categories", None)
    spec["names"].pop("shortNames", None)
    crd["metadata"] = {"name": f"{spec['names']['plural']}.{spec['group']}"}
    return crd


@dataclass(frozen=True)
class World:
    """Kinds by name, with their CRDs and schemas."""

    crds: tuple[Object, ...]
    resources: dict[str, Resource]
    schemas: dict[str, Object]


@functools.cache
def world() -> World:
    """Return all kinds."""
    crds = (
        _thing("Thing", "things", has_status=True),
        _thing("Plain", "plains", has_status=False),
        *(_copied(file) for file in _FILES),
    )
    resources = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS, "Lease": LEASES}
    schemas: dict[str, Object] = {}
    for crd in crds:
        spec = crd["spec"]
        kind, version = spec["names"]["kind"], spec["versions"][0]
        resources[kind] = Resource(spec["group"], version["name"], kind, spec["names"]["plural"])
        schemas[kind] = version["schema"]["openAPIV3Schema"]
    return World(crds, resources, schemas)
