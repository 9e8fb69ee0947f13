"""What a cluster's own controllers do: the garbage collector, and namespaces that end."""

from __future__ import annotations

import asyncio
from typing import Final

from runtime.objects import NAMESPACES, Key, Object, Resource
from tests.simulation import schemas
from tests.simulation.api_server import ApiServer
from tests.simulation.watching import Change

_FOREGROUND: Final = "foregroundDeletion"
_LATE_SECONDS: Final = 0.5


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


def collect(server: ApiServer) -> None:
    """Delete what has no owner left, take finalizers from what waited for that, end namespaces that are empty."""
    uids = {obj["metadata"]["uid"]: obj for obj in server.objects.values()}
    for (group, plural, _), obj in list(server.objects.items()):
        resource = _resource(server, group, plural)
        meta = obj["metadata"]
        owners = meta.get("ownerReferences") or ()
        present = [uids.get(owner["uid"]) for owner in owners]
        is_orphan = bool(owners) and not any(present)
        ends_before = any(_waits(owner) for owner in present if owner is not None)
        if (is_orphan or ends_before) and "deletionTimestamp" not in meta:
            server.end(resource, obj)
        elif _FOREGROUND in meta.get("finalizers", ()) and not _dependents(server, meta["uid"]):
            _remove_finalizer(server, resource, obj)
    _end_namespaces(server)


def _waits(owner: Object) -> bool:
    return "deletionTimestamp" in owner["metadata"] and _FOREGROUND in owner["metadata"].get("finalizers", ())


def _dependents(server: ApiServer, uid: str) -> bool:
    return any(
        owner["uid"] == uid and owner.get("blockOwnerDeletion")
        for obj in server.objects.values()
        for owner in obj["metadata"].get("ownerReferences") or ()
    )


def _remove_finalizer(server: ApiServer, resource: Resource, obj: Object) -> None:
    changed = schemas.copied(obj)
    changed["metadata"]["finalizers"].remove(_FOREGROUND)
    server.put(resource, changed)


def _end_namespaces(server: ApiServer) -> None:
    for key, namespace in server.all_of(NAMESPACES).items():
        if "deletionTimestamp" not in namespace["metadata"]:
            continue
        within = [(place, obj) for place, obj in server.objects.items() if place[2].namespace == key.name]
        for (group, plural, _), obj in within:
            if "deletionTimestamp" not in obj["metadata"]:
                server.end(_resource(server, group, plural), obj)
        if not any(place[2].namespace == key.name for place in server.objects):
            server.remove(NAMESPACES, Key("", key.name))


def _resource(server: ApiServer, group: str, plural: str) -> Resource:
    return server.resources[group, plural]
