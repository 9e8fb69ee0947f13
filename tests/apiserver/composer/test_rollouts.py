"""New revisions go to claims in waves, and no further once one fails, on a real API server."""

from __future__ import annotations

import pytest

from tests.apiserver.composer.rollout_steps import (
    CLAIMS,
    change,
    config,
    create_claims,
    until_values,
    values,
    waves,
)
from tests.support.api import JsonObject
from tests.support.audit import WRITES, Match
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    CONFIG_MAP,
    REVISION,
    claim,
    composition,
    condition,
    in_trouble,
    is_ready,
    trouble,
)
from tests.support.shared import USUAL, at_work
from tests.support.system import COMPOSER, System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


def _is_halted(obj: JsonObject) -> bool:
    return trouble(obj) == "RolloutHalted"


async def test_a_rollout_halts_at_an_unhealthy_claim_of_its_first_wave_and_leaves_the_others_untouched(
    composing: System, namespace: str
) -> None:
    rules = waves("1", "50%", "100%")
    async with composing.composition(composition(f"{namespace}-c", config("a"), rollout=rules)) as name:
        await create_claims(composing, namespace, name, *CLAIMS)
        await composing.at_rest(for_s=1.0)
        audit = composing.audit()

        await change(composing, composition(name, config("b", key="no key"), rollout=rules))
        halted = await composing.until(COMPOSITION, "", name, _is_halted)

        text = condition(halted, "Stalled")["message"]
        (failed,) = [claim_name for claim_name in CLAIMS if f"{namespace}/{claim_name} " in text]
        assert "InvalidValue" in text
        refused = await composing.api.get(CLAIM.path(namespace, failed))
        assert condition(refused, "Stalled")["reason"] == "InvalidValue"
        assert condition(refused, "Ready")["status"] == "True"
        assert await values(composing, namespace) == ["a", "a", "a", "a"]
        await composing.at_rest(for_s=1.0)
        writes = audit.requests(Match(user=COMPOSER, verbs=WRITES, namespace=namespace))
        (child,) = await composing.children(namespace, failed)
        # An event is called after the claim it is about.
        assert {request.name.partition(".")[0] for request in writes} <= {failed, child["metadata"]["name"]}
        state = (await composing.api.get(REVISION.path("", halted["status"]["revision"])))["status"]["rollout"]
        assert (state["phase"], state["wave"], state["total"], state["updated"]) == ("Halted", 1, 4, 1)
        assert [failure["claim"] for failure in state["failures"]] == [f"{namespace}/{failed}"]

        # How far it has come is no process's memory.
        (composer,) = at_work(composing, "composer")
        await composer.kill9()
        restarted = composing.audit()
        await composing.start_composer(*USUAL["composer"])
        await composing.at_rest(for_s=1.0)
        writes = restarted.requests(Match(user=COMPOSER, verbs=WRITES, namespace=namespace))
        # A new process tries once what was refused.
        assert {request.name.partition(".")[0] for request in writes} <= {failed, child["metadata"]["name"]}
        assert await values(composing, namespace) == ["a", "a", "a", "a"]

        await composing.create(CLAIM, claim(namespace, "five", compositionRef={"name": name}))
        new = await composing.until(CLAIM, namespace, "five", is_ready)
        assert new["status"]["composition"]["revision"] != halted["status"]["revision"]

        await change(composing, composition(name, config("c"), rollout=rules))
        await until_values(composing, namespace, "c", "c", "c", "c", "c")
        healed = await composing.until(COMPOSITION, "", name, is_ready)
        assert {condition(healed, type_).get("status") for type_ in ("Stalled", "Reconciling")} <= {None, "False"}
        left = await composing.api.get(REVISION.path("", halted["status"]["revision"]))
        assert left["status"]["rollout"]["phase"] == "Halted"
        assert condition(left, "Synced")["status"] == "True"
        for claim_name in CLAIMS:
            await composing.delete(CLAIM, namespace, claim_name)
        await composing.delete(CLAIM, namespace, "five")


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
        meta = {field: before["metadata"][field] for field in ("name", "namespace", "annotations")}
        meta["labels"] = {**before["metadata"]["labels"], "team": "blue"}
        copy = {**before, "metadata": meta}
        await composing.api.create(path.rpartition("/")[0], copy, fieldManager="velero-server")
        paused["metadata"]["annotations"]["fairlead.dev/paused"] = None
        await composing.edit(CLAIM, namespace, "restored", paused)

        async def is_taken_over() -> bool:
            held = {
                entry["manager"]: entry["fieldsV1"]
                for entry in (await composing.api.get(path))["metadata"]["managedFields"]
            }
            return len(held) == 2 and "f:data" not in held["velero-server"]

        await eventually(is_taken_over, "the child is the composer's, what it brought along is the backup's")
        await composing.until(CLAIM, namespace, "restored", is_ready)
        await change(composing, settings(a="1"))
        await until_values(composing, namespace, "1")
        child = await composing.api.get(path)
        assert child["metadata"]["labels"]["team"] == "blue"
        assert child["metadata"]["uid"] != before["metadata"]["uid"]
        await composing.delete(CLAIM, namespace, "restored")


