"""A look at something in a cloud, through a resource with `managementPolicy: Observe` that lives only for it.

Such a resource changes nothing in the cloud, and its end touches nothing; one that an interrupted command left is used
and ended by the next look at the same thing.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from apis import names
from fairlead.annotate import MANAGER
from fairlead.exits import CommandError, Exit
from fairlead.imports.following import Followed
from fairlead.imports.thing import Thing
from runtime.conditions import find, is_true
from runtime.errors import AlreadyExists, NotFound, WriteConflict
from runtime.kube import Kube
from runtime.objects import (
    Key,
    Object,
    Resource,
    generation_of,
    key_of,
    observed_generation_of,
    status_of,
    uid_of,
    version_of,
)

LABEL: Final = {"app.kubernetes.io/managed-by": "fairlead-import"}
_LIMIT_SECONDS: Final = 60.0
_ATTEMPTS: Final = 5


def observer(resource: Resource, config: str, thing: Thing, namespace: str) -> Object:
    """Return the resource by which a provider looks at something. Pure."""
    digest = hashlib.sha256(f"{resource.group}\0{config}\0{thing.kind}\0{thing.name}".encode()).hexdigest()[:10]
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": f"import-{digest}",
            "namespace": namespace,
            "labels": LABEL,
            "annotations": {names.EXTERNAL_NAME: thing.name},
        },
        "spec": {
            "providerConfigRef": {"name": config},
            "managementPolicy": "Observe",
            "deletionPolicy": "Orphan",
            "forProvider": {},
        },
    }


@asynccontextmanager
async def observed(
    followed: Followed, resource: Resource, config: str, thing: Thing, namespace: str
) -> AsyncIterator[Object]:
    """Yield the resource with what its provider observed.

    Raises CommandError in the provider's words where that cannot look, or where there is no such thing.
    """
    obj = observer(resource, config, thing, namespace)
    key = key_of(obj)
    with suppress(AlreadyExists):
        await followed.kube.create(resource, obj, manager=MANAGER)
    try:
        yield await _looked_at(followed, resource, key, thing)
    finally:
        await _end(followed.kube, resource, key)


async def _end(kube: Kube, resource: Resource, key: Key) -> None:
    """Delete the resource by which was looked; its provider writes to it meanwhile."""
    for _ in range(_ATTEMPTS):
        with suppress(WriteConflict):
            try:
                obj = await kube.get(resource, key, metadata_only=True)
                await kube.delete(resource, key, uid=uid_of(obj), resource_version=version_of(obj))
            except NotFound:
                return


async def _looked_at(followed: Followed, resource: Resource, key: Key, thing: Thing) -> Object:
    obj = await followed.until(resource, key, _is_answered, _LIMIT_SECONDS) or {}
    if not status_of(obj).get("observed"):
        cloud = resource.group.removesuffix(names.GROUP_SUFFIX)
        silent = f"not looked at within {_LIMIT_SECONDS:g} s: does fairlead-provider-{cloud} run and lead?"
        raise CommandError(f"{thing.kind} {thing.name}: {obstacle(obj) or silent}", exit_code=Exit.NOT_READY)
    return obj


def _is_answered(obj: Object) -> bool:
    return bool(status_of(obj).get("observed") or obstacle(obj))


def obstacle(obj: Object) -> str:
    """Return why nothing will be observed: the provider's sentence about this generation, empty while it may. Pure."""
    if observed_generation_of(obj) != generation_of(obj):
        return ""
    synced = find(obj, "Synced") or {}
    is_absent = synced.get("reason") == "ResourcePending"
    stalled = find(obj, "Stalled") or {} if is_true(obj, "Stalled") else {}
    return str(stalled.get("message") or (synced.get("message") if is_absent else "") or "")
