"""Small builders of claims, children and views for the tests of pure decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from apis import names
from apis.identity import Identity, child_name
from composer.claim.snapshot import ObservedChild, Snapshot, live_hash
from composer.hashes import sent_hash
from composer.inventory import Entry
from composer.kinds.catalog import Catalog, KindFacts
from composer.render.render import Child, Rendered
from runtime.objects import Object, Resource, uid_of

CLAIMS = Resource("database.fairlead.dev", "v1alpha1", "PostgreSQLInstance", "postgresqlinstances")
DATABASES = Resource("onprem.fairlead.dev", "v1alpha1", "PostgresDatabase", "postgresdatabases")
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
VOLUMES = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")

DATABASE = KindFacts(DATABASES, stateful=True, allowed=True)
SETTINGS = KindFacts(CONFIG_MAPS, stateful=False, allowed=True)
RULES = KindFacts(
    Resource("azure.fairlead.dev", "v1alpha1", "FlexibleServerFirewallRule", "flexibleserverfirewallrules"),
    stateful=False,
    allowed=True,
)
VOLUME = KindFacts(VOLUMES, stateful=True, allowed=True)
CATALOG: Catalog = {facts.resource.group_kind: facts for facts in (DATABASE, SETTINGS, VOLUME)}
IDENTITY = Identity("claim-uid", "shop", "orders")
NOW = "2026-11-21T12:00:00Z"


def claim(
    *,
    annotations: Mapping[str, str] | None = None,
    status: Object | None = None,
    deleted: bool = False,
    generation: int = 1,
    **spec: Any,
) -> Object:
    """Return a claim with our finalizer."""
    meta: Object = {
        "name": "orders",
        "namespace": "shop",
        "uid": "claim-uid",
        "resourceVersion": "7",
        "generation": generation,
        "finalizers": [names.TEARDOWN_FINALIZER],
        "annotations": dict(annotations or {}),
    }
    if deleted:
        meta["deletionTimestamp"] = NOW
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "metadata": meta,
        "spec": {"version": "16", "size": "small", **spec},
        "status": {"observedGeneration": generation, **(status or {})},
    }


def desired(resource: str = "database", facts: KindFacts = DATABASE, *, spec: Object | None = None) -> Object:
    """Return a child as a render makes it."""
    return {
        "apiVersion": facts.resource.api_version,
        "kind": facts.resource.kind,
        "metadata": {
            "name": child_name(IDENTITY, resource),
            "namespace": "shop",
            "labels": {names.CLAIM_LABEL: "claim-uid"},
            "annotations": {names.CLAIM_NAME: "orders", names.RESOURCE: resource},
        },
        "spec": {"limit": 20} if spec is None else spec,
    }


def live(obj: Object, *, uid: str = "child-uid", deleted: bool = False, **meta: Any) -> Object:
    """Return an object as the API server has it."""
    metadata = {**obj["metadata"], "uid": uid, "resourceVersion": "9", "generation": 1, **meta}
    if deleted:
        metadata["deletionTimestamp"] = NOW
    return {**obj, "metadata": metadata}


def annotated(obj: Object, **annotations: str) -> Object:
    """Return the object with more annotations, named without our prefix."""
    more = {names.PREFIX + name.replace("_", "-"): text for name, text in annotations.items()}
    meta = obj["metadata"]
    return {**obj, "metadata": {**meta, "annotations": {**meta["annotations"], **more}}}


def entry(resource: str = "database", facts: KindFacts = DATABASE, **fields: Any) -> Entry:
    """Return an inventory entry of a child that exists."""
    known: dict[str, Any] = {
        "resource": resource,
        "api_version": facts.resource.api_version,
        "kind": facts.resource.kind,
        "name": child_name(IDENTITY, resource),
        "uid": "child-uid",
        "stateful": facts.stateful,
        **fields,
    }
    return Entry(**known)


def sent(obj: Object, stored: Object, **fields: Any) -> Entry:
    """Return the entry of a child that is stored as it was sent."""
    kind, resource = obj["kind"], obj["metadata"]["annotations"][names.RESOURCE]
    facts = next(facts for facts in CATALOG.values() if facts.resource.kind == kind)
    known = {"uid": uid_of(stored), "desired": sent_hash(obj), "live": live_hash(stored, obj, None), "applied": True}
    return entry(resource, facts, **known | fields)


AS_RENDERED: Object = {}


def observed(
    resource: str = "database", facts: KindFacts = DATABASE, *, stored: Object | None = AS_RENDERED, **fields: Any
) -> ObservedChild:
    """Return a child as it was seen: an object with its entry; None is one that is gone."""
    if stored is AS_RENDERED:
        stored = live(desired(resource, facts), uid=fields.get("uid", "child-uid"))
    return ObservedChild(entry(resource, facts, **fields), stored, facts)


def snapshot(
    *known: ObservedChild, of: Object | None = None, namespace: Object | None = None, kind_deleting: bool = False
) -> Snapshot:
    """Return a snapshot of a claim and what it composed."""
    return Snapshot(
        claim=of or claim(),
        resource=CLAIMS,
        namespace=namespace or {"metadata": {"name": "shop", "labels": {}}},
        kind_deleting=kind_deleting,
        catalog=CATALOG,
        children=known,
    )


TEMPLATE: Object = {
    "apiVersion": DATABASES.api_version,
    "kind": DATABASES.kind,
    "spec": {"forProvider": {"databaseName": "app"}},
}


def template_of(**fields: Any) -> Object:
    """Return the template of a database with more of what its provider is asked for."""
    return {**TEMPLATE, "spec": {"forProvider": {**TEMPLATE["spec"]["forProvider"], **fields}}}


def resource_of(name: str, template: Object | None = None, **fields: Any) -> Object:
    """Return a resource of a Composition, a database by default."""
    return {"name": name, "template": template or TEMPLATE, **fields}


def composition_of(*resources: Object, **spec: Any) -> Object:
    """Return the spec of a Composition."""
    ref = {"apiVersion": CLAIMS.api_version, "kind": CLAIMS.kind}
    return {"compositeTypeRef": ref, "resources": list(resources), **spec}


def child(obj: Object, resource: str = "database", *, ready: bool = True, depends_on: Iterable[str] = ()) -> Child:
    """Return a rendered child."""
    return Child(resource=resource, key="", object=obj, depends_on=tuple(depends_on), stateful=None, ready=ready)


def condition(type_: str, status: str, reason: str, *, since: str = "2026-11-01T00:00:00Z") -> Object:
    """Return a condition of the first generation, whose message says the reason."""
    shown = {"type": type_, "status": status, "reason": reason, "message": f"{reason}!", "observedGeneration": 1}
    return {**shown, "lastTransitionTime": since}


def conditions_of(status: Object) -> dict[str, str]:
    """Return the conditions of a status by type: `True Available`."""
    return {shown["type"]: f"{shown['status']} {shown['reason']}" for shown in status["conditions"]}


def rendered(*children: Child, **fields: Any) -> Rendered:
    """Return a whole render."""
    whole: dict[str, Any] = {"waiting": (), "status": {}, "connection": {}, **fields}
    return Rendered(children=children, **whole)
