"""The floor of the engine's benchmark: the writes that a claim costs everybody, sent raw, by nobody who thinks.

A program of its own, since one process cannot send fast enough: `python -m benchmarks.engine_floor KUBECONFIG NAMESPACE
FIRST COUNT`. For each claim: its creation; the engine's six writes and one read of a Secret; the provider's two reports
and Secret. It begins with the first line of its standard input, so that several begin together, and prints the seconds.
"""

from __future__ import annotations

import asyncio
import sys
import time
from functools import partial
from pathlib import Path
from typing import Final

import uvloop

from benchmarks import engine_objects as objects
from benchmarks.engine_load import in_parallel
from runtime.kube import Kube
from runtime.kube_client import KubeClient
from runtime.objects import SECRETS, Key, Object, uid_of
from runtime.status import write_status

_AT_ONCE: Final = 24
_MANAGER: Final = "fairlead.dev/0123456789abcdef"
_INVENTORY_PADDING: Final = "0" * 64


async def one_claim(kube: Kube, key: Key) -> None:
    """Send all that one claim costs, in the order in which it must be."""
    claim = await kube.create(objects.CLAIMS, objects.claim(key), manager="kubectl-bench")
    claim = await kube.apply(objects.CLAIMS, _annotated(claim), manager=_MANAGER, force=True)
    children = await asyncio.gather(*(kube.create(objects.CHILDREN, _child(claim, name), manager=_MANAGER)
                                      for name in objects.RESOURCES))  # fmt: skip
    claim = await _report(kube, claim, children, "False")
    secret = await kube.create(SECRETS, objects.credentials(children[0]), manager="provider")
    for child in children:
        await kube.apply(
            objects.CHILDREN, objects.ready_child(child), manager="provider/status", force=True, subresource="status"
        )
    await kube.get(SECRETS, Key(key.namespace, secret["metadata"]["name"]))
    published = {**objects.credentials(children[0]), "type": "servicebinding.io/postgresql"}
    published["metadata"] = {"name": f"{key.name}-connection", "namespace": key.namespace}
    published["stringData"] = dict.fromkeys(("host", "port", "uri", "jdbc-url", "username", "password"), "127.1.2.3")
    await kube.create(SECRETS, published, manager=_MANAGER)
    await _report(kube, claim, children, "True")


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


async def _report(kube: Kube, claim: Object, children: list[Object], ready: str) -> Object:
    reason = {"reason": "Available", "message": "everything composed is ready", "lastTransitionTime": _NOW}
    conditions = [{"type": kind, "status": ready, **reason} for kind in ("Ready", "Synced")]
    inventory = [
        {
            "resource": child["metadata"]["annotations"]["fairlead.dev/resource"],
            "apiVersion": objects.CHILDREN.api_version,
            "kind": objects.CHILDREN.kind,
            "name": child["metadata"]["name"],
            "uid": uid_of(child),
            "desired": _INVENTORY_PADDING,
            "live": _INVENTORY_PADDING,
        }
        for child in children
    ]
    status = {"observedGeneration": 1, "conditions": conditions, "inventory": inventory}
    made = await write_status(kube, objects.CLAIMS, claim, status, manager=f"{_MANAGER}/status")
    return made or claim


_NOW: Final = "2026-01-01T00:00:00Z"


async def _run(kubeconfig: Path, namespace: str, first: int, count: int) -> float:
    kube = await KubeClient.connect(user_agent="bench-floor", kubeconfig=kubeconfig)
    try:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        began = time.monotonic()
        keys = [Key(namespace, f"floor-{number}") for number in range(first, first + count)]
        await in_parallel([partial(one_claim, kube, key) for key in keys], at_once=_AT_ONCE)
        return time.monotonic() - began
    finally:
        await kube.close()


def main() -> None:
    """Send, and print the seconds it took."""
    kubeconfig, namespace, first, count = sys.argv[1:]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(f"{runner.run(_run(Path(kubeconfig), namespace, int(first), int(count))):.3f}", flush=True)


if __name__ == "__main__":
    main()
