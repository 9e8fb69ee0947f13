"""Which kinds may be composed, and what is known of each: scope, schema, whether it holds data. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from composer import names
from runtime.objects import Object, Resource, labels_of

GROUP_SUFFIX = ".fairlead.dev"
ABSTRACT_GROUPS = frozenset({"database.fairlead.dev"})

_BUILT_IN = (
    Resource("", "v1", "ConfigMap", "configmaps"),
    Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    Resource("", "v1", "Service", "services"),
    Resource("apps", "v1", "StatefulSet", "statefulsets"),
    Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
    Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
)
_FOREIGN = frozenset({
    "Cluster.postgresql.cnpg.io",
    "DBInstance.rds.services.k8s.aws",
    "DBParameterGroup.rds.services.k8s.aws",
    "DBSubnetGroup.rds.services.k8s.aws",
    "FlexibleServer.dbforpostgresql.azure.com",
    "FlexibleServersDatabase.dbforpostgresql.azure.com",
    "SQLDatabase.sql.cnrm.cloud.google.com",
    "SQLInstance.sql.cnrm.cloud.google.com",
    "SQLUser.sql.cnrm.cloud.google.com",
    "postgresql.acid.zalan.do",
})  # fmt: skip
_HOLDS_DATA = frozenset({
    "Cluster.postgresql.cnpg.io",
    "DBInstance.rds.services.k8s.aws",
    "FlexibleServer.dbforpostgresql.azure.com",
    "FlexibleServersDatabase.dbforpostgresql.azure.com",
    "PersistentVolumeClaim",
    "SQLDatabase.sql.cnrm.cloud.google.com",
    "SQLInstance.sql.cnrm.cloud.google.com",
    "SQLUser.sql.cnrm.cloud.google.com",
    "StatefulSet.apps",
    "postgresql.acid.zalan.do",
})  # fmt: skip


class KindFacts(msgspec.Struct, frozen=True):
    """One kind that the API server serves. `schema` is its OpenAPI v3 schema, None for built-in kinds."""

    resource: Resource
    stateful: bool
    schema: dict[str, Any] | None = None
    abstract: bool = False

    @property
    def managed(self) -> bool:
        """Whether one of our providers serves it and waits for the teardown word."""
        return is_managed(self.resource.group)


Catalog = dict[str, KindFacts]
"""Facts by `Kind.group`."""


def is_managed(group: str) -> bool:
    """Tell whether one of our providers serves a group."""
    return group.endswith(GROUP_SUFFIX) and group not in ABSTRACT_GROUPS


_LISTED = _FOREIGN | {each.group_kind for each in _BUILT_IN}


def is_listed(group: str, group_kind: str) -> bool:
    """Tell whether a kind of that name may be composed, whatever its scope."""
    return is_managed(group) or group_kind in _LISTED


def is_allowed(resource: Resource) -> bool:
    """Tell whether a composition may create this kind; what exists of another kind is still torn down."""
    return resource.namespaced and is_listed(resource.group, resource.group_kind)


def catalog(crds: Iterable[Object]) -> Catalog:
    """Gather the facts of all kinds: those that CRDs define, and the built-in ones that may be composed."""
    found = {each.group_kind: KindFacts(each, each.group_kind in _HOLDS_DATA) for each in _BUILT_IN}
    for crd in crds:
        facts = facts_of(crd)
        if facts:
            found[facts.resource.group_kind] = facts
    return found


def facts_of(crd: Object) -> KindFacts | None:
    """Read one CRD; None when it serves no version."""
    spec = crd["spec"]
    served = [version for version in spec["versions"] if version.get("served")]
    if not served:
        return None
    version = next((each for each in served if each.get("storage")), served[0])
    spelled = spec["names"]
    resource = Resource(
        spec["group"], version["name"], spelled["kind"], spelled["plural"], namespaced=spec["scope"] == "Namespaced"
    )
    labels = labels_of(crd)
    return KindFacts(
        resource,
        stateful=labels.get(names.STATEFUL_LABEL) == "true" or resource.group_kind in _HOLDS_DATA,
        schema=(version.get("schema") or {}).get("openAPIV3Schema"),
        abstract=labels.get(names.CLAIM_KIND_LABEL) == "true",
    )