async def test_revisions_beyond_the_limit_go_but_those_in_use_and_pinned(composing: System, namespace: str) -> None:
    async with composing.composition(composition(f"{namespace}-c", config("a"), revisionHistoryLimit=0)) as name:
        for claim_name in ("pinned", "follows"):
            await composing.create(CLAIM, claim(namespace, claim_name, compositionRef={"name": name}))
            await composing.until(CLAIM, namespace, claim_name, is_ready)
        pin = (await composing.api.get(CLAIM.path(namespace, "pinned")))["status"]["composition"]["revision"]
        await composing.edit(CLAIM, namespace, "pinned", {"spec": {"compositionRevisionRef": {"name": pin}}})
        await composing.until(CLAIM, namespace, "pinned", is_ready)

        for value in ("b", "c"):
            await change(composing, composition(name, config(value), revisionHistoryLimit=0))
            await until_values(composing, namespace, "a", value)

        async def two_are_left() -> bool:
            known = await composing.api.items(REVISION.path())
            left = {revision["metadata"]["name"] for revision in known if revision["spec"]["compositionName"] == name}
            newest = (await composing.api.get(COMPOSITION.path("", name)))["status"]["revision"]
            return left == {pin, newest}

        await eventually(two_are_left, "only the pinned and the newest revision are left")
        for claim_name in ("pinned", "follows"):
            await composing.delete(CLAIM, namespace, claim_name)


async def test_a_deleted_revision_waits_for_the_claims_that_use_it_and_moves_none(
    composing: System, namespace: str
) -> None:
    rules = waves("1", "100%", progressDeadlineSeconds=1)
    async with composing.composition(composition(f"{namespace}-c", config("a"), rollout=rules)) as name:
        await create_claims(composing, namespace, name, *CLAIMS)
        first = str((await composing.api.get(COMPOSITION.path("", name)))["status"]["revision"])
        await change(composing, composition(name, config("b", readyWhen="{{ false }}"), rollout=rules))
        await composing.until(COMPOSITION, "", name, _is_halted)
        await until_values(composing, namespace, "a", "a", "a", "b")

        await composing.api.delete(REVISION.path("", first))
        await composing.at_rest(for_s=1.0)

        assert await values(composing, namespace) == ["a", "a", "a", "b"]
        held = await composing.until(REVISION, "", first, in_trouble("InUse"))
        assert "4 claims use it, are pinned to it or may go back to it" in condition(held, "Stalled")["message"]
        # A new claim takes none that is halted.
        await composing.create(CLAIM, claim(namespace, "five", compositionRef={"name": name}))
        await until_values(composing, namespace, "a", "a", "a", "a", "b")

        await change(composing, composition(name, config("c"), rollout=rules))
        await until_values(composing, namespace, *"ccccc")
        await composing.until(COMPOSITION, "", name, is_ready)
        await composing.api.until_gone(REVISION.path("", first))
        for claim_name in (*CLAIMS, "five"):
            await composing.delete(CLAIM, namespace, claim_name)
        last = str((await composing.api.get(COMPOSITION.path("", name)))["status"]["revision"])
        await composing.delete(COMPOSITION, "", name)
        # A revision outlives its Composition, and can be taken away then, too.
        await composing.delete(REVISION, "", last)


async def test_a_bad_edit_leaves_the_claims_on_the_last_good_revision(composing: System, namespace: str) -> None:
    async with composing.composition(composition(f"{namespace}-c", config("{{ claim.spec.size }}"))) as name:
        await create_claims(composing, namespace, name, "kept")
        await change(composing, composition(name, config("{{ claim.spec. }}")))
        await composing.until(COMPOSITION, "", name, in_trouble("TemplateInvalid"))
        await composing.edit(CLAIM, namespace, "kept", {"spec": {"size": "large"}})
        await composing.until(CLAIM, namespace, "kept", is_ready)
        await until_values(composing, namespace, "large")
        await composing.delete(CLAIM, namespace, "kept")
