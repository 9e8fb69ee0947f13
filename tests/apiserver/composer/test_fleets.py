"""A fleet is never moved by accident: deleted revisions, freezes, tenants and fences, on a real API server."""

from __future__ import annotations

import hashlib

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
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    NAMESPACE,
    REVISION,
    SECRET,
    claim,
    composition,
    condition,
    in_trouble,
    is_ready,
    trouble,
)
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]

_PAUSED = "fairlead.dev/paused"


async def _revision(system: System, name: str) -> str:
    return str((await system.api.get(COMPOSITION.path("", name)))["status"]["revision"])


async def _rollout(system: System, revision: str) -> JsonObject:
    return dict((await system.api.get(REVISION.path("", revision)))["status"]["rollout"])


async def _gone(system: System, revision: str) -> None:
    async def is_gone() -> bool:
        return await system.api.find(REVISION.path("", revision)) is None

    await eventually(is_gone, f"{revision} is gone")


async def _annotate(system: System, namespace: str, name: str, **annotations: str | None) -> None:
    await system.edit(CLAIM, namespace, name, {"metadata": {"annotations": annotations}})


def _is_halted(obj: JsonObject) -> bool:
    return trouble(obj) == "RolloutHalted"


async def test_a_deleted_revision_waits_for_the_claims_that_use_it_and_moves_none(
    composing: System, namespace: str
) -> None:
    rules = waves("1", "100%", progressDeadlineSeconds=1)
    async with composing.composition(composition(f"{namespace}-c", config("a"), rollout=rules)) as name:
        await create_claims(composing, namespace, name, *CLAIMS)
        first = await _revision(composing, name)
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
        await _gone(composing, first)
        for claim_name in (*CLAIMS, "five"):
            await composing.delete(CLAIM, namespace, claim_name)
        last = await _revision(composing, name)
        await composing.delete(COMPOSITION, "", name)
        # A revision outlives its Composition, and can be taken away then, too.
        await composing.delete(REVISION, "", last)


async def test_claims_whose_revision_was_removed_by_force_stay_as_they_are_and_go_by_waves(
    composing: System, namespace: str
) -> None:
    rules = waves("1", "100%", progressDeadlineSeconds=1)
    async with composing.composition(composition(f"{namespace}-c", config("a"), rollout=rules)) as name:
        await create_claims(composing, namespace, name, *CLAIMS)
        first = await _revision(composing, name)
        await change(composing, composition(name, config("b", readyWhen="{{ false }}"), rollout=rules))
        await composing.until(COMPOSITION, "", name, _is_halted)
        await composing.api.delete(REVISION.path("", first))
        await composing.until(REVISION, "", first, in_trouble("InUse"))
        await composing.api.merge(REVISION.path("", first), {"metadata": {"finalizers": None}})
        await _gone(composing, first)

        for claim_name in CLAIMS:
            stopped = await composing.until(
                CLAIM,
                namespace,
                claim_name,
                lambda obj: (
                    trouble(obj) == "RevisionNotFound"
                    or condition(obj, "Ready").get("reason") == "ChildNotReady"
                    or is_ready(obj)
                ),
            )
            if trouble(stopped) == "RevisionNotFound":
                assert f"revision {first}, which this claim uses, is gone" in condition(stopped, "Synced")["message"]
                assert condition(stopped, "Ready")["status"] == "True"
        await composing.at_rest(for_s=1.0)
        assert await values(composing, namespace) == ["a", "a", "a", "b"]

        await change(composing, composition(name, config("c", key="no key"), rollout=rules))
        await composing.until(COMPOSITION, "", name, _is_halted)
        assert (await _rollout(composing, await _revision(composing, name)))["updated"] == 1
        assert await values(composing, namespace) == ["a", "a", "a", "b"]
        await change(composing, composition(name, config("d"), rollout=rules))
        await until_values(composing, namespace, *"dddd")
        for claim_name in CLAIMS:
            await composing.delete(CLAIM, namespace, claim_name)


