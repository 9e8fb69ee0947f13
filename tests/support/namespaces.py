"""The end of a test's namespace, at a tenth of the requests that the namespace controller makes for it.

That controller lists and deletes each kind of the API, some ninety requests a namespace: with one namespace a test it
made more than half of all requests of a run. What tests put into a namespace is of few kinds.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import Final

from tests.support import yaml_texts
from tests.support.api import Api, ApiError, JsonObject
from tests.support.kinds import CLAIM, CONFIG_MAP, LEASE, NAMESPACE, ROLE_BINDING, SECRET, Kind
from tests.support.waiting import eventually

_CRDS: Final = Path(__file__).resolve().parents[2] / "crds"
_MOST_AT_ONCE: Final = 16
_WITHOUT_FINALIZERS: Final = {"metadata": {"finalizers": None}}
_SERVICE_ACCOUNT: Final = Kind("", "v1", "ServiceAccount", "serviceaccounts")
_OF_KUBERNETES: Final = (SECRET, CONFIG_MAP, LEASE, ROLE_BINDING, _SERVICE_ACCOUNT)


@functools.cache
def kinds_of_ours() -> tuple[Kind, ...]:
    """Return the shipped kinds whose objects are in namespaces, claims first."""
    kinds = [_kind(yaml_texts.load(path)) for path in sorted(_CRDS.glob("*.yaml"))]
    return tuple(sorted((kind for kind in kinds if kind.namespaced), key=lambda kind: kind.group != CLAIM.group))


async def end_namespace(api: Api, name: str) -> None:
    """End a namespace and all that tests put there, of Kubernetes' kinds below and of ours, whoever holds it.

    Objects of other kinds, as another operator's, stay behind unseen in a namespace that is gone: who makes such ends
    them, or lets them go with the claim that owns them.

    Nobody is asked: claims and managed resources go as if their finalizers had been removed by force, so that what they
    stood for stays with its server. A test of the end of a namespace deletes it by a request of its own.
    """
    path = NAMESPACE.path("", name)
    try:
        # From here on nothing new can be made in it.
        await api.delete(path)
    except ApiError as error:
        if error.status not in {404, 409}:
            raise
    if await api.find(path) is None:
        return
    claims, *others = kinds_of_ours()
    await _empty(api, claims, name)
    await side_by_side(_empty(api, kind, name) for kind in (*others, *_OF_KUBERNETES))
    body = {**NAMESPACE.new("", name), "spec": {"finalizers": []}}
    try:
        await api.request("PUT", f"{path}/finalize", body)
    except ApiError as error:
        if error.status not in {404, 409}:
            raise
    await api.until_gone(path, limit_s=120.0)


async def take_away(api: Api, kind: Kind, obj: JsonObject) -> None:
    """Delete an object at once, whatever protects it."""
    meta = obj["metadata"]
    path = kind.path(meta.get("namespace", ""), meta["name"])
    if obj.get("spec", {}).get("deletionProtection"):
        await _unless_gone(api.merge(path, {"spec": {"deletionProtection": False}}))
    await _unless_gone(api.delete(path))
    # Only now: a controller at work gives a living object its finalizer back, and a deleting one none.
    if meta.get("finalizers"):
        await _unless_gone(api.merge(path, _WITHOUT_FINALIZERS))


async def side_by_side(requests: Iterable[Awaitable[None]]) -> None:
    """Send requests, a few at a time."""
    room = asyncio.Semaphore(_MOST_AT_ONCE)

    async def sent(request: Awaitable[None]) -> None:
        async with room:
            await request

    await asyncio.gather(*(sent(request) for request in requests))


async def _empty(api: Api, kind: Kind, namespace: str) -> None:
    """Take away what a namespace has of a kind, and what was given a finalizer meanwhile."""

    async def is_empty() -> bool:
        try:
            objects = await api.items(kind.path(namespace))
        except ApiError as error:
            if error.status not in {404, 429}:
                raise
            # A definition that was just applied: its storage is being made.
            return error.status == 404
        await side_by_side(take_away(api, kind, obj) for obj in objects)
        return not objects

    await eventually(is_empty, f"{namespace} has no {kind.plural}")


async def _unless_gone(request: Awaitable[JsonObject | None]) -> None:
    try:
        await request
    except ApiError as error:
        if error.status != 404:
            raise


def _kind(crd: JsonObject) -> Kind:
    spec, names = crd["spec"], crd["spec"]["names"]
    version = next(version["name"] for version in spec["versions"] if version["storage"])
    return Kind(spec["group"], version, names["kind"], names["plural"], namespaced=spec["scope"] == "Namespaced")
