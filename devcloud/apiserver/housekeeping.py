"""What a cluster's own controllers do: the garbage collector, namespaces that end, CRDs that go.

After kube-controller-manager's `garbagecollector` (attemptToDeleteItem, attemptToOrphan) and `namespace`.
"""

from __future__ import annotations

import asyncio
from typing import Final

from devcloud.apiserver import json_patches
from devcloud.apiserver.api_server import ApiServer
from devcloud.apiserver.objects.deletions import CLEANUP
from devcloud.apiserver.objects.meta import FOREGROUND, ORPHAN
from devcloud.apiserver.watching import Change
from runtime.objects import CRDS, NAMESPACES, Key, Object, Resource

_LATE_SECONDS: Final = 0.5
_MANAGER: Final = "kube-controller-manager"


async def keep_house(server: ApiServer) -> None:
    """Collect after each deletion, a little later."""
    due = asyncio.Event()

    def listen(resource: Resource, change: Change) -> None:
        gone = change.after is None
        ends = change.after is not None and "deletionTimestamp" in change.after["metadata"]
        if gone or ends or (resource == NAMESPACES):
            due.set()

    server.listeners.append(listen)
    while True:
        await due.wait()
        await asyncio.sleep(_LATE_SECONDS)
        due.clear()
        collect(server)


def settle(server: ApiServer) -> None:
    """Collect until there is nothing more to do."""
    version = -1
    while version != server.version:
        version = server.version
        collect(server)


def collect(server: ApiServer) -> None:
    """Delete what has no owner left, take finalizers from what waited for that, end namespaces and CRDs."""
    for (group, plural, key), _ in sorted(server.objects.items(), key=lambda entry: entry[0]):
        resource = server.resources.get((group, plural))
        obj = server.objects.get((group, plural, key))
        if resource is None or obj is None:
            continue
        finalizers = obj["metadata"].get("finalizers") or ()
        if "deletionTimestamp" not in obj["metadata"]:
            if obj["metadata"].get("ownerReferences"):
                _judge(server, resource, obj)
        elif ORPHAN in finalizers:
            _orphan(server, resource, obj)
        elif FOREGROUND in finalizers:
            _delete_dependents(server, resource, obj)
    _end_namespaces(server)
    _end_crds(server)


def _judge(server: ApiServer, resource: Resource, obj: Object) -> None:
    """Delete what has no owner left; take references to owners that are gone from what has others."""
    solid, absent, waiting = [], [], []
    for reference in obj["metadata"]["ownerReferences"]:
        owner = _owner(server, obj, reference)
        if owner is None:
            absent.append(reference["uid"])
        elif _is_waiting(owner):
            waiting.append(reference["uid"])
        else:
            solid.append(reference["uid"])
    if solid:
        if absent or waiting:
            _disown(server, resource, obj, {*absent, *waiting})
        return
    finalizers = obj["metadata"].get("finalizers") or ()
    if waiting and any(True for _ in _dependents(server, obj)):
        server.end(resource, obj, "Foreground")
    else:
        policy = "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
        server.end(resource, obj, policy)


def _owner(server: ApiServer, obj: Object, reference: Object) -> Object | None:
    """Return the object that a reference means, None where it is gone."""
    group = reference["apiVersion"].rpartition("/")[0]
    for resource in server.resources.values():
        if (resource.group, resource.kind) == (group, reference["kind"]):
            namespace = obj["metadata"].get("namespace", "") if resource.namespaced else ""
            owner = server.find(resource, Key(namespace, reference["name"]))
            return owner if owner is not None and owner["metadata"]["uid"] == reference["uid"] else None
    return None


def _is_waiting(owner: Object) -> bool:
    return "deletionTimestamp" in owner["metadata"] and FOREGROUND in (owner["metadata"].get("finalizers") or ())


def _dependents(server: ApiServer, owner: Object) -> list[tuple[Resource, Object, Object]]:
    """Return the objects that have an owner, each with its reference."""
    uid = owner["metadata"]["uid"]
    return [
        (server.resources[group, plural], obj, reference)
        for (group, plural, _), obj in sorted(server.objects.items(), key=lambda entry: entry[0])
        for reference in obj["metadata"].get("ownerReferences") or ()
        if reference["uid"] == uid and (group, plural) in server.resources
    ]


def _disown(server: ApiServer, resource: Resource, obj: Object, uids: set[str]) -> None:
    """Take owner references from an object."""
    left = [reference for reference in obj["metadata"]["ownerReferences"] if reference["uid"] not in uids]
    _patch(server, resource, obj, {"ownerReferences": left or None})


def _orphan(server: ApiServer, resource: Resource, owner: Object) -> None:
    uid = owner["metadata"]["uid"]
    for of, obj, _ in _dependents(server, owner):
        _disown(server, of, obj, {uid})
    _remove_finalizer(server, resource, owner, ORPHAN)


def _delete_dependents(server: ApiServer, resource: Resource, owner: Object) -> None:
    """Let an owner go that waits for nobody; what it waits for is deleted when it is looked at itself."""
    if not any(reference.get("blockOwnerDeletion") for _, _, reference in _dependents(server, owner)):
        _remove_finalizer(server, resource, owner, FOREGROUND)


def _remove_finalizer(server: ApiServer, resource: Resource, obj: Object, finalizer: str) -> None:
    left = [name for name in obj["metadata"]["finalizers"] if name != finalizer]
    _patch(server, resource, obj, {"finalizers": left})


def _patch(server: ApiServer, resource: Resource, obj: Object, metadata: Object) -> None:
    key = Key(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
    patch = {"metadata": metadata}
    server.patched(resource, key, lambda live: json_patches.merged(live, patch), _MANAGER)


def _end_namespaces(server: ApiServer) -> None:
    for key, namespace in server.all_of(NAMESPACES).items():
        if "deletionTimestamp" not in namespace["metadata"]:
            continue
        within = [(place, obj) for place, obj in server.objects.items() if place[2].namespace == key.name]
        for (group, plural, _), obj in within:
            if "deletionTimestamp" not in obj["metadata"]:
                server.end(server.resources[group, plural], obj)
        if not any(place[2].namespace == key.name for place in server.objects):
            server.remove(NAMESPACES, key)


def _end_crds(server: ApiServer) -> None:
    """Delete the objects of kinds that go, then the kinds."""
    for key, crd in server.all_of(CRDS).items():
        if "deletionTimestamp" not in crd["metadata"]:
            continue
        plural, _, group = key.name.partition(".")
        within = [(place, obj) for place, obj in server.objects.items() if place[:2] == (group, plural)]
        for _, obj in within:
            if "deletionTimestamp" not in obj["metadata"]:
                server.end(server.resources[group, plural], obj)
        if not any(place[:2] == (group, plural) for place in server.objects):
            finalizers = crd["metadata"].get("finalizers") or ()
            if CLEANUP in finalizers:
                _remove_finalizer(server, CRDS, crd, CLEANUP)
