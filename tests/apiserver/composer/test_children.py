"""What a composer does to the children of its claims, and what it leaves alone, on a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.api import JsonObject
from tests.support.audit import WRITES, Match
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    EVENT,
    REVISION,
    claim,
    composition,
    condition,
    in_trouble,
    is_ready,
)
from tests.support.system import COMPOSER, System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


def _settings(name: str = "settings", size: str = "{{ claim.spec.size }}", **fields: Any) -> JsonObject:
    return {"name": name, "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"size": size}}, **fields}


async def _ready(system: System, namespace: str, name: str, **spec: Any) -> JsonObject:
    await system.create(CLAIM, claim(namespace, name, **spec))
    return await system.until(CLAIM, namespace, name, is_ready)


async def _child(system: System, namespace: str, name: str) -> JsonObject:
    (child,) = await system.children(namespace, name)
    return child


async def test_a_pinned_claim_stays_on_its_revision(composing: System, namespace: str) -> None:
    async with composing.composition(composition(f"{namespace}-c", _settings(size="one"))) as name:
        first = await _ready(composing, namespace, "pinned", compositionRef={"name": name})
        revision = first["status"]["composition"]["revision"]
        await composing.edit(CLAIM, namespace, "pinned", {"spec": {"compositionRevisionRef": {"name": revision}}})
        await _ready(composing, namespace, "follows", compositionRef={"name": name})
        await composing.api.merge(
            COMPOSITION.path("", name), {"spec": composition(name, _settings(size="two"))["spec"]}
        )

        def on_two(obj: JsonObject) -> bool:
            return bool(obj["status"]["composition"]["revision"] != revision) and is_ready(obj)

        await composing.until(CLAIM, namespace, "follows", on_two)
        assert (await _child(composing, namespace, "pinned"))["data"] == {"size": "one"}
        assert (await _child(composing, namespace, "follows"))["data"] == {"size": "two"}

        pinned = {"compositionRef": {"name": name}, "compositionRevisionRef": {"name": revision}}
        await composing.create(CLAIM, claim(namespace, "lax", **pinned))
        refused = await composing.until(CLAIM, namespace, "lax", in_trouble("InvalidValue"))
        assert "this claim never had" in condition(refused, "Synced")["message"]
        assert await composing.children(namespace, "lax") == []
        await composing.delete(CLAIM, namespace, "lax")

        await composing.edit(CLAIM, namespace, "pinned", {"spec": {"compositionRevisionRef": None}})
        await composing.until(CLAIM, namespace, "pinned", on_two)

        # Content that was there before is its old revision under a new number.
        await composing.api.merge(
            COMPOSITION.path("", name), {"spec": composition(name, _settings(size="one"))["spec"]}
        )
        await composing.until(
            CLAIM, namespace, "follows", lambda obj: bool(obj["status"]["composition"]["revision"] == revision)
        )
        revisions = [
            revision
            for revision in await composing.api.items(REVISION.path())
            if revision["spec"]["compositionName"] == name
        ]
        assert sorted(revision["spec"]["revision"] for revision in revisions) == [2, 3]
        await composing.delete(CLAIM, namespace, "pinned")
        await composing.delete(CLAIM, namespace, "follows")


async def test_a_composition_in_use_is_held_with_the_count(composing: System, namespace: str) -> None:
    name = f"{namespace}-c"
    await composing.create(COMPOSITION, composition(name, _settings()))
    await _ready(composing, namespace, "user", compositionRef={"name": name})
    await composing.api.delete(COMPOSITION.path("", name))

    held = await composing.until(COMPOSITION, "", name, in_trouble("InUse"))
    assert "1 claim" in condition(held, "Synced")["message"]

    await composing.delete(CLAIM, namespace, "user")
    await composing.api.until_gone(COMPOSITION.path("", name))


async def test_a_pending_resource_is_shown_and_made_when_it_can_be(composing: System, namespace: str) -> None:
    ready = "{{ claim.spec.size == 'large' }}"
    body = composition(f"{namespace}-c", _settings("a", readyWhen=ready), _settings("b", dependsOn=["a"]))
    async with composing.composition(body) as name:
        await composing.create(CLAIM, claim(namespace, "waits", compositionRef={"name": name}))
        pending = await composing.until(CLAIM, namespace, "waits", in_trouble("ResourcePending"))
        assert "'b' waits for resource 'a'" in condition(pending, "Synced")["message"]
        assert len(await composing.children(namespace, "waits")) == 1
        await composing.edit(CLAIM, namespace, "waits", {"spec": {"size": "large"}})
        await composing.until(CLAIM, namespace, "waits", is_ready)
        assert len(await composing.children(namespace, "waits")) == 2
        await composing.delete(CLAIM, namespace, "waits")


async def test_a_requested_pass_at_rest_writes_only_its_echo(composing: System, namespace: str) -> None:
    async with composing.composition(composition(f"{namespace}-c", _settings())) as name:
        await _ready(composing, namespace, "asked", compositionRef={"name": name})
        await composing.at_rest(for_s=1.0)
        audit = composing.audit()
        await composing.ask_for_a_pass(CLAIM, namespace, "asked")
        await composing.at_rest(for_s=1.0)
        writes = audit.requests(Match(user=COMPOSER, verbs=WRITES))
        assert [(request.resource, request.subresource) for request in writes] == [("postgresqlinstances", "status")]
        reasons = [event["reason"] for event in await composing.api.items(EVENT.path(namespace))]
        assert reasons == ["ChildCreated"]
        await composing.delete(CLAIM, namespace, "asked")
