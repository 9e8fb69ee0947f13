"""What a claim used once, was refused once, or lost sight of holds neither its edits nor its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.api import JsonObject
from tests.support.kinds import (
    CLAIM,
    CLUSTER_ROLE,
    COMPOSITION,
    CONFIG_MAP,
    CRD,
    claim,
    composition,
    condition,
    in_trouble,
    is_ready,
)
from tests.support.second_api import SecondApi
from tests.support.shared import USUAL, at_work
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_UP = {"type": "Ready", "status": "True", "reason": "Up", "message": "up"}


@asynccontextmanager
async def _composer_away(system: System) -> AsyncIterator[None]:
    """Have no composer for the length of a block."""
    for program in at_work(system, "composer"):
        await program.kill9()
    try:
        yield
    finally:
        await system.start_composer(*USUAL["composer"])


def _settings(value: str, *, name: str = "settings", **fields: Any) -> JsonObject:
    template = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": value}}
    return {"name": name, "template": template, **fields}


# A refused write


async def test_a_child_that_refuses_an_edit_is_made_anew_once_it_is_deleted(composing: System, namespace: str) -> None:
    fixed = _settings("{{ claim.spec.size }}")
    fixed["template"]["immutable"] = True
    async with composing.composition(composition(f"{namespace}-c", fixed)) as name:
        await composing.create(CLAIM, claim(namespace, "refused", compositionRef={"name": name}))
        await composing.until(CLAIM, namespace, "refused", is_ready)
        (child,) = await composing.children(namespace, "refused")

        await composing.edit(CLAIM, namespace, "refused", {"spec": {"size": "medium"}})
        await composing.until(CLAIM, namespace, "refused", in_trouble("InvalidValue"))
        await composing.api.delete(CONFIG_MAP.path(namespace, child["metadata"]["name"]))

        await composing.until(CLAIM, namespace, "refused", is_ready)
        (made,) = await composing.children(namespace, "refused")
        assert made["data"] == {"value": "medium"}
        assert made["metadata"]["uid"] != child["metadata"]["uid"]
        await composing.delete(CLAIM, namespace, "refused")


# A kind of another operator


def _node_crd(api: SecondApi, *, stateful: str, served: bool = True) -> JsonObject:
    crd = api.node_crd(composable="true", zone={"type": "string"})
    crd["metadata"]["labels"]["fairlead.dev/stateful"] = stateful
    (version,) = crd["spec"]["versions"]
    # As the CRDs of CloudNativePG and Zalando have it.
    version["schema"]["openAPIV3Schema"]["required"] = ["apiVersion", "kind", "metadata", "spec"]
    version["served"] = served
    return crd


@asynccontextmanager
async def _node_claim(system: System, namespace: str, *, stateful: str, **spec: Any) -> AsyncIterator[SecondApi]:
    """Have a Composition of a ConfigMap and a node of another operator's kind."""
    api, name = SecondApi(f"{namespace}.example.org"), f"{namespace}-c"
    await system.apply(CLUSTER_ROLE, api.role())
    await system.apply(CRD, api.cache_crd())
    await system.apply(CRD, _node_crd(api, stateful=stateful))
    for kind in (api.cache, api.node):
        await system.api.until_served(kind.path())
    await system.create(COMPOSITION, api.composition(name, appliesTo={}, **spec))
    await system.until(COMPOSITION, "", name, is_ready)
    yield api
    await system.api.delete(COMPOSITION.path("", name))


async def _comes_up(system: System, api: SecondApi, namespace: str) -> JsonObject:
    """Let the operator say that the node is up; return the claim once it is Ready."""

    async def there() -> JsonObject | None:
        return next(iter(await system.api.items(api.node.path(namespace))), None)

    node = await eventually(there, "the node is made")
    path = api.node.path(namespace, node["metadata"]["name"], "status")
    await system.api.merge(path, {"status": {"conditions": [_UP]}})
    return await system.until(api.cache, namespace, "orders", is_ready)


