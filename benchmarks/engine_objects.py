"""The objects of the engine's benchmark: a Composition with two children, claims, and a provider's answers."""

from __future__ import annotations

from typing import Any, Final

from runtime.objects import Key, Object, Resource
from tests.support.kinds import COMPOSITION

CLAIMS: Final = Resource("database.fairlead.dev", "v1alpha1", "PostgreSQLInstance", "postgresqlinstances")
CHILDREN: Final = Resource("onprem.fairlead.dev", "v1alpha1", "PostgresDatabase", "postgresdatabases")
COMPOSITIONS: Final = Resource("fairlead.dev", "v1alpha1", "Composition", "compositions", namespaced=False)

COMPOSITION_NAME: Final = "bench"
LIMIT: Final = 20
BY_HAND: Final = 7
LIMIT_PATH: Final = "/spec/forProvider/connectionLimit"
CHANGED_PATH: Final = "/spec/resources/{}/template/spec/forProvider/connectionLimit"
RESOURCES: Final = ("primary", "reporting")
WORK_MEM: Final = "{{ {'small': '4MB', 'medium': '8MB'}[claim.spec.size | default('small')] }}"


def composition() -> Object:
    """Return a Composition of two children and a connection."""
    spec = {
        "compositeTypeRef": {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind},
        "resources": [{"name": name, "template": _template(name)} for name in RESOURCES],
        "connection": {"from": RESOURCES[0]},
        "status": {"endpoint": "{{ resources.primary.status.connection.host }}"},
    }
    return COMPOSITION.new("", COMPOSITION_NAME, spec=spec)


def composition_without_connection() -> Object:
    """Return the Composition of two children alone: no Secret is read or made for its claims."""
    full = composition()
    return {**full, "spec": {name: value for name, value in full["spec"].items() if name != "connection"}}


def _template(name: str) -> Object:
    settings = {
        "databaseName": "{{ claim.metadata.name | dns_label(40) | replace('-', '_') }}_" + name,
        "username": "{{ claim.spec.username | default('application') }}",
        "version": "{{ claim.spec.version | default('16') }}",
        "connectionLimit": LIMIT,
        "parameters": {"work_mem": WORK_MEM, "jit": "off"},
    }
    return {"apiVersion": CHILDREN.api_version, "kind": CHILDREN.kind, "spec": {"forProvider": settings}}


def claim(key: Key) -> Object:
    """Return a claim with four settings."""
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "version": "16",
            "size": "small",
            "username": "application",
            "compositionRef": {"name": COMPOSITION_NAME},
        },
    }


def ready_child(child: Object) -> Object:
    """Return the apply that makes a child ready, as its provider would report it."""
    meta = child["metadata"]
    condition = {
        "reason": "Available",
        "message": "usable",
        "status": "True",
        "observedGeneration": meta["generation"],
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    connection = {
        "host": "127.1.2.3",
        "port": 5432,
        "database": child["spec"]["forProvider"]["databaseName"],
        "username": "application",
        "sslmode": "require",
        "passwordRef": {"name": f"{meta['name']}-credentials", "key": "current", "hash": "0" * 64},
    }
    status = {
        "observedGeneration": meta["generation"],
        "conditions": [condition | {"type": "Ready"}, condition | {"type": "Synced", "reason": "InSync"}],
        "connection": connection,
    }
    kept = {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]}
    return {"apiVersion": CHILDREN.api_version, "kind": CHILDREN.kind, "metadata": kept, "status": status}


def credentials(child: Object) -> Object:
    """Return the Secret that the child's provider would have written."""
    meta = child["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{meta['name']}-credentials", "namespace": meta["namespace"]},
        "type": "fairlead.dev/credentials",
        "stringData": {"current": "bench", "pending": "", "username": "application"},
    }


def is_for_connection(child: Object) -> bool:
    """Return whether the connection Secret is copied from this child."""
    return bool(child["metadata"]["annotations"].get("fairlead.dev/resource") == RESOURCES[0])


def set_value(path: str, value: Any) -> list[dict[str, Any]]:
    """Return a JSON patch of one value."""
    return [{"op": "replace", "path": path, "value": value}]
