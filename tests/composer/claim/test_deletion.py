"""How a claim goes: the instruction, the waves, what is held."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from apis import names
from apis.teardown import DeletionPolicy
from composer.claim.decide import Annotate, Delete, Keep, Orphan, RemoveFinalizer, mirrored_pause
from composer.claim.deletion import effective_policy, tear_down, teardown_policy
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.kinds.catalog import KindFacts
from runtime.objects import Object, Resource
from tests.composer.factories import DATABASE, NOW, SETTINGS, VOLUME, annotated, claim, desired, entry, live, snapshot

LIVE = live(desired())
DYING = live(desired(), deleted=True)


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


def test_a_protected_claim_is_held_whatever_else_is_set() -> None:
    plan = tear_down(_going(ObservedChild(entry(), DYING, DATABASE), deletionProtection=True), "Delete")

    assert [type(step) for step in plan.steps] == [Keep]
    assert [cause.reason for cause in plan.causes] == ["DeletionProtected"]
    assert not plan.done


def test_a_managed_child_gets_the_instruction_and_is_deleted() -> None:
    (step,) = tear_down(_going(ObservedChild(entry(), LIVE, DATABASE)), "Snapshot").steps

    assert isinstance(step, Delete)
    assert step.instruction == "child-uid/Snapshot"


def _with_policy(obj: Object, policy: str) -> Object:
    return {**obj, "spec": {**obj["spec"], "deletionPolicy": policy}}


@pytest.mark.parametrize("stored", [LIVE, _with_policy(LIVE, "Orphan")], ids=["without one", "with another one"])
def test_a_child_gets_the_policy_in_force_with_the_instruction(stored: Object) -> None:
    """A claim that is edited and deleted at once, and a child of before children had a policy."""
    (step,) = tear_down(_going(ObservedChild(entry(), stored, DATABASE)), "Delete").steps

    assert isinstance(step, Delete)
    assert step.policy == "Delete"


def test_a_child_that_has_its_policy_gets_the_instruction_alone() -> None:
    (step,) = tear_down(_going(ObservedChild(entry(), _with_policy(LIVE, "Delete"), DATABASE)), "Delete").steps

    assert isinstance(step, Delete)
    assert step.policy == ""


def test_an_orphaned_child_keeps_its_policy() -> None:
    going = snapshot(ObservedChild(entry(), LIVE, DATABASE), of=claim(deleted=True), namespace=_namespace(deleted=True))
    (step,) = tear_down(going, "Delete").steps

    assert isinstance(step, Delete)
    assert (step.instruction, step.policy) == ("child-uid/Detach", "")


def test_a_child_that_has_the_instruction_without_the_policy_gets_the_policy() -> None:
    """Its provider was upgraded before its composer."""
    instructed = _with_policy(annotated(DYING, teardown="child-uid/Delete"), "Orphan")
    (step,) = tear_down(_going(ObservedChild(entry(), instructed, DATABASE)), "Delete").steps

    assert isinstance(step, Annotate)
    assert (step.annotations, step.policy) == ({}, "Delete")


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (annotated(LIVE, paused="true"), {names.PAUSED: None}),
        (annotated(DYING, paused="true"), {names.PAUSED: None, names.TEARDOWN: "child-uid/Delete"}),
        (annotated(DYING, paused="true", teardown="child-uid/Delete"), {names.PAUSED: None}),
    ],
    ids=["that lives", "that goes", "that has the instruction"],
)
def test_a_pause_that_has_ended_is_lifted_from_a_child(stored: Object, expected: dict[str, str | None]) -> None:
    (step,) = tear_down(_going(ObservedChild(entry(), stored, DATABASE)), "Delete").steps

    assert isinstance(step, Annotate)
    assert step.annotations == expected


def test_a_pause_reaches_a_child_that_is_being_deleted() -> None:
    owner = annotated(claim(deleted=True), paused="true")
    (step,) = mirrored_pause(
        snapshot(ObservedChild(entry(), annotated(DYING, teardown="child-uid/Delete"), DATABASE), of=owner)
    )

    assert isinstance(step, Annotate)
    assert step.annotations == {names.PAUSED: "true"}


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (DYING, "child-uid/Delete"),
        (annotated(DYING, teardown="child-uid/Detach"), "child-uid/Delete"),
        (annotated(DYING, teardown="other-uid/Delete"), "child-uid/Delete"),
        (_with_policy(annotated(DYING, teardown="child-uid/Delete"), "Delete"), None),
    ],
    ids=["without one", "with another one", "with a void one", "with it"],
)
def test_a_child_that_is_being_deleted_gets_the_instruction_once(stored: Object, expected: str | None) -> None:
    (step,) = tear_down(_going(ObservedChild(entry(), stored, DATABASE)), "Delete").steps

    if expected is None:
        assert isinstance(step, Keep)
    else:
        assert isinstance(step, Annotate)
        assert step.annotations == {names.TEARDOWN: expected}


def test_waves_are_deleted_in_reverse_order() -> None:
    base = ObservedChild(entry("base", SETTINGS, uid="base"), live(desired("base", SETTINGS), uid="base"), SETTINGS)
    middle = ObservedChild(
        entry("middle", SETTINGS, uid="middle", depends_on=("base",)),
        live(desired("middle", SETTINGS), uid="middle"),
        SETTINGS,
    )
    top = ObservedChild(
        entry("top", SETTINGS, uid="top", depends_on=("middle",)), live(desired("top", SETTINGS)), SETTINGS
    )

    def goes(*known: ObservedChild) -> list[str]:
        return [step.entry.resource for step in tear_down(_going(*known), "Delete").steps if isinstance(step, Delete)]

    assert goes(base, middle, top) == ["top"]
    assert goes(base, middle, ObservedChild(top.entry, None, SETTINGS)) == ["middle"]
    assert goes(base, ObservedChild(middle.entry, None, SETTINGS), ObservedChild(top.entry, None, SETTINGS)) == ["base"]


def test_a_child_that_lives_inside_another_goes_with_it() -> None:
    inside = msgspec.structs.replace(SETTINGS, inside=True)
    server = ObservedChild(entry(uid="server"), live(desired(), uid="server"), DATABASE)
    user = ObservedChild(
        entry("user", SETTINGS, uid="user", depends_on=("database",)),
        live(desired("user", SETTINGS), uid="user"),
        inside,
    )
    other = ObservedChild(
        entry("other", SETTINGS, uid="other", depends_on=("database",)),
        live(desired("other", SETTINGS), uid="other"),
        SETTINGS,
    )

    def goes(*known: ObservedChild) -> list[str]:
        return [step.entry.resource for step in tear_down(_going(*known), "Delete").steps if isinstance(step, Delete)]

    assert goes(server, user) == ["database", "user"]
    assert goes(server, user, other) == ["user", "other"]


def test_a_teardown_is_done_when_all_children_are_proven_gone() -> None:
    plan = tear_down(_going(ObservedChild(entry(), None, DATABASE)), "Delete")

    assert plan.done
    assert plan.steps == ()
    assert not plan.keeps_secret


@pytest.mark.parametrize("policy", ["Orphan", "Detach"])
def test_the_connection_secret_stays_where_the_database_does(policy: str) -> None:
    space = _namespace(deleted=policy == "Detach")
    plan = tear_down(snapshot(of=claim(deleted=True), namespace=space), "Orphan" if policy == "Orphan" else "Delete")

    assert plan.keeps_secret


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
    stored = live(desired("data", VOLUME), deleted=case.deleted, finalizers=[names.TEARDOWN_FINALIZER])
    (step,) = tear_down(_going(ObservedChild(entry("data", VOLUME), stored, VOLUME)), case.policy).steps

    assert isinstance(step, case.expected)


CLUSTER = KindFacts(Resource("acid.zalan.do", "v1", "postgresql", "postgresqls"), stateful=True, allowed=True)


@pytest.mark.parametrize("deleted", [False, True], ids=["it is there", "it was deleted"])
def test_a_foreign_child_with_data_holds_its_namespace_until_a_consent(*, deleted: bool) -> None:
    stored = live(desired("data", CLUSTER), deleted=deleted, finalizers=[names.TEARDOWN_FINALIZER])
    known, space = ObservedChild(entry("data", CLUSTER), stored, CLUSTER), _namespace(deleted=True)
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
    stored = live(desired("data", CLUSTER), deleted=case.deleted, finalizers=[names.TEARDOWN_FINALIZER])
    going = snapshot(
        ObservedChild(entry("data", CLUSTER), stored, CLUSTER),
        of=claim(deleted=True, deletionPolicy=case.policy),
        namespace=_namespace(deleted=True, ephemeral=True),
    )

    assert [type(step) for step in tear_down(going, case.policy).steps] == [case.expected]


def test_a_foreign_child_stays_when_the_kind_of_its_claim_goes() -> None:
    stored = live(desired("data", CLUSTER), finalizers=[names.TEARDOWN_FINALIZER])
    known = ObservedChild(entry("data", CLUSTER), stored, CLUSTER)

    plan = tear_down(snapshot(known, of=claim(deleted=True), kind_deleting=True), "Delete")

    assert [type(step) for step in plan.steps] == [Orphan]


def test_a_foreign_child_that_was_released_blocks_nothing() -> None:
    stored = live(desired("data", VOLUME))
    stored["metadata"]["labels"] = {}

    assert tear_down(_going(ObservedChild(entry("data", VOLUME), stored, VOLUME)), "Orphan").done


@pytest.mark.parametrize(("policy", "expected"), [("Delete", Delete), ("Orphan", Orphan), ("Snapshot", Keep)])
def test_a_foreign_child_whose_label_alone_was_taken_off_is_not_gone(policy: DeletionPolicy, expected: type) -> None:
    stored = live(desired("data", VOLUME), finalizers=[names.TEARDOWN_FINALIZER])
    stored["metadata"]["labels"] = {}
    plan = tear_down(_going(ObservedChild(entry("data", VOLUME), stored, VOLUME)), policy)

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
    (step,) = tear_down(_going(ObservedChild(entry(), stored, DATABASE)), policy).steps

    assert isinstance(step, Delete)
    assert step.why == f"the claim is being deleted {end}"


def test_the_blocker_of_a_child_is_reported() -> None:
    blocked = {
        **annotated(DYING, teardown="child-uid/Delete"),
        "status": {"conditions": [{"type": "Stalled", "status": "True", "reason": "DeleteBlocked", "message": "why"}]},
    }
    plan = tear_down(_going(ObservedChild(entry(), blocked, DATABASE)), "Delete")

    assert plan.causes[0].reason == "DeleteBlocked"
    assert "why" in plan.causes[0].message


_VOLUME = live(desired("data", VOLUME), uid="data-uid", finalizers=[names.TEARDOWN_FINALIZER])
_VOLUME_DYING = live(desired("data", VOLUME), uid="data-uid", deleted=True, finalizers=[names.TEARDOWN_FINALIZER])


def test_a_snapshot_policy_holds_all_beside_data_that_nobody_can_back_up() -> None:
    data = ObservedChild(entry("data", VOLUME, uid="data-uid"), _VOLUME, VOLUME)
    plan = tear_down(_going(ObservedChild(entry(), LIVE, DATABASE), data), "Snapshot")

    assert [type(step) for step in plan.steps] == [Keep, Keep]
    assert [cause.reason for cause in plan.causes] == ["BackupImpossible"]
    assert "Orphan" in plan.causes[0].message
    assert (plan.done, plan.keeps_secret) == (False, True)


def test_foreign_data_that_is_deleted_against_the_policy_is_released_by_consent() -> None:
    data = ObservedChild(entry("data", VOLUME, uid="data-uid"), _VOLUME_DYING, VOLUME)
    held = tear_down(_going(data), "Orphan")
    freed = tear_down(snapshot(data, of=claim(deleted=True, annotations={names.CONSENT: "data=data-uid"})), "Orphan")

    assert [cause.reason for cause in held.causes] == ["HeldDeletion"]
    assert "data=data-uid" in held.causes[0].message
    assert [type(step) for step in freed.steps] == [RemoveFinalizer]


def test_a_child_that_goes_with_its_namespace_is_not_held() -> None:
    data = ObservedChild(entry("data", VOLUME, uid="data-uid"), _VOLUME_DYING, VOLUME)
    plan = tear_down(snapshot(data, of=claim(deleted=True), namespace=_namespace(deleted=True)), "Orphan")

    assert [type(step) for step in plan.steps] == [RemoveFinalizer]


@pytest.mark.parametrize("policy", ["Orphan", "Snapshot", "Delete"])
def test_an_unlistable_kind_holds_the_claim(policy: DeletionPolicy) -> None:
    plan = tear_down(_going(ObservedChild(entry(), None, None, unseen=True)), policy)

    assert not plan.done
    assert [cause.reason for cause in plan.causes] == ["KindNotInstalled"]
