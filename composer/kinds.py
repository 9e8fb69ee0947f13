"""Which kinds may be composed, and what is known of each: scope, schema, whether it holds data. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from composer import contract, names
from runtime.conditions import is_true
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
HOLDS_DATA = frozenset({
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
    """One kind that the API server serves. `schema` is its OpenAPI v3 schema, None for built-in kinds.

    `gaps`: what it lacks to be a kind of claim. `allowed`: compositions may create and change it; what exists of
    another kind is still torn down.
    """

    resource: Resource
    stateful: bool
    schema: dict[str, Any] | None = None
    gaps: tuple[str, ...] = ("schema",)
    allowed: bool = False

    @property
    def abstract(self) -> bool:
        """Whether it has all that a kind of claim needs."""
        return not self.gaps

    @property
    def is_shipped(self) -> bool:
        """Whether it is a kind of claim of our own, which is watched before any Composition names it."""
        return self.abstract and self.resource.group in ABSTRACT_GROUPS

    @property
    def managed(self) -> bool:
        """Whether one of our providers serves it and waits for the teardown word."""
        return is_managed(self.resource.group) and not self.abstract


Catalog = dict[str, KindFacts]
"""Facts by `Kind.group`."""


def is_managed(group: str) -> bool:
    """Tell whether one of our providers serves a group."""
    return group.endswith(GROUP_SUFFIX) and group not in ABSTRACT_GROUPS


_LISTED = _FOREIGN | {each.group_kind for each in _BUILT_IN}


def is_listed(group: str, group_kind: str) -> bool:
    """Tell whether a kind of that name may be composed unless its CRD says otherwise, whatever its scope."""
    return is_managed(group) or group_kind in _LISTED


def may_come(group: str, group_kind: str) -> bool:
    """Tell whether a kind that is not installed may be allowed once it is: a CRD says so by its label."""
    return is_listed(group, group_kind) or ("." in group and not group.endswith(".k8s.io"))


def catalog(crds: Iterable[Object]) -> Catalog:
    """Gather the facts of all kinds: those that CRDs define, and the built-in ones that may be composed."""
    return catalog_of(facts for crd in crds if (facts := facts_of(crd)) is not None)


def catalog_of(facts: Iterable[KindFacts]) -> Catalog:
    """Put the facts of CRDs' kinds beside those of the built-in ones."""
    found = {each.group_kind: KindFacts(each, each.group_kind in HOLDS_DATA, allowed=True) for each in _BUILT_IN}
    found.update((each.resource.group_kind, each) for each in facts)
    return found


def facts_of(crd: Object) -> KindFacts | None:
    """Read one CRD; None when it serves no version, or none yet."""
    spec, status = crd["spec"], crd.get("status")
    if status and not is_true(crd, "Established"):
        return None
    served = [version for version in spec["versions"] if version.get("served")]
    if not served:
        return None
    version = next((each for each in served if each.get("storage")), served[0])
    spelled = spec["names"]
    resource = Resource(
        spec["group"], version["name"], spelled["kind"], spelled["plural"], namespaced=spec["scope"] == "Namespaced"
    )
    labels = labels_of(crd)
    gaps = contract.gaps(spec["scope"], version)
    listed = labels.get(names.COMPOSABLE_LABEL) or str(is_listed(resource.group, resource.group_kind)).lower()
    return KindFacts(
        resource,
        stateful=labels.get(names.STATEFUL_LABEL) == "true" or resource.group_kind in HOLDS_DATA,
        schema=(version.get("schema") or {}).get("openAPIV3Schema"),
        gaps=gaps,
        allowed=listed == "true" and resource.namespaced and bool(gaps),
    )
