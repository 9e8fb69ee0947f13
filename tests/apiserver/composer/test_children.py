"""What a composer does to the children of its claims, and what it leaves alone, on a real API server."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from tests.support.api import JsonObject
from tests.support.audit import WRITES, Match
from tests.support.grants import allow_composer
from tests.support.kinds import (
    CLAIM,
    CLUSTER_ROLE,
    COMPOSITION,
    CONFIG_MAP,
    DATABASE,
    EVENT,
    REVISION,
    claim,
    composition,
    condition,
    in_trouble,
    is_ready,
)
from tests.support.system import COMPOSER, System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


def _settings(name: str = "settings", size: str = "{{ claim.spec.size }}", **fields: Any) -> JsonObject:
    return {"name": name, "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"size": size}}, **fields}


async def _ready(system: System, namespace: str, name: str, **spec: Any) -> JsonObject:
    await system.create(CLAIM, claim(namespace, name, **spec))
    return await system.until(CLAIM, namespace, name, is_ready)


async def _child(system: System, namespace: str, name: str) -> JsonObject:
    (child,) = await system.children(namespace, name)
    return child


async def _annotate(system: System, namespace: str, name: str, **annotations: str | None) -> None:
    named = {f"fairlead.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    await system.edit(CLAIM, namespace, name, {"metadata": {"annotations": named}})


async def test_a_paused_claim_changes_nothing_and_its_children_know_it(composing: System, namespace: str) -> None:
    async with composing.composition(composition(f"{namespace}-c", _settings())) as name:
        await _ready(composing, namespace, "paused", compositionRef={"name": name})
        await _annotate(composing, namespace, "paused", paused="true", paused_reason="audit week")
        paused = await composing.until(CLAIM, namespace, "paused", in_trouble("Paused"))
        assert "audit week" in condition(paused, "Synced")["message"]
        assert condition(paused, "Ready")["status"] == "True"
        child = await _child(composing, namespace, "paused")
        assert child["metadata"]["annotations"]["fairlead.dev/paused"] == "true"

        await composing.edit(CLAIM, namespace, "paused", {"spec": {"size": "large"}})
        await composing.until(CLAIM, namespace, "paused", in_trouble("Paused"))
        await composing.at_rest(for_s=1.0)
        assert (await _child(composing, namespace, "paused"))["data"] == {"size": "small"}

        await _annotate(composing, namespace, "paused", paused=None, paused_reason=None)
        await composing.until(CLAIM, namespace, "paused", is_ready)

        async def follows() -> bool:
            child = await _child(composing, namespace, "paused")
            is_paused = "fairlead.dev/paused" in child["metadata"]["annotations"]
            return bool(child["data"] == {"size": "large"}) and not is_paused

        await eventually(follows, "the child follows again")


async def test_a_request_for_a_pass_reaches_what_a_provider_serves_by_one_write_for_each_token(
    composing: System, namespace: str
) -> None:
    template = {
        "apiVersion": DATABASE.api_version,
        "kind": DATABASE.kind,
        "spec": {"forProvider": {"databaseName": "app", "username": "app"}},
    }
    body = composition(f"{namespace}-c", {"name": "database", "template": template}, _settings())
    async with composing.composition(body) as name:
        await composing.create(CLAIM, claim(namespace, "asked", deletionPolicy="Orphan", compositionRef={"name": name}))
        await composing.until(CLAIM, namespace, "asked", lambda obj: len(obj["status"].get("inventory", ())) == 2)
        await composing.at_rest(for_s=1.0)
        audit = composing.audit()
        child = next(child for child in await composing.children(namespace, "asked") if child["kind"] == DATABASE.kind)
        for token in ("monday", "tuesday"):
            await _annotate(composing, namespace, "asked", reconcile_requested_at=token)

            def has_answered(obj: JsonObject, token: str = token) -> bool:
                return bool(obj["status"].get("lastHandledReconcileAt") == token)

            await composing.until(CLAIM, namespace, "asked", has_answered)
            metadata = {child["kind"]: child["metadata"] for child in await composing.children(namespace, "asked")}
            assert metadata[DATABASE.kind]["annotations"]["fairlead.dev/reconcile-requested-at"] == token
            assert "fairlead.dev/reconcile-requested-at" not in metadata["ConfigMap"]["annotations"]
        await composing.at_rest(for_s=1.0)
        writes = audit.requests(Match(user=COMPOSER, verbs=WRITES, namespace=namespace))
        assert [request.name for request in writes] == [child["metadata"]["name"], "asked"] * 2
        await composing.delete(CLAIM, namespace, "asked")


async def test_resources_that_leave_the_composition_go_and_most_of_them_not_at_once(
    composing: System, namespace: str
) -> None:
    name = f"{namespace}-c"
    whole = composition(name, *(_settings(letter) for letter in ("a", "b", "c", "d")))
    await composing.create(COMPOSITION, whole)
    await _ready(composing, namespace, "pruned", compositionRef={"name": name})
    await composing.api.merge(COMPOSITION.path("", name), {"spec": composition(name, *map(_settings, "abc"))["spec"]})

    async def resources() -> list[str]:
        children = await composing.children(namespace, "pruned")
        return sorted(child["metadata"]["annotations"]["fairlead.dev/resource"] for child in children)

    async def three_are_left() -> bool:
        return await resources() == ["a", "b", "c"]

    await eventually(three_are_left, "d goes")
    await composing.until(CLAIM, namespace, "pruned", is_ready)

    await composing.api.merge(COMPOSITION.path("", name), {"spec": composition(name, _settings("a"))["spec"]})
    held = await composing.until(CLAIM, namespace, "pruned", in_trouble("HeldDeletion"))
    assert condition(held, "Ready")["status"] == "True"
    assert await resources() == ["a", "b", "c"]

    uids = {
        child["metadata"]["annotations"]["fairlead.dev/resource"]: child["metadata"]["uid"]
        for child in await composing.children(namespace, "pruned")
    }
    await _annotate(composing, namespace, "pruned", consent=f"b={uids['b']},c={uids['c']}")
    await composing.until(CLAIM, namespace, "pruned", is_ready)
    assert await resources() == ["a"]
    await composing.delete(CLAIM, namespace, "pruned")
    await composing.api.delete(COMPOSITION.path("", name))


async def test_a_missing_environment_is_named_and_taken_when_it_comes(composing: System, namespace: str) -> None:
    body = composition(f"{namespace}-c", _settings(size="{{ env.region.zone }}"), environments=["region"])
    async with composing.composition(body) as name:
        await composing.create(CLAIM, claim(namespace, "placed", compositionRef={"name": name}))
        waiting = await composing.until(CLAIM, namespace, "placed", in_trouble("EnvironmentNotFound"))
        assert "region" in condition(waiting, "Synced")["message"]
        await composing.create(CONFIG_MAP, CONFIG_MAP.new("fairlead-system", "region", data={"zone": "z1"}))
        await composing.until(CLAIM, namespace, "placed", is_ready)
        assert (await _child(composing, namespace, "placed"))["data"] == {"size": "z1"}
        await composing.api.merge(CONFIG_MAP.path("fairlead-system", "region"), {"data": {"zone": "z2"}})

        async def moved() -> bool:
            return bool((await _child(composing, namespace, "placed"))["data"] == {"size": "z2"})

        await eventually(moved, "the child follows the environment")
        await composing.api.merge(CONFIG_MAP.path("fairlead-system", "region"), {"data": {"zones.yaml": "[z1, z2"}})
        refused = await composing.until(CLAIM, namespace, "placed", in_trouble("YamlRefused"))
        assert "'zones.yaml': line 1" in condition(refused, "Synced")["message"]
        await composing.api.merge(CONFIG_MAP.path("fairlead-system", "region"), {"data": {"zones.yaml": "[z1, z2]"}})
        await composing.until(CLAIM, namespace, "placed", is_ready)
        await composing.delete(CLAIM, namespace, "placed")


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


async def test_a_status_that_the_claim_cannot_have_is_reported(composing: System, namespace: str) -> None:
    body = composition(f"{namespace}-c", _settings(), status={"port": "{{ claim.spec.size }}"})
    async with composing.composition(body) as name:
        await composing.create(CLAIM, claim(namespace, "odd", compositionRef={"name": name}))
        refused = await composing.until(CLAIM, namespace, "odd", in_trouble("SchemaMismatch"))
        assert "port" in condition(refused, "Synced")["message"]
        await composing.delete(CLAIM, namespace, "odd")


@pytest.mark.parametrize("lost", ["label", "owner", "annotations"])
async def test_the_metadata_that_ties_a_child_to_its_claim_is_put_back(
    composing: System, namespace: str, lost: str
) -> None:
    async with composing.composition(composition(f"{namespace}-c", _settings())) as name:
        await _ready(composing, namespace, "tied", compositionRef={"name": name})
        child = await _child(composing, namespace, "tied")
        removed: dict[str, JsonObject] = {
            "label": {"labels": {"fairlead.dev/claim": None}},
            "owner": {"ownerReferences": None},
            "annotations": {"annotations": {"fairlead.dev/claim-name": None, "fairlead.dev/resource": None}},
        }
        path = CONFIG_MAP.path(namespace, child["metadata"]["name"])
        await composing.api.merge(path, {"metadata": removed[lost]})

        async def tied() -> bool:
            metadata = (await composing.api.get(path))["metadata"]
            parts = ("labels", "annotations", "ownerReferences")
            return all(metadata.get(part) == child["metadata"].get(part) for part in parts)

        await eventually(tied, f"the {lost} is back")
        assert (await composing.api.get(path))["metadata"]["uid"] == child["metadata"]["uid"]
        await composing.delete(CLAIM, namespace, "tied")


async def test_a_stranger_of_the_childs_name_is_left_byte_for_byte(composing: System, namespace: str) -> None:
    async with composing.composition(composition(f"{namespace}-c", _settings())) as name:
        # The claim's uid is known only after it is made: pause it, so that the stranger comes first.
        body = claim(namespace, "late", compositionRef={"name": name})
        body["metadata"]["annotations"] = {"fairlead.dev/paused": "true"}
        uid = (await composing.create(CLAIM, body))["metadata"]["uid"]
        digest = hashlib.sha256(f"{uid}\0settings\0".encode()).digest()
        taken = f"late-settings-{base64.b32encode(digest).decode().lower()[:10]}"
        stranger = await composing.create(CONFIG_MAP, CONFIG_MAP.new(namespace, taken, data={"mine": "yes"}))
        await _annotate(composing, namespace, "late", paused=None)

        refused = await composing.until(CLAIM, namespace, "late", in_trouble("NotOwned"))

        assert taken in condition(refused, "Synced")["message"]
        assert await composing.api.get(CONFIG_MAP.path(namespace, taken)) == stranger
        await composing.delete(CLAIM, namespace, "late")
        assert await composing.api.get(CONFIG_MAP.path(namespace, taken)) == stranger


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


async def test_a_kind_that_the_composer_may_not_read_is_named(composing: System, namespace: str) -> None:
    service = {"name": "front", "template": {"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 1}]}}}
    name = f"{namespace}-c"
    await composing.create(COMPOSITION, composition(name, service))
    refused = await composing.until(COMPOSITION, "", name, in_trouble("KindNotAllowed"))
    message = condition(refused, "Ready")["message"]
    assert "may not get, list, watch, create, patch, delete services (Service)" in message
    assert "fairlead.dev/aggregate-to-composer" in message
    await composing.create(CLAIM, claim(namespace, "blind", compositionRef={"name": name}))
    refused = await composing.until(CLAIM, namespace, "blind", in_trouble("KindNotAllowed"))
    assert "Service" in condition(refused, "Synced")["message"]
    # Nothing was made, so nothing is in the way of its end.
    await composing.create(CLAIM, claim(namespace, "regretted", compositionRef={"name": name}))
    await composing.until(CLAIM, namespace, "regretted", in_trouble("KindNotAllowed"))
    await composing.delete(CLAIM, namespace, "regretted")

    await allow_composer(composing, "", "services")
    await composing.until(COMPOSITION, "", name, is_ready, limit_s=120)
    await composing.until(CLAIM, namespace, "blind", is_ready, limit_s=120)

    # The right is taken away: a person who asks reads why, and the claim keeps what it has.
    await composing.api.delete(CLUSTER_ROLE.path("", "composer-services"))
    token = {"metadata": {"annotations": {"fairlead.dev/reconcile-requested-at": "1"}}}
    await composing.api.merge(COMPOSITION.path("", name), token)
    await composing.until(COMPOSITION, "", name, in_trouble("KindNotAllowed"), limit_s=120)
    assert len(await composing.children(namespace, "blind")) == 1
    await allow_composer(composing, "", "services")
    await composing.until(COMPOSITION, "", name, is_ready, limit_s=120)
    await composing.delete(CLAIM, namespace, "blind")
    await composing.api.delete(COMPOSITION.path("", name))


async def test_a_stranger_that_took_a_lost_childs_name_is_left_alone(composing: System, namespace: str) -> None:
    async with composing.composition(composition(f"{namespace}-c", _settings())) as name:
        await _ready(composing, namespace, "lost", compositionRef={"name": name})
        path = CONFIG_MAP.path(namespace, (await _child(composing, namespace, "lost"))["metadata"]["name"])
        # While nobody looks, so that the stranger comes before the child is made anew.
        await _annotate(composing, namespace, "lost", paused="true")
        await composing.until(CLAIM, namespace, "lost", in_trouble("Paused"))
        await composing.api.delete(path)
        stranger = await composing.create(
            CONFIG_MAP, CONFIG_MAP.new(namespace, path.rpartition("/")[2], data={"a": "b"})
        )
        await _annotate(composing, namespace, "lost", paused=None)

        await composing.until(CLAIM, namespace, "lost", in_trouble("NotOwned"))
        await composing.delete(CLAIM, namespace, "lost")

        assert await composing.api.get(path) == stranger


async def test_a_child_whose_claim_was_removed_by_force_is_released(composing: System, namespace: str) -> None:
    """No provider runs here: the test holds the child as one would."""
    await composing.create(CLAIM, claim(namespace, "forced", deletionPolicy="Delete"))
    await composing.until(CLAIM, namespace, "forced", lambda obj: bool(obj.get("status", {}).get("inventory")))
    child = await _child(composing, namespace, "forced")
    path = DATABASE.path(namespace, child["metadata"]["name"])
    await composing.api.merge(path, {"metadata": {"finalizers": ["fairlead.dev/teardown"]}})
    # Paused, so that the composer neither puts the finalizer back nor tears down.
    await _annotate(composing, namespace, "forced", paused="true")
    await composing.until(CLAIM, namespace, "forced", in_trouble("Paused"))
    await composing.api.merge(CLAIM.path(namespace, "forced"), {"metadata": {"finalizers": None}})
    await composing.api.delete(CLAIM.path(namespace, "forced"), propagation="Orphan")
    await composing.api.until_gone(CLAIM.path(namespace, "forced"))
    await composing.api.delete(path)

    async def instruction() -> str:
        annotations = (await composing.api.get(path))["metadata"]["annotations"]
        return str(annotations.get("fairlead.dev/teardown", ""))

    assert await eventually(instruction, "the instruction") == f"{child['metadata']['uid']}/Detach"
    await composing.api.merge(path, {"metadata": {"finalizers": None}})
