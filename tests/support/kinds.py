"""The kinds that the system's judges read and write: paths, small builders, and what a condition says."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support.api import JsonObject


class Kind(NamedTuple):
    """Where the API server serves a kind."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        tail = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}{scope}/{self.plural}{tail}"

    def new(self, namespace: str, name: str, **fields: Any) -> JsonObject:
        meta: JsonObject = {"name": name}
        if namespace:
            meta["namespace"] = namespace
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": meta, **fields}


CLAIM = Kind("database.fairlead.dev", "v1alpha1", "PostgreSQLInstance", "postgresqlinstances")
DATABASE = Kind("onprem.fairlead.dev", "v1alpha1", "PostgresDatabase", "postgresdatabases")
PROVIDER_CONFIG = Kind("onprem.fairlead.dev", "v1alpha1", "ProviderConfig", "providerconfigs", namespaced=False)
COMPOSITION = Kind("fairlead.dev", "v1alpha1", "Composition", "compositions", namespaced=False)
REVISION = Kind("fairlead.dev", "v1alpha1", "CompositionRevision", "compositionrevisions", namespaced=False)
SECRET = Kind("", "v1", "Secret", "secrets")
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")
NAMESPACE = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
EVENT = Kind("events.k8s.io", "v1", "Event", "events")
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
CLUSTER_ROLE = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING = Kind(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
ROLE_BINDING = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")

SMALL: JsonObject = {"version": "16", "size": "small"}
"""The smallest spec of a claim."""


def claim(namespace: str, name: str, **spec: Any) -> JsonObject:
    """Return a claim: the smallest spec, changed by what is given; None leaves a field out."""
    whole = {key: value for key, value in {**SMALL, **spec}.items() if value is not None}
    return CLAIM.new(namespace, name, spec=whole)


def database(namespace: str, name: str, *, config: str = "default", **spec: Any) -> JsonObject:
    """Return a PostgresDatabase that no claim stands behind; its deletion drops it."""
    whole = {
        "forProvider": {"databaseName": "app", "username": "app"},
        "providerConfigRef": {"name": config},
        "deletionPolicy": "Delete",
        **spec,
    }
    return DATABASE.new(namespace, name, spec=whole)


def composition(name: str, *resources: JsonObject, labels: dict[str, str] | None = None, **spec: Any) -> JsonObject:
    """Return a Composition for claims of a PostgreSQLInstance; never chosen unless it is named or selected."""
    obj = COMPOSITION.new(
        "",
        name,
        spec={
            "compositeTypeRef": {"apiVersion": CLAIM.api_version, "kind": CLAIM.kind},
            "deletionPolicies": ["Orphan", "Delete"],
            "resources": list(resources),
            **spec,
        },
    )
    if labels:
        obj["metadata"]["labels"] = labels
    return obj


def crd_of(kind: Kind, schema: JsonObject, **labels: str) -> JsonObject:
    """Return the CRD of a foreign kind with a status, with labels of ours."""
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower(), "listKind": f"{kind.kind}List"}
    spec = {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]}
    crd = CRD.new("", f"{kind.plural}.{kind.group}", spec=spec)
    crd["metadata"]["labels"] = {f"fairlead.dev/{name}": value for name, value in labels.items()}
    return crd


def condition(obj: JsonObject, type_: str) -> JsonObject:
    """Return one condition of an object, an empty dictionary when it has none of that type."""
    for entry in (obj.get("status") or {}).get("conditions") or ():
        if entry["type"] == type_:
            return dict(entry)
    return {}


def is_ready(obj: JsonObject) -> bool:
    """Return whether an object says Ready=True and Synced=True about its newest generation."""
    generation = obj["metadata"].get("generation", 0)
    conditions = (condition(obj, "Ready"), condition(obj, "Synced"))
    return all(entry.get("status") == "True" and entry.get("observedGeneration") == generation for entry in conditions)


def trouble(obj: JsonObject) -> str:
    """Return why an object's newest generation is not in sync, or an empty text."""
    synced = condition(obj, "Synced")
    is_current = synced.get("observedGeneration") == obj["metadata"].get("generation")
    return str(synced.get("reason", "")) if is_current and synced.get("status") == "False" else ""


def in_trouble(*reasons: str) -> Callable[[JsonObject], bool]:
    """Return a test whether an object's newest generation is out of sync for one of these reasons."""
    return lambda obj: trouble(obj) in reasons
