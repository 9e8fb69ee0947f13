"""How a claim goes: the instruction, the waves, what is held."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apis import names
from apis.teardown import DeletionPolicy
from composer.claim.decide import Annotate, Delete, Keep, Orphan, RemoveFinalizer, Step
from composer.claim.deletion import effective_policy, tear_down, teardown_policy
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.claim.undecided import mirrored_pause
from composer.kinds.catalog import KindFacts
from runtime.objects import Object, Resource
from tests.composer.factories import NOW, VOLUME, annotated, claim, desired, live, observed, snapshot

LIVE = live(desired())
DYING = live(desired(), deleted=True)
DONE = annotated(DYING, teardown="child-uid/Delete")


def _namespace(*, deleted: bool, ephemeral: bool = False) -> Object:
    meta: Object = {"name": "shop", "labels": {names.EPHEMERAL_LABEL: "true"} if ephemeral else {}}
    if deleted:
        meta["deletionTimestamp"] = NOW
    return {"metadata": meta}


GOING, EPHEMERAL = _namespace(deleted=True), _namespace(deleted=True, ephemeral=True)


@pytest.mark.parametrize(
    ("policy", "around", "expected"),
    [
        pytest.param("Delete", {}, "Delete", id="the claim's own policy"),
        pytest.param("Snapshot", {}, "Snapshot", id="a snapshot"),
        pytest.param("Orphan", {}, "Orphan", id="left alone"),
        pytest.param("Delete", {"namespace": GOING}, "Detach", id="a namespace's deletion destroys nothing"),
        pytest.param("Delete", {"namespace": EPHEMERAL}, "Delete", id="unless it is ephemeral"),
        pytest.param("Orphan", {"namespace": EPHEMERAL}, "Orphan", id="and then by the policy"),
        pytest.param("Delete", {"kind_deleting": True}, "Detach", id="the kind's deletion destroys nothing"),
        pytest.param(
            "Delete", {"kind_deleting": True, "namespace": EPHEMERAL}, "Detach", id="nor in an ephemeral namespace"
        ),
        pytest.param(
            "Snapshot",
            {"namespace": _namespace(deleted=False, ephemeral=True)},
            "Snapshot",
            id="an ephemeral namespace that lives changes nothing",
        ),
    ],
)
def test_the_instruction_follows_from_the_policy(policy: DeletionPolicy, around: Any, expected: str) -> None:
    assert teardown_policy(snapshot(**around), policy) == expected


@pytest.mark.parametrize(
    ("wanted", "supported", "last", "expected"),
    [
        pytest.param("Delete", ("Orphan", "Delete"), "", "Delete", id="a supported one"),
        pytest.param("Snapshot", ("Orphan", "Delete"), "Snapshot", "Orphan", id="one that is not supported"),
        pytest.param("Delete", None, "Delete", "Delete", id="the composition is gone and nothing changed"),
        pytest.param("Delete", None, "Orphan", "Orphan", id="the composition is gone and it was changed since"),
    ],
)
def test_the_policy_in_force_follows_from_claim_and_composition(
    wanted: str, supported: tuple[DeletionPolicy, ...] | None, last: str, expected: str
) -> None:
    owner = claim(deletionPolicy=wanted, status={"deletionPolicy": last})

    assert effective_policy(snapshot(of=owner), supported) == expected


def _going(*known: ObservedChild, **fields: Any) -> Snapshot:
    return snapshot(*known, of=claim(deleted=True, **fields))


def _step(stored: Object, policy: DeletionPolicy = "Delete") -> Step:
    """Return what is done with the one child of a claim that goes."""
    (step,) = tear_down(_going(observed(stored=stored)), policy).steps
    return step


def test_a_protected_claim_is_held_whatever_else_is_set() -> None:
    plan = tear_down(_going(observed(stored=DYING), deletionProtection=True), "Delete")

    assert [type(step) for step in plan.steps] == [Keep]
    assert [cause.reason for cause in plan.causes] == ["DeletionProtected"]
    assert not plan.done


def _with_policy(obj: Object, policy: str) -> Object:
    return {**obj, "spec": {**obj["spec"], "deletionPolicy": policy}}


INSTRUCTION: dict[str, str | None] = {names.TEARDOWN: "child-uid/Delete"}
ANNOTATED: dict[str, tuple[Object, dict[str, str | None] | None]] = {
    "a pause has ended for one that lives": (annotated(LIVE, paused="true"), {names.PAUSED: None}),
    "a pause has ended for one that goes": (annotated(DYING, paused="true"), {names.PAUSED: None, **INSTRUCTION}),
    "a pause has ended for one that has the instruction": (annotated(DONE, paused="true"), {names.PAUSED: None}),
    "one goes without an instruction": (DYING, INSTRUCTION),
    "one goes with another instruction": (annotated(DYING, teardown="child-uid/Detach"), INSTRUCTION),
    "one goes with a void instruction": (annotated(DYING, teardown="other-uid/Delete"), INSTRUCTION),
    "one goes with the instruction": (_with_policy(DONE, "Delete"), None),
}


@pytest.mark.parametrize(("stored", "expected"), ANNOTATED.values(), ids=ANNOTATED)
def test_a_child_is_freed_of_a_pause_that_has_ended_and_instructed_once(
    stored: Object, expected: dict[str, str | None] | None
) -> None:
    step = _step(stored)

    assert isinstance(step, Keep if expected is None else Annotate)
    assert not isinstance(step, Annotate) or step.annotations == expected


CLUSTER = KindFacts(Resource("acid.zalan.do", "v1", "postgresql", "postgresqls"), stateful=True, allowed=True)


def _foreign(facts: KindFacts = VOLUME, *, deleted: bool = False, **fields: Any) -> ObservedChild:
    """Return another operator's child with data, which our finalizer holds."""
    uid = fields.get("uid", "child-uid")
    stored = live(desired("data", facts), uid=uid, deleted=deleted, finalizers=[names.TEARDOWN_FINALIZER])
    return observed("data", facts, stored=stored, **fields)


