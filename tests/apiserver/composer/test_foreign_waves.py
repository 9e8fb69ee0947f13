"""In which order children of foreign kinds that hold data go, on a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.api import JsonObject
from tests.support.kinds import (
    CLAIM,
    CONFIG_MAP,
    claim,
    composition,
    condition,
    in_trouble,
    is_ready,
)
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


def _settings(name: str = "settings", size: str = "{{ claim.spec.size }}", **fields: Any) -> JsonObject:
    return {"name": name, "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"size": size}}, **fields}


async def _ready(system: System, namespace: str, name: str, **spec: Any) -> JsonObject:
    await system.create(CLAIM, claim(namespace, name, **spec))
    return await system.until(CLAIM, namespace, name, is_ready)


async def test_foreign_children_with_data_go_in_waves_by_policy_and_stay_without(
    composing: System, namespace: str
) -> None:
    """Foreground deletion has the collector take all dependents at once: what holds data is none of its business."""
    first, second = _settings("first", stateful=True), _settings("second", stateful=True, dependsOn=["first"])
    made = composition(f"{namespace}-c", first, second)
    async with composing.composition(made) as name:
        for policy in ("Delete", "Orphan"):
            body = {"deletionPolicy": policy, "compositionRef": {"name": name}}
            await _ready(composing, namespace, policy.lower(), **body)
        children = {policy: await _by_resource(composing, namespace, policy) for policy in ("delete", "orphan")}
        for child in (child for of_resource in children.values() for child in of_resource.values()):
            assert child["metadata"]["finalizers"] == ["fairlead.dev/teardown"]
            assert "ownerReferences" not in child["metadata"]
        kept, going = children["delete"]["first"], children["delete"]["second"]
        held_by = {"metadata": {"finalizers": ["fairlead.dev/teardown", "example.org/hold"]}}
        await composing.api.merge(CONFIG_MAP.path(namespace, going["metadata"]["name"]), held_by)

        for policy in children:
            await composing.api.delete(CLAIM.path(namespace, policy), propagation="Foreground")

        await composing.api.until_gone(CLAIM.path(namespace, "orphan"))
        for child in children["orphan"].values():
            left = await composing.api.get(CONFIG_MAP.path(namespace, child["metadata"]["name"]))
            assert left["data"] == {"size": "small"}
            assert "finalizers" not in left["metadata"]
            assert "fairlead.dev/claim" not in left["metadata"].get("labels", {})
        held = await composing.until(CLAIM, namespace, "delete", in_trouble("DeleteBlocked"))
        message = condition(held, "Synced")["message"]
        assert f"ConfigMap {going['metadata']['name']} is held by finalizer example.org/hold since 20" in message
        waits = await composing.api.get(CONFIG_MAP.path(namespace, kept["metadata"]["name"]))
        assert "deletionTimestamp" not in waits["metadata"]

        released = {"metadata": {"finalizers": None}}
        await composing.api.merge(CONFIG_MAP.path(namespace, going["metadata"]["name"]), released)
        await composing.api.until_gone(CLAIM.path(namespace, "delete"))
        assert await composing.api.find(CONFIG_MAP.path(namespace, kept["metadata"]["name"])) is None


async def _by_resource(system: System, namespace: str, name: str) -> dict[str, JsonObject]:
    children = await system.children(namespace, name)
    return {child["metadata"]["annotations"]["fairlead.dev/resource"]: child for child in children}
