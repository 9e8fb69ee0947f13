"""New revisions go to claims in waves, and no further once one fails, on a real API server."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from tests.support.api import JsonObject
from tests.support.audit import WRITES, Match
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    CONFIG_MAP,
    Kind,
    claim,
    composition,
    condition,
    in_trouble,
    is_ready,
    trouble,
)
from tests.support.system import COMPOSER, System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]

REVISION = Kind("fairlead.dev", "v1alpha1", "CompositionRevision", "compositionrevisions", namespaced=False)
CLAIMS = ("one", "two", "three", "four")


def _config(value: str, *, key: str = "value", name: str = "settings", **fields: Any) -> JsonObject:
    """Return a resource; a key with a blank is what only the API server refuses."""
    return {"name": name, "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": {key: value}}, **fields}


def _waves(*waves: str, **rules: Any) -> JsonObject:
    return {"waves": list(waves), "soakSeconds": 0, **rules}


async def _claims(system: System, namespace: str, composition_name: str) -> None:
    await system.until(COMPOSITION, "", composition_name, is_ready)
    for name in CLAIMS:
        await system.create(CLAIM, claim(namespace, name, compositionRef={"name": composition_name}))
    for name in CLAIMS:
        await system.until(CLAIM, namespace, name, is_ready)


async def _change(system: System, body: JsonObject) -> None:
    await system.api.merge(COMPOSITION.path("", body["metadata"]["name"]), {"spec": body["spec"]})


async def _values(system: System, namespace: str) -> list[str]:
    """Return what the claims' children hold, in order."""
    found = await system.api.items(CONFIG_MAP.path(namespace))
    return sorted(
        str(value)
        for child in found
        if "fairlead.dev/claim" in child["metadata"].get("labels", {})
        for value in child.get("data", {}).values()
    )


async def _until_values(system: System, namespace: str, *values: str) -> None:
    async def holds() -> bool:
        return await _values(system, namespace) == sorted(values)

    await eventually(holds, f"children with {values}")


def _is_halted(obj: JsonObject) -> bool:
    return trouble(obj) == "RolloutHalted"


async def test_a_rollout_halts_at_an_unhealthy_claim_of_its_first_wave_and_leaves_the_others_untouched(
    composing: System, namespace: str
) -> None:
    rules = _waves("1", "50%", "100%")
    async with composing.composition(composition(f"{namespace}-c", _config("a"), rollout=rules)) as name:
        await _claims(composing, namespace, name)
        await composing.at_rest(for_s=1.0)
        audit = composing.audit()

        await _change(composing, composition(name, _config("b", key="no key"), rollout=rules))
        halted = await composing.until(COMPOSITION, "", name, _is_halted)

        text = condition(halted, "Stalled")["message"]
        (failed,) = [each for each in CLAIMS if f"{namespace}/{each} " in text]
        assert "InvalidValue" in text
        told = await composing.api.get(CLAIM.path(namespace, failed))
        assert condition(told, "Stalled")["reason"] == "InvalidValue"
        assert condition(told, "Ready")["status"] == "True"
        assert await _values(composing, namespace) == ["a", "a", "a", "a"]
        await composing.at_rest(for_s=1.0)
        writes = audit.requests(Match(user=COMPOSER, verbs=WRITES, namespace=namespace))
        (child,) = await composing.children(namespace, failed)
        # An event is called after the claim it is about.
        assert {each.name.partition(".")[0] for each in writes} <= {failed, child["metadata"]["name"]}
        state = (await composing.api.get(REVISION.path("", halted["status"]["revision"])))["status"]["rollout"]
        assert (state["phase"], state["wave"], state["total"], state["updated"]) == ("Halted", 1, 4, 1)
        assert [each["claim"] for each in state["failures"]] == [f"{namespace}/{failed}"]

        # How far it has come is no process's memory.
        (composer,) = [one for one in composing.started if one.is_running]
        await composer.kill9()
        restarted = composing.audit()
        await composing.start_composer("--no-elect", "--resync", "5")
        await composing.at_rest(for_s=1.0)
        writes = restarted.requests(Match(user=COMPOSER, verbs=WRITES, namespace=namespace))
        # A new process tries once what was refused.
        assert {each.name.partition(".")[0] for each in writes} <= {failed, child["metadata"]["name"]}
        assert await _values(composing, namespace) == ["a", "a", "a", "a"]

        await composing.create(CLAIM, claim(namespace, "five", compositionRef={"name": name}))
        new = await composing.until(CLAIM, namespace, "five", is_ready)
        assert new["status"]["composition"]["revision"] != halted["status"]["revision"]

        await _change(composing, composition(name, _config("c"), rollout=rules))
        await _until_values(composing, namespace, "c", "c", "c", "c", "c")
        healed = await composing.until(COMPOSITION, "", name, is_ready)
        assert {condition(healed, each).get("status") for each in ("Stalled", "Reconciling")} <= {None, "False"}
        left = await composing.api.get(REVISION.path("", halted["status"]["revision"]))
        assert left["status"]["rollout"]["phase"] == "Halted"
        assert condition(left, "Synced")["status"] == "True"
        for each in CLAIMS:
            await composing.delete(CLAIM, namespace, each)
        await composing.delete(CLAIM, namespace, "five")


