"""Steps of tests about rollouts: claims of one Composition whose content is edited, and what their children hold."""

from __future__ import annotations

from typing import Any

from tests.support.api import JsonObject
from tests.support.kinds import CLAIM, COMPOSITION, CONFIG_MAP, claim, is_ready
from tests.support.system import System
from tests.support.waiting import eventually

CLAIMS = ("one", "two", "three", "four")


def config(value: str, *, key: str = "value", name: str = "settings", **fields: Any) -> JsonObject:
    """Return a resource; a key with a blank is what only the API server refuses."""
    return {"name": name, "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": {key: value}}, **fields}


def waves(*sizes: str, **rules: Any) -> JsonObject:
    """Return rules for a rollout in waves of these sizes."""
    return {"waves": list(sizes), "soakSeconds": 0, **rules}


async def create_claims(system: System, namespace: str, composition_name: str, *names: str) -> None:
    """Create claims of a Composition, and wait until all are Ready."""
    await system.until(COMPOSITION, "", composition_name, is_ready)
    for name in names:
        await system.create(CLAIM, claim(namespace, name, compositionRef={"name": composition_name}))
    for name in names:
        await system.until(CLAIM, namespace, name, is_ready)


async def change(system: System, body: JsonObject) -> None:
    """Edit a Composition so that it has this content."""
    await system.api.merge(COMPOSITION.path("", body["metadata"]["name"]), {"spec": body["spec"]})


async def values(system: System, namespace: str) -> list[str]:
    """Return what the claims' children hold, in order."""
    children = await system.api.items(CONFIG_MAP.path(namespace))
    return sorted(
        str(value)
        for child in children
        if "fairlead.dev/claim" in child["metadata"].get("labels", {})
        for value in child.get("data", {}).values()
    )


async def until_values(system: System, namespace: str, *expected: str) -> None:
    """Wait until the claims' children hold these values, and no other."""

    async def holds() -> bool:
        return await values(system, namespace) == sorted(expected)

    await eventually(holds, f"children with {expected}")