async def test_a_revision_published_in_a_freeze_goes_by_waves_when_the_freeze_ends(
    composing: System, namespace: str
) -> None:
    rules = waves("1", "50%", "100%")
    async with composing.composition(composition(f"{namespace}-c", config("a"), rollout=rules)) as name:
        await create_claims(composing, namespace, name, *CLAIMS)
        for claim_name in CLAIMS:
            await _annotate(composing, namespace, claim_name, **{_PAUSED: "true"})
            await composing.until(CLAIM, namespace, claim_name, in_trouble("Paused"))
        await change(composing, composition(name, config("b", key="no key"), rollout=rules))
        rolling = await composing.until(COMPOSITION, "", name, in_trouble("RollingOut"))
        revision = await _revision(composing, name)

        assert "0 of 4 claims have it; 4 paused claims have not got it" in condition(rolling, "Synced")["message"]
        for claim_name in CLAIMS:
            await _annotate(composing, namespace, claim_name, **{_PAUSED: None})
        halted = await composing.until(COMPOSITION, "", name, _is_halted)
        await composing.at_rest(for_s=1.0)

        assert "InvalidValue" in condition(halted, "Stalled")["message"]
        state = await _rollout(composing, revision)
        assert (state["phase"], state["wave"], state["updated"]) == ("Halted", 1, 1)
        assert await values(composing, namespace) == ["a", "a", "a", "a"]
        for claim_name in CLAIMS:
            await composing.delete(CLAIM, namespace, claim_name)


async def test_a_tenant_neither_halts_nor_rolls_back_the_rollout_of_all(composing: System, namespace: str) -> None:
    rules = waves("50%", "100%", onFailure="Rollback", soakSeconds=30)
    connection = {
        "type": "redis",
        "host": "h",
        "secretRef": {"resource": "settings", "name": "given", "keys": {"password": "password"}},
    }

    def of(value: str) -> JsonObject:
        return composition(f"{namespace}-c", config(value), rollout=rules, connection=connection)

    await composing.create(SECRET, SECRET.new(namespace, "given", stringData={"password": "p"}))
    await composing.create(SECRET, SECRET.new(namespace, "mine", stringData={"a": "b"}))
    async with composing.composition(of("a")) as name:
        await create_claims(composing, namespace, name, *CLAIMS)
        await change(composing, of("b"))
        await until_values(composing, namespace, "a", "a", "b", "b")
        revision = await _revision(composing, name)
        taken = await _holders(composing, namespace, "b")
        # By an edit of the claim, and by another Secret under the name of its own.
        await composing.edit(CLAIM, namespace, taken[0], {"spec": {"connectionSecretName": "mine"}})
        await composing.api.delete(SECRET.path(namespace, f"{taken[1]}-connection"))
        await composing.create(SECRET, SECRET.new(namespace, f"{taken[1]}-connection", stringData={"a": "b"}))
        await composing.ask_for_a_pass(CLAIM, namespace, taken[1])
        for claim_name in taken:
            await composing.until(CLAIM, namespace, claim_name, in_trouble("SecretNotOwned"))

        await until_values(composing, namespace, *"bbbb")
        done = await composing.until(COMPOSITION, "", name, is_ready)
        state = await _rollout(composing, done["status"]["revision"])
        assert (done["status"]["revision"], state["phase"], state.get("failed", 0)) == (revision, "Finished", 0)
        for claim_name in CLAIMS:
            await composing.delete(CLAIM, namespace, claim_name)


async def test_a_developers_reason_that_the_revision_itself_brings_halts_it(composing: System, namespace: str) -> None:
    rules = waves("1", "100%")
    async with composing.composition(composition(f"{namespace}-c", config("a"), rollout=rules)) as name:
        await create_claims(composing, namespace, name, *CLAIMS)
        fewer = composition(name, config("a"), rollout=rules, deletionPolicies=["Delete"])
        await change(composing, fewer)

        halted = await composing.until(COMPOSITION, "", name, _is_halted)

        assert "UnsupportedPolicy" in condition(halted, "Stalled")["message"]
        assert (await _rollout(composing, await _revision(composing, name)))["updated"] == 1
        for claim_name in CLAIMS:
            await composing.delete(CLAIM, namespace, claim_name)


def _place(identity: str, revision: str) -> str:
    return hashlib.sha256(f"{identity}\0{revision}".encode()).hexdigest()[:16]


async def _holders(system: System, namespace: str, value: str) -> list[str]:
    """Return the claims whose child holds a value."""
    children_of = {claim_name: await system.children(namespace, claim_name) for claim_name in CLAIMS}
    return [
        claim_name
        for claim_name, children in children_of.items()
        if [child["data"]["value"] for child in children] == [value]
    ]


