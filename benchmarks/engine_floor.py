"""The floor of the engine's benchmark: the requests that a phase costs everybody, sent raw, by nobody who thinks.

A program of its own, since one process cannot send fast enough: `python -m benchmarks.engine_floor KUBECONFIG NAMESPACE
FIRST COUNT`. Each line of its standard input names a phase, so that several programs begin together; it prints the
seconds that the phase took:

- `create`: for each claim its creation; the engine's five writes and one event; the provider's two reports and Secret;
- `drift-one`, `drift-both`: one child, or both, of each claim is overwritten by hand, then applied by force; its claim
  has a status and an event of it;
- `change`: both children of each claim are applied by force with another value, and its status says so.
"""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from pathlib import Path
from typing import Final

import uvloop

from benchmarks import engine_objects as objects
from benchmarks.engine_load import in_parallel
from runtime.kube import Kube
from runtime.kube_client import KubeClient
from runtime.objects import EVENTS, SECRETS, Key, Object, uid_of
from runtime.status import write_status

_AT_ONCE: Final = 24
_MANAGER: Final = "fairlead.dev/0123456789abcdef"
_INVENTORY_PADDING: Final = "0" * 64
_OTHER_LIMIT: Final = objects.LIMIT + 1


class Sender:
    """Sends what one claim costs. Children are remembered as they are stored, as the engine's caches have them."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._children: dict[Key, Object] = {}
        self._claims: dict[Key, Object] = {}

    async def create(self, key: Key) -> None:
        """Send all that the creation of a claim costs, in the order in which it must be."""
        kube = self._kube
        claim = await kube.create(objects.CLAIMS, objects.claim(key), manager="kubectl-bench")
        claim = await kube.apply(objects.CLAIMS, _annotated(claim), manager=_MANAGER, force=True)
        children = await asyncio.gather(
            *(kube.create(objects.CHILDREN, _child(claim, name), manager=_MANAGER) for name in objects.RESOURCES)
        )
        await kube.create(SECRETS, objects.credentials(children[0]), manager="provider")
        for child in children:
            ready = objects.ready_child(child)
            made = await kube.apply(
                objects.CHILDREN, ready, manager="provider/status", force=True, subresource="status"
            )
            self._children[Key(key.namespace, child["metadata"]["name"])] = made
        await kube.create(SECRETS, _published(key, children[0]), manager=_MANAGER)
        self._claims[key] = await _report(kube, claim, children)
        await kube.create(EVENTS, _event(claim), manager=_MANAGER)

    async def drift(self, resources: Collection[str], key: Key) -> None:
        """Overwrite these children of a claim, then apply each as it was."""
        by_hand = objects.set_value(objects.LIMIT_PATH, objects.BY_HAND)
        for resource in resources:
            child = _child_key(key, resource)
            stored = await self._kube.json_patch(objects.CHILDREN, child, by_hand, manager="kubectl-bench")
            await self._apply(child, stored, objects.LIMIT)
        await self._report(key)
        await self._kube.create(EVENTS, _event(self._claims[key]), manager=_MANAGER)

    async def change(self, key: Key) -> None:
        """Apply both children of a claim with another value."""
        for resource in objects.RESOURCES:
            child = _child_key(key, resource)
            await self._apply(child, self._children[child], _OTHER_LIMIT)
        await self._report(key)

    async def _report(self, key: Key) -> None:
        """Write a claim's status at the version that is stored."""
        children = [self._children[_child_key(key, resource)] for resource in objects.RESOURCES]
        self._claims[key] = await _report(self._kube, self._claims[key], children)

    async def _apply(self, key: Key, stored: Object, limit: int) -> None:
        """Apply a child at the version that is stored, as the engine does."""
        meta = stored["metadata"]
        kept = {name: meta[name] for name in ("name", "namespace", "uid", "resourceVersion", "labels", "annotations")}
        settings = {**stored["spec"]["forProvider"], "connectionLimit": limit}
        child = {"apiVersion": objects.CHILDREN.api_version, "kind": objects.CHILDREN.kind, "metadata": kept}
        wanted = {**child, "spec": {"forProvider": settings}}
        self._children[key] = await self._kube.apply(objects.CHILDREN, wanted, manager=_MANAGER, force=True)


def _child_key(claim: Key, resource: str) -> Key:
    return Key(claim.namespace, f"{claim.name}-{resource}")


