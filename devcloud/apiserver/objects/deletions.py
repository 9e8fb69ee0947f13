"""How objects end; after apiserver's `registry/rest/delete.go` and `registry/generic/registry/store.go`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from devcloud.apiserver import schemas
from devcloud.apiserver.objects import refusals
from devcloud.apiserver.objects.compare import is_same
from devcloud.apiserver.objects.meta import FOREGROUND, ORPHAN
from devcloud.apiserver.objects.registry import Registry
from runtime.objects import CRDS, NAMESPACES, Key, Object, Resource

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
_POLICIES: Final = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a request says of the object's end; empty for nothing."""

    uid: str = ""
    resource_version: str = ""
    propagation: str = ""


def deleted(registry: Registry, resource: Resource, key: Key, deletion: Deletion) -> Object:
    """Return the answer to DELETE: the object while something holds it, else a Status."""
    if deletion.propagation and deletion.propagation not in _POLICIES:
        fault = refusals.unsupported("propagationPolicy", deletion.propagation, [*_POLICIES, "nil"])
        raise refusals.unfit("meta.k8s.io", "DeleteOptions", "", [fault])
    live = registry.existing(resource, key)
    _refuse_other(resource, live, deletion)
    held = ended(registry, resource, live, deletion.propagation)
    return held if held is not None else _gone(resource, live)


def _refuse_other(resource: Resource, live: Object, deletion: Deletion) -> None:
    metadata = live["metadata"]
    by_kind = Resource(resource.group, resource.version, resource.kind, resource.kind)
    if deletion.uid and deletion.uid != metadata["uid"]:
        raise refusals.conflict(
            by_kind,
            metadata["name"],
            f"the UID in the precondition ({deletion.uid}) does not match the UID in record ({metadata['uid']}). The "
            "object might have been deleted and then recreated",
        )
    if deletion.resource_version and deletion.resource_version != metadata["resourceVersion"]:
        raise refusals.conflict(
            by_kind,
            metadata["name"],
            f"the ResourceVersion in the precondition ({deletion.resource_version}) does not match the ResourceVersion "
            f"in record ({metadata['resourceVersion']}). The object might have been modified",
        )


def ended(registry: Registry, resource: Resource, live: Object, propagation: str) -> Object | None:
    """End an object as its finalizers and the propagation allow; return it while something holds it."""
    metadata = schemas.copied(live["metadata"])
    finalizers = _with_propagation(metadata.get("finalizers") or [], propagation)
    is_held = resource == NAMESPACES and "deletionTimestamp" not in metadata
    if resource == CRDS and CLEANUP not in finalizers:
        finalizers = [*finalizers, CLEANUP]
    if not finalizers and resource != NAMESPACES:
        registry.drop(resource, live)
        return None
    if "deletionTimestamp" not in metadata:
        if "generation" in metadata:
            metadata["generation"] += 1
        metadata["deletionTimestamp"] = registry.moment()
    metadata["deletionGracePeriodSeconds"] = 0
    metadata["finalizers"] = finalizers
    if not finalizers:
        del metadata["finalizers"]
    ending = {**live, "metadata": metadata}
    if is_held:
        ending["status"] = {**(live.get("status") or {}), "phase": "Terminating"}
    return schemas.copied(live) if is_same(ending, live) else registry.store(resource, live, schemas.copied(ending))


def _with_propagation(finalizers: list[str], propagation: str) -> list[str]:
    """Return finalizers with the one by which the garbage collector is instructed."""
    own = [name for name in finalizers if name in (FOREGROUND, ORPHAN)]
    wanted = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(propagation, "")
    if not propagation and own:
        wanted = own[0]
    made = [name for name in finalizers if name not in (FOREGROUND, ORPHAN)] + ([wanted] if wanted else [])
    return finalizers if set(made) == set(finalizers) else made


def _gone(resource: Resource, obj: Object) -> Object:
    named = {"name": obj["metadata"]["name"], "group": resource.group, "kind": resource.plural}
    details = {name: text for name, text in named.items() if text} | {"uid": obj["metadata"]["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