async def test_claims_that_come_while_a_wave_is_open_go_with_the_next(composing: System, namespace: str) -> None:
    rules, ready_when = _waves("50%", "100%"), "{{ claim.spec.highAvailability | default(false) }}"
    async with composing.composition(composition(f"{namespace}-c", _config("a"), rollout=rules)) as name:
        await _claims(composing, namespace, name)
        await _change(composing, composition(name, _config("b", readyWhen=ready_when), rollout=rules))
        await _until_values(composing, namespace, "a", "a", "b", "b")
        revision = (await composing.until(COMPOSITION, "", name, _is_rolling_out))["status"]["revision"]
        opened = (await composing.api.get(REVISION.path("", revision)))["status"]["rollout"]["opened"]

        async def is_later() -> bool:
            probe = await composing.create(CONFIG_MAP, CONFIG_MAP.new(namespace, f"clock-{secrets.token_hex(4)}"))
            return bool(probe["metadata"]["creationTimestamp"] > opened)

        await eventually(is_later, "the second in which the wave was opened is over")
        # Each has one chance in two to have its place in the part of the order that the wave has reached.
        late = [f"late-{number}" for number in range(6)]
        for each in late:
            await composing.create(CLAIM, claim(namespace, each, compositionRef={"name": name}))
        for each in late:
            await composing.until(CLAIM, namespace, each, is_ready)
        await composing.at_rest(for_s=1.0)

        assert await _values(composing, namespace) == ["a"] * 8 + ["b"] * 2
        state = (await composing.api.get(REVISION.path("", revision)))["status"]["rollout"]
        assert (state["phase"], state["wave"], state["total"], state["updated"]) == ("Progressing", 1, 10, 2)

        for each in CLAIMS:
            await composing.edit(CLAIM, namespace, each, {"spec": {"highAvailability": True}})
        await _until_values(composing, namespace, *["b"] * 10)
        for each in (*CLAIMS, *late):
            await composing.delete(CLAIM, namespace, each)


def _is_rolling_out(obj: JsonObject) -> bool:
    return condition(obj, "Synced").get("reason") == "RollingOut"


async def test_a_rollback_takes_the_first_wave_back(composing: System, namespace: str) -> None:
    rules = _waves("1", "100%", onFailure="Rollback", progressDeadlineSeconds=1)
    async with composing.composition(composition(f"{namespace}-c", _config("a"), rollout=rules)) as name:
        await _claims(composing, namespace, name)
        first = (await composing.api.get(COMPOSITION.path("", name)))["status"]["revision"]

        await _change(composing, composition(name, _config("b", readyWhen="{{ false }}"), rollout=rules))
        stopped = await composing.until(COMPOSITION, "", name, _is_halted)

        assert "ChildNotReady" in condition(stopped, "Stalled")["message"]
        await _until_values(composing, namespace, "a", "a", "a", "a")

        def is_back(obj: JsonObject) -> bool:
            return is_ready(obj) and bool(obj["status"]["composition"]["revision"] == first)

        for each in CLAIMS:
            await composing.until(CLAIM, namespace, each, is_back)

        await _change(composing, composition(name, _config("a"), rollout=rules))
        again = await composing.until(COMPOSITION, "", name, is_ready)
        revision = await composing.api.get(REVISION.path("", first))
        assert again["status"]["revision"] == first
        assert revision["spec"]["revision"] == 3


async def test_a_way_back_that_would_cost_data_is_held_until_consent(composing: System, namespace: str) -> None:
    rules = _waves("1", "100%", onFailure="Rollback", progressDeadlineSeconds=1)
    async with composing.composition(composition(f"{namespace}-c", _config("a"), rollout=rules)) as name:
        await composing.until(COMPOSITION, "", name, is_ready)
        await composing.create(CLAIM, claim(namespace, "torn", deletionPolicy="Delete", compositionRef={"name": name}))
        await composing.until(CLAIM, namespace, "torn", is_ready)
        await composing.until(COMPOSITION, "", name, is_ready)

        extra = _config("x", name="extra", stateful=True, readyWhen="{{ false }}")
        await _change(composing, composition(name, _config("b"), extra, rollout=rules))
        await composing.until(COMPOSITION, "", name, _is_halted)
        held = await composing.until(CLAIM, namespace, "torn", in_trouble("HeldDeletion"))

        assert "the way back to revision" in condition(held, "Synced")["message"]
        assert await _values(composing, namespace) == ["b", "x"]
        (uid,) = [each["uid"] for each in held["status"]["inventory"] if each["resource"] == "extra"]
        consent = {"fairlead.dev/consent": f"extra={uid}"}
        await composing.edit(CLAIM, namespace, "torn", {"metadata": {"annotations": consent}})
        await _until_values(composing, namespace, "a")
        await composing.delete(CLAIM, namespace, "torn")