async def test_a_claim_waits_for_a_kind_that_is_not_served_while_it_goes(composing: System, namespace: str) -> None:
    system = composing
    async with _node_claim(system, namespace, stateful="true", deletionPolicies=["Orphan", "Delete"]) as api:
        path, spec = api.cache.path(namespace, "orders"), {"memoryMB": 64, "deletionPolicy": "Delete"}
        await system.create(api.cache, api.cache.new(namespace, "orders", spec=spec))
        await _comes_up(system, api, namespace)
        await system.apply(CRD, _node_crd(api, stateful="true", served=False))
        await system.until(api.cache, namespace, "orders", in_trouble("KindNotInstalled"))

        await system.api.delete(path)

        def held(obj: JsonObject) -> bool:
            return "deletionTimestamp" in obj["metadata"] and in_trouble("KindNotInstalled")(obj)

        obj = await system.until(api.cache, namespace, "orders", held)
        assert "is not served" in condition(obj, "Synced")["message"]
        await system.at_rest(for_s=1.0)
        assert await system.api.find(path) is not None
        await system.apply(CRD, _node_crd(api, stateful="true"))
        await system.api.until_served(api.node.path())
        await system.api.until_gone(path)
        assert await system.api.items(api.node.path(namespace)) == []


async def test_snapshot_is_not_offered_for_what_nobody_can_back_up_and_nothing_goes_under_it(
    composing: System, namespace: str
) -> None:
    system, policies = composing, ["Orphan", "Snapshot", "Delete"]
    async with _node_claim(system, namespace, stateful="false", deletionPolicies=policies) as api:
        path, spec = api.cache.path(namespace, "orders"), {"memoryMB": 64, "deletionPolicy": "Snapshot"}
        await system.create(api.cache, api.cache.new(namespace, "orders", spec=spec))
        await _comes_up(system, api, namespace)
        await system.apply(CRD, _node_crd(api, stateful="true"))
        refused = await system.until(COMPOSITION, "", f"{namespace}-c", in_trouble("BackupImpossible"))
        assert "Snapshot cannot be offered" in condition(refused, "Stalled")["message"]

        await system.api.delete(path)
        held = await system.until(api.cache, namespace, "orders", in_trouble("BackupImpossible"))
        assert "set spec.deletionPolicy to Orphan" in condition(held, "Stalled")["message"]
        await system.at_rest(for_s=1.0)
        (node,) = await system.api.items(api.node.path(namespace))
        assert "deletionTimestamp" not in node["metadata"]
        await system.edit(api.cache, namespace, "orders", {"spec": {"deletionPolicy": "Orphan"}})
        await system.api.until_gone(path)
        (left,) = await system.api.items(api.node.path(namespace))
        assert "deletionTimestamp" not in left["metadata"]


# An apply that nobody remembers


async def test_an_object_whose_apply_was_not_recorded_is_deleted(composing: System, namespace: str) -> None:
    """As after a kill between the apply of an edit and the status that records it, and the edit's withdrawal."""
    async with _node_claim(composing, namespace, stateful="false") as api:
        await composing.create(api.cache, api.cache.new(namespace, "orders", spec={"memoryMB": 64}))
        await _comes_up(composing, api, namespace)
        (node,) = await composing.api.items(api.node.path(namespace))
        (settings,) = [
            obj
            for obj in await composing.api.items(CONFIG_MAP.path(namespace))
            if "fairlead.dev/claim" in obj["metadata"].get("labels", {})
        ]
        (manager,) = {fields["manager"] for fields in settings["metadata"]["managedFields"]}
        async with _composer_away(composing):
            for kind, child, content in (
                (api.node, node, {"spec": {**node["spec"], "zone": "b"}}),
                (CONFIG_MAP, settings, {"data": {**settings["data"], "zone": "b"}}),
            ):
                name = child["metadata"]["name"]
                body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, **content}
                await composing.api.apply(kind.path(namespace, name), body, manager=manager)

        async def is_as_asked() -> bool:
            objects = [
                await composing.api.get(kind.path(namespace, child["metadata"]["name"]))
                for kind, child in ((api.node, node), (CONFIG_MAP, settings))
            ]
            return [objects[0]["spec"], objects[1]["data"]] == [node["spec"], settings["data"]]

        await eventually(is_as_asked, "both children are as the claim asks")
        await composing.delete(api.cache, namespace, "orders")