def _unlabelled(**meta: Any) -> ObservedChild:
    stored = live(desired("data", VOLUME), **meta)
    stored["metadata"]["labels"] = {}
    return observed("data", VOLUME, stored=stored)


DATA, DYING_DATA, UNLABELLED = _foreign(), _foreign(deleted=True), _unlabelled(finalizers=[names.TEARDOWN_FINALIZER])
CLUSTERED, DYING_CLUSTER = _foreign(CLUSTER), _foreign(CLUSTER, deleted=True)
CONSENTED = {"of": claim(deleted=True, annotations={names.CONSENT: "data=child-uid"})}


@pytest.mark.parametrize(
    ("known", "policy", "around", "expected", "held"),
    [
        pytest.param(DATA, "Delete", {}, Delete, "", id="Delete"),
        pytest.param(DATA, "Orphan", {}, Orphan, "", id="Orphan"),
        pytest.param(DATA, "Snapshot", {}, Keep, "BackupImpossible", id="Snapshot, which nobody can do"),
        pytest.param(DYING_DATA, "Delete", {}, RemoveFinalizer, "", id="released while it goes"),
        pytest.param(DYING_DATA, "Orphan", {}, Keep, "HeldDeletion", id="kept while it goes against the policy"),
        pytest.param(DYING_DATA, "Orphan", CONSENTED, RemoveFinalizer, "", id="released by consent"),
        pytest.param(DYING_DATA, "Orphan", {"namespace": GOING}, RemoveFinalizer, "", id="goes with its namespace"),
        pytest.param(UNLABELLED, "Delete", {}, Delete, "", id="only its label was taken off, Delete"),
        pytest.param(UNLABELLED, "Orphan", {}, Orphan, "", id="only its label was taken off, Orphan"),
        pytest.param(UNLABELLED, "Snapshot", {}, Keep, "BackupImpossible", id="only its label was taken off, Snapshot"),
        pytest.param(CLUSTERED, "Delete", {"namespace": EPHEMERAL}, Delete, "", id="ephemeral, Delete"),
        pytest.param(CLUSTERED, "Orphan", {"namespace": EPHEMERAL}, Orphan, "", id="ephemeral, Orphan"),
        pytest.param(
            DYING_CLUSTER,
            "Delete",
            {"namespace": EPHEMERAL},
            RemoveFinalizer,
            "",
            id="deleted before its claim, Delete",
        ),
        pytest.param(
            DYING_CLUSTER,
            "Orphan",
            {"namespace": EPHEMERAL},
            RemoveFinalizer,
            "",
            id="deleted before its claim, Orphan",
        ),
        pytest.param(CLUSTERED, "Delete", {"kind_deleting": True}, Orphan, "", id="the claim's kind goes"),
    ],
)
def test_a_foreign_child_with_data_is_deleted_or_released_by_policy(
    known: ObservedChild, policy: DeletionPolicy, around: Any, expected: type, held: str
) -> None:
    plan = tear_down(snapshot(known, **{"of": claim(deleted=True), **around}), policy)

    assert [type(step) for step in plan.steps] == [expected]
    assert {why.reason for why in plan.causes} - {"Deleting"} == ({held} if held else set())
    assert all("data=child-uid" in why.message for why in plan.causes if why.reason == "HeldDeletion")
    assert not plan.done