def _annotated(claim: Object) -> Object:
    meta = claim["metadata"]
    annotations = {"fairlead.dev/identity": f"{meta['uid']}@{meta['namespace']}/{meta['name']}"}
    kept = {name: meta[name] for name in ("name", "namespace", "uid")}
    return {
        "apiVersion": objects.CLAIMS.api_version,
        "kind": objects.CLAIMS.kind,
        "metadata": {**kept, "annotations": annotations, "finalizers": ["fairlead.dev/teardown"]},
    }


def _child(claim: Object, name: str) -> Object:
    meta = claim["metadata"]
    return {
        "apiVersion": objects.CHILDREN.api_version,
        "kind": objects.CHILDREN.kind,
        "metadata": {
            "name": f"{meta['name']}-{name}",
            "namespace": meta["namespace"],
            "labels": {"fairlead.dev/claim": meta["uid"]},
            "annotations": {"fairlead.dev/claim-name": meta["name"], "fairlead.dev/resource": name},
        },
        "spec": {
            "forProvider": {
                "databaseName": f"{meta['name']}_{name}".replace("-", "_"),
                "username": "application",
                "version": "16",
                "connectionLimit": objects.LIMIT,
                "parameters": {"work_mem": "4MB", "jit": "off"},
            }
        },
    }


def _published(key: Key, child: Object) -> Object:
    published = {**objects.credentials(child), "type": "servicebinding.io/postgresql"}
    published["metadata"] = {"name": f"{key.name}-connection", "namespace": key.namespace}
    published["stringData"] = dict.fromkeys(("host", "port", "uri", "jdbc-url", "username", "password"), "127.1.2.3")
    return published


def _event(claim: Object) -> Object:
    meta = claim["metadata"]
    regarding = {"apiVersion": claim["apiVersion"], "kind": claim["kind"], "uid": meta["uid"]}
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": f"{meta['name']}.{uuid.uuid4().hex[:16]}", "namespace": meta["namespace"]},
        "eventTime": f"{_NOW[:-1]}.000000Z",
        "reportingController": "fairlead.dev/composer",
        "reportingInstance": "floor",
        "action": "Reconcile",
        "reason": "Composed",
        "type": "Normal",
        "note": "everything composed is ready",
        "regarding": {**regarding, "namespace": meta["namespace"], "name": meta["name"]},
    }


async def _report(kube: Kube, claim: Object, children: list[Object]) -> Object:
    reason = {"reason": "Available", "message": "everything composed is ready", "lastTransitionTime": _NOW}
    conditions = [{"type": kind, "status": "True", **reason} for kind in ("Ready", "Synced")]
    inventory = [
        {
            "resource": child["metadata"]["annotations"]["fairlead.dev/resource"],
            "apiVersion": objects.CHILDREN.api_version,
            "kind": objects.CHILDREN.kind,
            "name": child["metadata"]["name"],
            "uid": uid_of(child),
            # What was desired is another thing after each change.
            "desired": f"{int(child['metadata']['generation']):064d}",
            "live": _INVENTORY_PADDING,
        }
        for child in children
    ]
    status = {"observedGeneration": 1, "conditions": conditions, "inventory": inventory}
    made = await write_status(kube, objects.CLAIMS, claim, status, manager=f"{_MANAGER}/status")
    return made or claim


_NOW: Final = "2026-01-01T00:00:00Z"


async def _run(kubeconfig: Path, keys: list[Key]) -> None:
    kube = await KubeClient.connect(user_agent="bench-floor", kubeconfig=kubeconfig)
    sender = Sender(kube)
    phases: dict[str, Callable[[Key], Awaitable[None]]] = {
        "create": sender.create,
        "drift-one": partial(sender.drift, objects.RESOURCES[:1]),
        "drift-both": partial(sender.drift, objects.RESOURCES),
        "change": sender.change,
    }
    try:
        print("ready", flush=True)
        while phase := (await asyncio.to_thread(sys.stdin.readline)).strip():
            began = time.monotonic()
            await in_parallel([partial(phases[phase], key) for key in keys], at_once=_AT_ONCE)
            print(f"{time.monotonic() - began:.3f}", flush=True)
    finally:
        await kube.close()


def main() -> None:
    """Send what the lines of standard input name, and print the seconds that each took."""
    kubeconfig, namespace, first, count = sys.argv[1:]
    keys = [Key(namespace, f"floor-{number}") for number in range(int(first), int(first) + int(count))]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(Path(kubeconfig), keys))


if __name__ == "__main__":
    main()
