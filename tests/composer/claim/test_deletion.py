"""How a claim goes: the instruction, the waves, what is held."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from apis import names
from apis.teardown import DeletionPolicy
from composer.claim.decide import Annotate, Delete, Keep, Orphan, RemoveFinalizer, Step, mirrored_pause
from composer.claim.deletion import effective_policy, tear_down, teardown_policy
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.kinds.catalog import KindFacts
from runtime.objects import Object, Resource
from tests.composer.factories import NOW, SETTINGS, VOLUME, annotated, claim, desired, live, observed, snapshot

LIVE = live(desired())
DYING = live(desired(), deleted=True)
DONE = annotated(DYING, teardown="child-uid/Delete")


def _namespace(*, deleted: bool, ephemeral: bool = False) -> Object:
    meta: Object = {"name": "shop", "labels": {names.EPHEMERAL_LABEL: "true"} if ephemeral else {}}
    if deleted:
        meta["deletionTimestamp"] = NOW
    return {"metadata": meta}


class Word(msgspec.Struct, frozen=True):
    policy: DeletionPolicy
    gives: str
    namespace: bool = False
    ephemeral: bool = False
    kind: bool = False


WORDS = {
    "the claim's own policy": Word("Delete", "Delete"),
    "a snapshot": Word("Snapshot", "Snapshot"),
    "left alone": Word("Orphan", "Orphan"),
    "a namespace's deletion destroys nothing": Word("Delete", "Detach", namespace=True),
    "unless it is ephemeral": Word("Delete", "Delete", namespace=True, ephemeral=True),
    "and then by the policy": Word("Orphan", "Orphan", namespace=True, ephemeral=True),
    "the kind's deletion destroys nothing": Word("Delete", "Detach", kind=True),
    "the kind's deletion in an ephemeral namespace, too": Word(
        "Delete", "Detach", kind=True, namespace=True, ephemeral=True
    ),
    "an ephemeral namespace that lives changes nothing": Word("Snapshot", "Snapshot", ephemeral=True),
}


@pytest.mark.parametrize("case", WORDS.values(), ids=WORDS)
def test_the_instruction_follows_from_the_policy(case: Word) -> None:
    space = _namespace(deleted=case.namespace, ephemeral=case.ephemeral)

    assert teardown_policy(snapshot(namespace=space, kind_deleting=case.kind), case.policy) == case.gives


class Policy(msgspec.Struct, frozen=True):
    wanted: DeletionPolicy
    supported: tuple[DeletionPolicy, ...] | None
    last: str
    gives: DeletionPolicy


POLICIES = {
    "a supported one": Policy("Delete", ("Orphan", "Delete"), "", "Delete"),
    "one that is not supported": Policy("Snapshot", ("Orphan", "Delete"), "Snapshot", "Orphan"),
    "the composition is gone and nothing changed": Policy("Delete", None, "Delete", "Delete"),
    "the composition is gone and it was changed since": Policy("Delete", None, "Orphan", "Orphan"),
}


@pytest.mark.parametrize("case", POLICIES.values(), ids=POLICIES)
def test_the_policy_in_force_follows_from_claim_and_composition(case: Policy) -> None:
    owner = claim(deletionPolicy=case.wanted, status={"deletionPolicy": case.last})

    assert effective_policy(snapshot(of=owner), case.supported) == case.gives


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


INSTRUCTED: dict[str, tuple[Object, DeletionPolicy, str]] = {
    "a child of before children had a policy": (LIVE, "Delete", "Delete"),
    "a child of a claim that is edited and deleted at once": (_with_policy(LIVE, "Orphan"), "Delete", "Delete"),
    "a child that has the policy": (_with_policy(LIVE, "Delete"), "Delete", ""),
    "a child that is backed up": (LIVE, "Snapshot", "Snapshot"),
}


@pytest.mark.parametrize(("stored", "policy", "sent"), INSTRUCTED.values(), ids=INSTRUCTED)
def test_a_managed_child_is_deleted_with_the_instruction_and_the_policy_in_force(
    stored: Object, policy: DeletionPolicy, sent: str
) -> None:
    step = _step(stored, policy)

    assert isinstance(step, Delete)
    assert (step.instruction, step.policy) == (f"child-uid/{policy}", sent)


def test_an_orphaned_child_keeps_its_policy() -> None:
    going = snapshot(observed(), of=claim(deleted=True), namespace=_namespace(deleted=True))
    (step,) = tear_down(going, "Delete").steps

    assert isinstance(step, Delete)
    assert (step.instruction, step.policy) == ("child-uid/Detach", "")


def test_a_child_that_has_the_instruction_without_the_policy_gets_the_policy() -> None:
    """Its provider was upgraded before its composer."""
    step = _step(_with_policy(DONE, "Orphan"))

    assert isinstance(step, Annotate)
    assert (step.annotations, step.policy) == ({}, "Delete")


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


def test_a_pause_reaches_a_child_that_is_being_deleted() -> None:
    owner = annotated(claim(deleted=True), paused="true")
    (step,) = mirrored_pause(snapshot(observed(stored=DONE), of=owner))

    assert isinstance(step, Annotate)
    assert step.annotations == {names.PAUSED: "true"}


def _deleted(*known: ObservedChild) -> list[str]:
    return [step.entry.resource for step in tear_down(_going(*known), "Delete").steps if isinstance(step, Delete)]


def test_waves_are_deleted_in_reverse_order() -> None:
    base = observed("base", SETTINGS, uid="base")
    middle = observed("middle", SETTINGS, uid="middle", depends_on=("base",))
    top = observed("top", SETTINGS, uid="top", depends_on=("middle",))
    middle_gone, top_gone = replace(middle, live=None), replace(top, live=None)

    assert _deleted(base, middle, top) == ["top"]
    assert _deleted(base, middle, top_gone) == ["middle"]
    assert _deleted(base, middle_gone, top_gone) == ["base"]


def test_a_child_that_lives_inside_another_goes_with_it() -> None:
    inside = msgspec.structs.replace(SETTINGS, inside=True)
    server = observed(uid="server")
    user = observed("user", inside, uid="user", depends_on=("database",))
    other = observed("other", SETTINGS, uid="other", depends_on=("database",))

    assert _deleted(server, user) == ["database", "user"]
    assert _deleted(server, user, other) == ["user", "other"]


def test_a_teardown_is_done_when_all_children_are_proven_gone() -> None:
    plan = tear_down(_going(observed(stored=None)), "Delete")

    assert plan.done
    assert plan.steps == ()
    assert not plan.keeps_secret


@pytest.mark.parametrize("policy", ["Orphan", "Detach"])
def test_the_connection_secret_stays_where_the_database_does(policy: str) -> None:
    space = _namespace(deleted=policy == "Detach")
    plan = tear_down(snapshot(of=claim(deleted=True), namespace=space), "Orphan" if policy == "Orphan" else "Delete")

    assert plan.keeps_secret


CLUSTER = KindFacts(Resource("acid.zalan.do", "v1", "postgresql", "postgresqls"), stateful=True, allowed=True)


def _foreign(facts: KindFacts = VOLUME, *, deleted: bool = False, **fields: Any) -> ObservedChild:
    """Return another operator's child with data, which our finalizer holds."""
    uid = fields.get("uid", "child-uid")
    stored = live(desired("data", facts), uid=uid, deleted=deleted, finalizers=[names.TEARDOWN_FINALIZER])
    return observed("data", facts, stored=stored, **fields)


