"""Data of another operator's kinds: never replaced, never released without consent, whatever is lost or deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.api import JsonObject
from tests.support.audit import WRITES, Match
from tests.support.kinds import CLUSTER_ROLE, COMPOSITION, CRD, condition, in_trouble, is_ready
from tests.support.second_api import SecondApi
from tests.support.system import COMPOSER, System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_LIMIT_S = 120.0
_UP = {"type": "Ready", "status": "True", "reason": "Up", "message": "up"}
_FINALIZER = "fairlead.dev/teardown"
# As the CRDs of CloudNativePG and Zalando have it.
_REQUIRED = ["apiVersion", "kind", "metadata", "spec"]


def _node_crd(api: SecondApi, *, stateful: str = "true", served: bool = True) -> JsonObject:
    crd = api.node_crd(composable="true")
    crd["metadata"]["labels"]["fairlead.dev/stateful"] = stateful
    (version,) = crd["spec"]["versions"]
    version["schema"]["openAPIV3Schema"]["required"] = _REQUIRED
    version["served"] = served
    return crd


@asynccontextmanager
async def _at_home(
    system: System, namespace: str, *, stateful: str = "true", **spec: Any
) -> AsyncIterator[tuple[SecondApi, str]]:
    """Have a claim `orders` of a kind of the test's own that composed a node of another operator's kind, Ready."""
    api, name = SecondApi(f"{namespace}.example.org"), f"{namespace}-c"
    await system.apply(CLUSTER_ROLE, api.role())
    await system.apply(CRD, api.cache_crd())
    await system.apply(CRD, _node_crd(api, stateful=stateful))
    for kind in (api.cache, api.node):
        await system.api.until_served(kind.path())
    await system.create(COMPOSITION, api.composition(name, appliesTo={}, **spec))
    await system.until(COMPOSITION, "", name, is_ready, limit_s=_LIMIT_S)
    await system.create(api.cache, api.cache.new(namespace, "orders", spec={"memoryMB": 64}))
    await _comes_up(system, api, namespace)
    yield api, name
    await system.api.delete(COMPOSITION.path("", name))


async def _comes_up(system: System, api: SecondApi, namespace: str, *, former: str = "") -> JsonObject:
    """Let the operator of a node other than the former one say that it is up; return the claim once it is Ready."""

    async def there() -> JsonObject | None:
        nodes = await system.api.items(api.node.path(namespace))
        return next((node for node in nodes if node["metadata"]["uid"] != former), None)

    node = await eventually(there, "the node is made", limit_s=_LIMIT_S)
    path = api.node.path(namespace, node["metadata"]["name"], "status")
    await system.api.merge(path, {"status": {"conditions": [_UP]}})
    return await system.until(api.cache, namespace, "orders", is_ready, limit_s=_LIMIT_S)


async def _node(system: System, api: SecondApi, namespace: str) -> JsonObject:
    (node,) = await system.api.items(api.node.path(namespace))
    return node


async def _consent(system: System, api: SecondApi, namespace: str, consent: str) -> None:
    path = api.cache.path(namespace, "orders")
    await system.api.merge(path, {"metadata": {"annotations": {"fairlead.dev/consent": consent}}})


def _not_ready(reason: str) -> Callable[[JsonObject], bool]:
    def holds(obj: JsonObject) -> bool:
        conditions = [condition(obj, type_) for type_ in ("Ready", "Stalled")]
        return [(entry.get("status"), entry.get("reason")) for entry in conditions] == [
            ("False", reason),
            ("True", reason),
        ]

    return holds


async def test_a_foreign_database_that_somebody_deletes_is_not_replaced_by_an_empty_one(
    composing: System, namespace: str
) -> None:
    system = composing
    async with _at_home(system, namespace) as (api, _):
        node = await _node(system, api, namespace)
        name, uid = node["metadata"]["name"], node["metadata"]["uid"]
        audit = system.audit()

        await system.api.delete(api.node.path(namespace, name))
        held = await system.until(api.cache, namespace, "orders", _not_ready("HeldDeletion"), limit_s=_LIMIT_S)
        assert f"fairlead.dev/consent=node={uid}" in condition(held, "Stalled")["message"]
        await system.at_rest(for_s=2.0)
        assert (await _node(system, api, namespace))["metadata"]["finalizers"] == [_FINALIZER]

        # By force it goes all the same, and it is reported lost.
        await system.api.merge(api.node.path(namespace, name), {"metadata": {"finalizers": []}})
        lost = await system.until(api.cache, namespace, "orders", _not_ready("DatabaseLost"), limit_s=_LIMIT_S)
        assert f"fairlead.dev/consent=node={uid}" in condition(lost, "Stalled")["message"]
        await system.at_rest(for_s=2.0)
        assert await system.api.items(api.node.path(namespace)) == []
        assert audit.count(Match(user=COMPOSER, verbs=WRITES, resource="nodes", namespace=namespace)) == 0

        await _consent(system, api, namespace, f"node={uid}")
        await _comes_up(system, api, namespace, former=uid)
        again = await _node(system, api, namespace)
        assert again["metadata"]["uid"] != uid

        # The consent is used up: it is for the object that is gone.
        await system.api.delete(api.node.path(namespace, name))
        await system.until(api.cache, namespace, "orders", _not_ready("HeldDeletion"), limit_s=_LIMIT_S)
        await _consent(system, api, namespace, f"node={again['metadata']['uid']}")
        await _comes_up(system, api, namespace, former=again["metadata"]["uid"])
        assert (await _node(system, api, namespace))["metadata"]["uid"] != again["metadata"]["uid"]
        await system.delete(api.cache, namespace, "orders")


async def test_snapshot_is_not_offered_for_what_nobody_can_back_up_and_nothing_goes_under_it(
    composing: System, namespace: str
) -> None:
    system, policies = composing, ["Orphan", "Snapshot", "Delete"]
    async with _at_home(system, namespace, stateful="false", deletionPolicies=policies) as (api, name):
        await system.edit(api.cache, namespace, "orders", {"spec": {"deletionPolicy": "Snapshot"}})
        await system.until(api.cache, namespace, "orders", is_ready, limit_s=_LIMIT_S)
        await system.apply(CRD, _node_crd(api, stateful="true"))
        refused = await system.until(COMPOSITION, "", name, in_trouble("BackupImpossible"), limit_s=_LIMIT_S)
        assert "Snapshot cannot be offered" in condition(refused, "Stalled")["message"]

        await system.api.delete(api.cache.path(namespace, "orders"))
        held = await system.until(api.cache, namespace, "orders", in_trouble("BackupImpossible"), limit_s=_LIMIT_S)
        assert "set spec.deletionPolicy to Orphan" in condition(held, "Stalled")["message"]
        await system.at_rest(for_s=2.0)
        children = await system.api.items(api.node.path(namespace))
        assert [("deletionTimestamp" in child["metadata"]) for child in children] == [False]

        await system.edit(api.cache, namespace, "orders", {"spec": {"deletionPolicy": "Orphan"}})
        await system.api.until_gone(api.cache.path(namespace, "orders"))
        assert "deletionTimestamp" not in (await _node(system, api, namespace))["metadata"]


async def test_a_claim_waits_for_a_kind_that_is_not_served_while_it_goes(composing: System, namespace: str) -> None:
    system = composing
    async with _at_home(system, namespace, deletionPolicies=["Orphan", "Delete"]) as (api, _):
        await system.edit(api.cache, namespace, "orders", {"spec": {"deletionPolicy": "Delete"}})
        await system.until(api.cache, namespace, "orders", is_ready, limit_s=_LIMIT_S)
        await system.apply(CRD, _node_crd(api, served=False))
        await system.until(api.cache, namespace, "orders", in_trouble("KindNotInstalled"), limit_s=_LIMIT_S)

        await system.api.delete(api.cache.path(namespace, "orders"))

        def held(obj: JsonObject) -> bool:
            return "deletionTimestamp" in obj["metadata"] and in_trouble("KindNotInstalled")(obj)

        obj = await system.until(api.cache, namespace, "orders", held, limit_s=_LIMIT_S)
        assert "is not served" in condition(obj, "Synced")["message"]
        await system.at_rest(for_s=2.0)
        assert await system.api.find(api.cache.path(namespace, "orders")) is not None

        await system.apply(CRD, _node_crd(api))
        await system.api.until_served(api.node.path())
        await system.api.until_gone(api.cache.path(namespace, "orders"))
        assert await system.api.items(api.node.path(namespace)) == []