async def _until_held_by(system: System, namespace: str, value: str, *, count: int) -> list[str]:
    async def holds() -> list[str]:
        holders = await _holders(system, namespace, value)
        return holders if len(holders) == count else []

    return await eventually(holds, f"{count} claims have {value!r}")


async def _roll_out_to_others_than(system: System, namespace: str, paused: JsonObject, rules: JsonObject) -> None:
    """Publish revisions until one is with a first claim, and the paused claim's place comes later."""
    identity = paused["status"]["identity"]
    for number in range(12):
        await change(system, composition(f"{namespace}-c", config(f"newer-{number}"), rollout=rules))
        await _until_held_by(system, namespace, f"newer-{number}", count=1)
        newer = await _revision(system, f"{namespace}-c")
        if _place(identity, newer) > (await _rollout(system, newer))["through"]:
            return
    raise AssertionError("the paused claim was among the first of every revision")


async def test_a_claim_that_was_paused_on_a_reverted_revision_leaves_it_although_a_newer_one_is_under_way(
    composing: System, namespace: str
) -> None:
    rules = {"onFailure": "Rollback", "progressDeadlineSeconds": 4, "soakSeconds": 600}
    by_two, by_one = {"waves": ["2", "100%"], **rules}, {"waves": ["1", "100%"], **rules}
    async with composing.composition(composition(f"{namespace}-c", config("first"), rollout=by_two)) as name:
        await create_claims(composing, namespace, name, *CLAIMS)
        await change(composing, composition(name, config("bad", readyWhen="{{ false }}"), rollout=by_two))
        kept, _ = await _until_held_by(composing, namespace, "bad", count=2)
        await _annotate(composing, namespace, kept, **{_PAUSED: "true"})
        await composing.until(COMPOSITION, "", name, _is_halted)
        assert await _until_held_by(composing, namespace, "bad", count=1) == [kept]
        paused = await composing.until(CLAIM, namespace, kept, in_trouble("Paused"))
        await _roll_out_to_others_than(composing, namespace, paused, by_one)

        await _annotate(composing, namespace, kept, **{_PAUSED: None})

        async def left_it() -> bool:
            return kept in await _holders(composing, namespace, "first")

        await eventually(left_it, "the claim has the last revision that was well")
        for claim_name in CLAIMS:
            await composing.delete(CLAIM, namespace, claim_name)


async def test_a_composition_is_for_the_namespaces_that_it_says(composing: System, namespace: str) -> None:
    team = {"namespaceSelector": {"matchLabels": {"team": namespace}}}
    async with composing.composition(composition(f"{namespace}-c", config("a"), appliesTo=team)) as name:
        await composing.until(COMPOSITION, "", name, is_ready)
        await composing.create(CLAIM, claim(namespace, "named", compositionRef={"name": name}))
        refused = await composing.until(CLAIM, namespace, "named", in_trouble("CompositionNotFound"))
        # The same words as for one that is not there.
        text = condition(refused, "Synced")["message"]
        assert text.startswith(f"there is no Composition '{name}' for this kind")
        assert name not in text.partition("known:")[2]

        await composing.edit(NAMESPACE, "", namespace, {"metadata": {"labels": {"team": namespace}}})
        made = await composing.until(CLAIM, namespace, "named", is_ready)
        old = made["status"]["composition"]["revision"]

        # A living claim keeps it, follows it, and says so; another one does not get it.
        await change(composing, composition(name, config("b"), appliesTo=team, allowedNamespaces={"names": ["other"]}))
        await until_values(composing, namespace, "b")
        refused = await composing.until(CLAIM, namespace, "named", in_trouble("NotAllowed"))
        assert condition(refused, "Ready")["status"] == "True"
        assert not condition(refused, "Stalled")
        await composing.create(CLAIM, claim(namespace, "new", compositionRef={"name": name}))
        await composing.until(CLAIM, namespace, "new", in_trouble("CompositionNotFound"))
        # Nor does it go back to an old revision.
        await composing.edit(CLAIM, namespace, "named", {"spec": {"compositionRevisionRef": {"name": old}}})
        await composing.until(
            CLAIM, namespace, "named", lambda obj: condition(obj, "Stalled").get("reason") == "NotAllowed"
        )
        assert await values(composing, namespace) == ["b"]

        await change(composing, composition(name, config("b"), allowedNamespaces={"names": [namespace]}))
        await until_values(composing, namespace, "a", "b")
        for claim_name in ("named", "new"):
            await composing.delete(CLAIM, namespace, claim_name)