async def test_a_renamed_resource_keeps_its_object(composing: System, namespace: str) -> None:
    async with composing.composition(composition(f"{namespace}-c", _config("a"))) as name:
        await composing.create(CLAIM, claim(namespace, "renamed", compositionRef={"name": name}))
        await composing.until(CLAIM, namespace, "renamed", is_ready)
        (before,) = await composing.children(namespace, "renamed")

        moved = _config("b", name="options", movedFrom=["settings"])
        await _change(composing, composition(name, moved))
        await _until_values(composing, namespace, "b")

        def is_moved(obj: JsonObject) -> bool:
            entries = [(each["resource"], each.get("origin")) for each in obj["status"]["inventory"]]
            return is_ready(obj) and entries == [("options", "settings")]

        await composing.until(CLAIM, namespace, "renamed", is_moved)
        (after,) = await composing.children(namespace, "renamed")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]

        # A lost status tells nothing of the move; the object itself does.
        await composing.api.merge(
            CLAIM.path(namespace, "renamed", "status"), {"status": {"inventory": None, "composition": None}}
        )

        def is_known(obj: JsonObject) -> bool:
            return [each.get("resource") for each in obj["status"].get("inventory", [])] == ["options"]

        await composing.until(CLAIM, namespace, "renamed", is_known)
        (found,) = await composing.children(namespace, "renamed")
        assert found["metadata"]["uid"] == before["metadata"]["uid"]
        await composing.delete(CLAIM, namespace, "renamed")


async def test_a_field_that_leaves_the_template_leaves_a_child_out_of_a_backup_too(
    composing: System, namespace: str
) -> None:
    def settings(**data: str) -> JsonObject:
        template = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
        return composition(f"{namespace}-c", {"name": "settings", "template": template})

    async with composing.composition(settings(a="1", b="2")) as name:
        await composing.create(CLAIM, claim(namespace, "restored", compositionRef={"name": name}))
        await composing.until(CLAIM, namespace, "restored", is_ready)
        (before,) = await composing.children(namespace, "restored")
        path = CONFIG_MAP.path(namespace, before["metadata"]["name"])
        paused: JsonObject = {"metadata": {"annotations": {"fairlead.dev/paused": "true"}}}
        await composing.edit(CLAIM, namespace, "restored", paused)
        await composing.until(CLAIM, namespace, "restored", lambda obj: trouble(obj) == "Paused")
        await composing.at_rest(for_s=1.0)

        await composing.api.delete(path)
        await composing.api.until_gone(path)
        meta = {each: before["metadata"][each] for each in ("name", "namespace", "annotations")}
        meta["labels"] = {**before["metadata"]["labels"], "team": "blue"}
        copy = {**before, "metadata": meta}
        await composing.api.create(path.rpartition("/")[0], copy, fieldManager="velero-server")
        paused["metadata"]["annotations"]["fairlead.dev/paused"] = None
        await composing.edit(CLAIM, namespace, "restored", paused)

        async def is_taken_over() -> bool:
            held = {
                each["manager"]: each["fieldsV1"]
                for each in (await composing.api.get(path))["metadata"]["managedFields"]
            }
            return len(held) == 2 and "f:data" not in held["velero-server"]

        await eventually(is_taken_over, "the child is the composer's, what it brought along is the backup's")
        await composing.until(CLAIM, namespace, "restored", is_ready)
        await _change(composing, settings(a="1"))
        await _until_values(composing, namespace, "1")
        found = await composing.api.get(path)
        assert found["metadata"]["labels"]["team"] == "blue"
        assert found["metadata"]["uid"] != before["metadata"]["uid"]
        await composing.delete(CLAIM, namespace, "restored")


async def test_revisions_beyond_the_limit_go_but_those_in_use_and_pinned(composing: System, namespace: str) -> None:
    async with composing.composition(composition(f"{namespace}-c", _config("a"), revisionHistoryLimit=0)) as name:
        for each in ("pinned", "follows"):
            await composing.create(CLAIM, claim(namespace, each, compositionRef={"name": name}))
            await composing.until(CLAIM, namespace, each, is_ready)
        pin = (await composing.api.get(CLAIM.path(namespace, "pinned")))["status"]["composition"]["revision"]
        await composing.edit(CLAIM, namespace, "pinned", {"spec": {"compositionRevisionRef": {"name": pin}}})
        await composing.until(CLAIM, namespace, "pinned", is_ready)

        for value in ("b", "c"):
            await _change(composing, composition(name, _config(value), revisionHistoryLimit=0))
            await _until_values(composing, namespace, "a", value)

        async def two_are_left() -> bool:
            known = await composing.api.items(REVISION.path())
            left = {each["metadata"]["name"] for each in known if each["spec"]["compositionName"] == name}
            newest = (await composing.api.get(COMPOSITION.path("", name)))["status"]["revision"]
            return left == {pin, newest}

        await eventually(two_are_left, "only the pinned and the newest revision are left")
        for each in ("pinned", "follows"):
            await composing.delete(CLAIM, namespace, each)
