"""A second abstract API, `Cache`, and a foreign kind that it composes, `Node`: as a platform team brings them."""

from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import yaml_texts
from tests.support.api import JsonObject
from tests.support.kinds import CLUSTER_ROLE, COMPOSITION, CRD, Kind

_ROOT = Path(__file__).resolve().parents[2]
_SHIPPED = _ROOT / "crds" / "database.fairlead.dev_postgresqlinstances.yaml"
_OPTIONS = ("compositionRef", "deletionPolicy")


class SecondApi(NamedTuple):
    """Both kinds, in a group of their own, so that tests on one plane do not meet."""

    group: str

    @property
    def cache(self) -> Kind:
        return Kind(self.group, "v1", "Cache", "caches")

    @property
    def node(self) -> Kind:
        return Kind(self.group, "v1", "Node", "nodes")

    def cache_crd(self) -> JsonObject:
        """Return the CRD of the claims: a spec of its own, and the status that the contract asks for."""
        shipped = yaml_texts.load(_SHIPPED)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        spec = {
            "type": "object",
            "required": ["memoryMB"],
            "properties": {
                "memoryMB": {"type": "integer", "minimum": 1},
                "label": {"type": "string", "maxLength": 20},
                **{name: deepcopy(shipped["properties"]["spec"]["properties"][name]) for name in _OPTIONS},
            },
        }
        return _crd(self.cache, spec, deepcopy(shipped["properties"]["status"]))

    def node_crd(self, *, composable: str | None = None, **fields: JsonObject) -> JsonObject:
        """Return the CRD of the foreign kind, whose status nobody writes but the test."""
        conditions = {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        status = {"type": "object", "properties": {"conditions": conditions, "address": {"type": "string"}}}
        spec = {"type": "object", "properties": {"memory": {"type": "string"}, **fields}}
        made = _crd(self.node, spec, status)
        made["metadata"]["labels"] = {"fairlead.dev/composable": composable} if composable else {}
        return made

    def composition(self, name: str, *, node: JsonObject | None = None, **spec: Any) -> JsonObject:
        """Return a Composition of a ConfigMap and a Node."""
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"maxmemory": "{{ claim.spec.memoryMB }}mb"}}
        wanted = {"memory": "{{ claim.spec.memoryMB }}Mi", **(node or {})}
        resources = [
            {"name": "settings", "template": settings},
            {"name": "node", "template": {"apiVersion": self.node.api_version, "kind": "Node", "spec": wanted}},
        ]
        served = {"apiVersion": self.cache.api_version, "kind": self.cache.kind}
        return COMPOSITION.new("", name, spec={"compositeTypeRef": served, "resources": resources, **spec})

    def role(self) -> JsonObject:
        """Return the ClusterRole that adds both kinds to what the composer may do."""
        rules = [
            _rule(self.group, ["caches"], ["get", "list", "watch", "patch"]),
            _rule(self.group, ["caches/status"], ["get", "patch"]),
            _rule(self.group, ["caches/finalizers"], ["update"]),
            _rule(self.group, ["nodes"], ["get", "list", "watch", "create", "patch", "delete"]),
        ]
        made = CLUSTER_ROLE.new("", f"composer-{self.group}", rules=rules)
        made["metadata"]["labels"] = {"fairlead.dev/aggregate-to-composer": "true"}
        return made


def _rule(group: str, resources: list[str], verbs: list[str]) -> JsonObject:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def _crd(kind: Kind, spec: JsonObject, status: JsonObject) -> JsonObject:
    schema = {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower(), "listKind": f"{kind.kind}List"}
    whole = {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]}
    return CRD.new("", f"{kind.plural}.{kind.group}", spec=whole)