class Foreign(msgspec.Struct, frozen=True):
    policy: DeletionPolicy
    deleted: bool
    expected: type


FOREIGN = {
    "is deleted under Delete": Foreign("Delete", deleted=False, expected=Delete),
    "is left alone under Orphan": Foreign("Orphan", deleted=False, expected=Orphan),
    "is kept under Snapshot, which nobody can do": Foreign("Snapshot", deleted=False, expected=Keep),
    "is released while it goes": Foreign("Delete", deleted=True, expected=RemoveFinalizer),
    "is kept while it goes against the policy": Foreign("Orphan", deleted=True, expected=Keep),
}


@pytest.mark.parametrize("case", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_child_with_data_is_deleted_or_released_by_policy(case: Foreign) -> None:
    (step,) = tear_down(_going(_foreign(deleted=case.deleted)), case.policy).steps

    assert isinstance(step, case.expected)


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


WITH_NAMESPACE = {
    "under Delete": Foreign("Delete", deleted=False, expected=Delete),
    "under Orphan": Foreign("Orphan", deleted=False, expected=Orphan),
    "under Delete, when the namespace controller deleted it first": Foreign(
        "Delete", deleted=True, expected=RemoveFinalizer
    ),
    "under Orphan, when the namespace controller deleted it first": Foreign(
        "Orphan", deleted=True, expected=RemoveFinalizer
    ),
}


@pytest.mark.parametrize("case", WITH_NAMESPACE.values(), ids=WITH_NAMESPACE)
def test_a_foreign_child_goes_with_an_ephemeral_namespace_by_the_policy(case: Foreign) -> None:
    going = snapshot(
        _foreign(CLUSTER, deleted=case.deleted),
        of=claim(deleted=True, deletionPolicy=case.policy),
        namespace=_namespace(deleted=True, ephemeral=True),
    )

    assert [type(step) for step in tear_down(going, case.policy).steps] == [case.expected]


def test_a_foreign_child_stays_when_the_kind_of_its_claim_goes() -> None:
    plan = tear_down(snapshot(_foreign(CLUSTER), of=claim(deleted=True), kind_deleting=True), "Delete")

    assert [type(step) for step in plan.steps] == [Orphan]


def test_a_foreign_child_that_was_released_blocks_nothing() -> None:
    stored = live(desired("data", VOLUME))
    stored["metadata"]["labels"] = {}

    assert tear_down(_going(observed("data", VOLUME, stored=stored)), "Orphan").done


@pytest.mark.parametrize(("policy", "expected"), [("Delete", Delete), ("Orphan", Orphan), ("Snapshot", Keep)])
def test_a_foreign_child_whose_label_alone_was_taken_off_is_not_gone(policy: DeletionPolicy, expected: type) -> None:
    stored = live(desired("data", VOLUME), finalizers=[names.TEARDOWN_FINALIZER])
    stored["metadata"]["labels"] = {}
    plan = tear_down(_going(observed("data", VOLUME, stored=stored)), policy)

    assert [type(step) for step in plan.steps] == [expected]
    assert not plan.done


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


def test_a_snapshot_policy_holds_all_beside_data_that_nobody_can_back_up() -> None:
    plan = tear_down(_going(observed(), _foreign(uid="data-uid")), "Snapshot")

    assert [type(step) for step in plan.steps] == [Keep, Keep]
    assert [cause.reason for cause in plan.causes] == ["BackupImpossible"]
    assert "Orphan" in plan.causes[0].message
    assert (plan.done, plan.keeps_secret) == (False, True)


def test_foreign_data_that_is_deleted_against_the_policy_is_released_by_consent() -> None:
    data = _foreign(deleted=True, uid="data-uid")
    held = tear_down(_going(data), "Orphan")
    freed = tear_down(snapshot(data, of=claim(deleted=True, annotations={names.CONSENT: "data=data-uid"})), "Orphan")

    assert [cause.reason for cause in held.causes] == ["HeldDeletion"]
    assert "data=data-uid" in held.causes[0].message
    assert [type(step) for step in freed.steps] == [RemoveFinalizer]


def test_a_child_that_goes_with_its_namespace_is_not_held() -> None:
    data = _foreign(deleted=True, uid="data-uid")
    plan = tear_down(snapshot(data, of=claim(deleted=True), namespace=_namespace(deleted=True)), "Orphan")

    assert [type(step) for step in plan.steps] == [RemoveFinalizer]


@pytest.mark.parametrize("policy", ["Orphan", "Snapshot", "Delete"])
def test_an_unlistable_kind_holds_the_claim(policy: DeletionPolicy) -> None:
    plan = tear_down(_going(replace(observed(stored=None), facts=None, unseen=True)), policy)

    assert not plan.done
    assert [cause.reason for cause in plan.causes] == ["KindNotInstalled"]