@pytest.mark.parametrize("deleted", [False, True], ids=["it is there", "it was deleted"])
def test_a_foreign_child_with_data_holds_its_namespace_until_a_consent(*, deleted: bool) -> None:
    known, space = _foreign(CLUSTER, deleted=deleted), _namespace(deleted=True)
    owner = claim(deleted=True, deletionPolicy="Delete")
    consented = annotated(owner, consent="data=child-uid")

    held = tear_down(snapshot(known, of=owner, namespace=space), "Delete")
    (step,) = tear_down(snapshot(known, of=consented, namespace=space), "Delete").steps

    assert [type(kept) for kept in held.steps] == [Keep]
    assert [why.reason for why in held.causes] == ["HeldDeletion"]
    assert "fairlead.dev/consent=data=child-uid" in held.causes[0].message
    assert "kubectl label namespace/shop fairlead.dev/ephemeral=true" in held.causes[0].message
    assert isinstance(step, RemoveFinalizer if deleted else Orphan)


@pytest.mark.parametrize(
    ("policy", "end"),
    [
        ("Orphan", "(Orphan); orders_x7 and its Secrets stay"),
        ("Snapshot", "(Snapshot)"),
        ("Delete", "(Delete)"),
    ],
)
def test_a_deletion_reports_what_stays_in_the_cloud(policy: DeletionPolicy, end: str) -> None:
    stored = annotated(LIVE, **{"external-name": "orders_x7"})
    step = _step(stored, policy)

    assert isinstance(step, Delete)
    assert step.why == f"the claim is being deleted {end}"


def test_the_blocker_of_a_child_is_reported() -> None:
    blocked = {
        **DONE,
        "status": {"conditions": [{"type": "Stalled", "status": "True", "reason": "DeleteBlocked", "message": "why"}]},
    }
    plan = tear_down(_going(observed(stored=blocked)), "Delete")

    assert plan.causes[0].reason == "DeleteBlocked"
    assert "why" in plan.causes[0].message


@pytest.mark.parametrize("policy", ["Orphan", "Snapshot", "Delete"])
def test_an_unlistable_kind_holds_the_claim(policy: DeletionPolicy) -> None:
    plan = tear_down(_going(replace(observed(stored=None), facts=None, unseen=True)), policy)

    assert not plan.done
    assert [cause.reason for cause in plan.causes] == ["KindNotInstalled"]


def test_a_pause_reaches_a_child_that_is_being_deleted() -> None:
    owner = annotated(claim(deleted=True), paused="true")
    (step,) = mirrored_pause(snapshot(observed(stored=DONE), of=owner))

    assert isinstance(step, Annotate)
    assert step.annotations == {names.PAUSED: "true"}
