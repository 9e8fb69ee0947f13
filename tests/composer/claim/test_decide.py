"""What is done with each child of a living claim: every row of the decision."""

# long: one table of rows for all that is decided of a child
from __future__ import annotations

import pytest

from apis import names
from composer.claim.decide import (
    Annotate,
    Create,
    Delete,
    Keep,
    Orphan,
    Step,
    decide,
)
from composer.claim.snapshot import ObservedChild, Snapshot
from composer.inventory import external_reference_of
from composer.render.render import Rendered
from tests.composer.factories import (
    DATABASE,
    NOW,
    SETTINGS,
    VOLUME,
    annotated,
    child,
    claim,
    desired,
    entry,
    live,
    observed,
    rendered,
    sent,
    snapshot,
)

WANTED = desired()
LIVE = live(WANTED)
MARKS = {"external-name": "orders_x", "incarnation": "16400", "account": "77"}
MARKED = annotated(LIVE, external_name="orders_x", incarnation="16400", account="77")


SENT = sent(WANTED, LIVE)


def _only_step(known: Snapshot, composed: Rendered) -> Step:
    (step,) = decide(known, composed, now=NOW).steps
    return step


def _reasons(known: Snapshot, composed: Rendered) -> list[str]:
    return [cause.reason for cause in decide(known, composed, now=NOW).causes]


def test_a_foreign_object_of_our_name_is_not_touched() -> None:
    stranger = live({**WANTED, "metadata": {**WANTED["metadata"], "labels": {}}}, uid="strangers")
    known = snapshot(ObservedChild(entry(uid=""), stranger, DATABASE))
    composed = rendered(child(WANTED))

    assert isinstance(_only_step(known, composed), Keep)
    assert _reasons(known, composed) == ["NotOwned"]


def test_a_child_that_is_gone_is_created_again_with_its_external_references_and_finalizer() -> None:
    gone = observed(stored=None, external_reference=MARKS)
    step = _only_step(snapshot(gone), rendered(child(WANTED, ready=False)))

    assert isinstance(step, Create)
    assert step.object["metadata"]["finalizers"] == [names.TEARDOWN_FINALIZER]
    assert external_reference_of(step.object) == MARKS


def test_a_first_child_is_created_under_the_name_in_the_cloud_that_its_claim_says() -> None:
    named = claim(annotations={names.EXTERNAL_NAMES: "network=n, database=legacy"})
    step = _only_step(snapshot(of=named), rendered(child(WANTED, ready=False)))

    assert isinstance(step, Create)
    assert external_reference_of(step.object) == step.entry.external_reference == {"external-name": "legacy"}


@pytest.mark.parametrize(
    ("recorded", "instruction", "expected"),
    [
        pytest.param({}, "", None, id="its marks are recorded first"),
        pytest.param(MARKS, "", "child-uid/Detach", id="then it is let go of"),
        pytest.param({**MARKS, "lost": "x"}, "", "child-uid/Detach", id="also where it has lost some of them"),
        pytest.param(MARKS, "other/Delete", "child-uid/Detach", id="an instruction for another uid is void"),
        pytest.param(MARKS, "child-uid/Delete", "child-uid/Detach", id="an instruction that was written is removed"),
        pytest.param(MARKS, "child-uid/Detach", None, id="it is instructed once"),
    ],
)
def test_a_wanted_child_that_somebody_deleted_is_detached(
    recorded: dict[str, str], instruction: str, expected: str | None
) -> None:
    dying = annotated(live(MARKED, deleted=True), **({"teardown": instruction} if instruction else {}))
    known = snapshot(observed(stored=dying, external_reference=recorded))
    step = _only_step(known, rendered(child(WANTED, ready=False)))

    assert step.entry.external_reference == {**MARKS, **recorded}
    assert (step.annotations if isinstance(step, Annotate) else type(step)) == (
        {names.TEARDOWN: expected} if expected else Keep
    )


def test_an_instruction_on_a_living_child_is_removed() -> None:
    instructed = annotated(LIVE, teardown="child-uid/Delete")

    step = _only_step(snapshot(ObservedChild(SENT, instructed, DATABASE)), rendered(child(WANTED)))

    assert isinstance(step, Annotate)
    assert step.annotations == {names.TEARDOWN: None}


def test_a_kind_that_is_gone_is_named() -> None:
    gadget = {**WANTED, "kind": "Gadget"}

    assert _reasons(snapshot(), rendered(child(gadget))) == ["KindNotInstalled"]


# Prune

SETTINGS_KNOWN = observed("settings", SETTINGS, uid="settings-uid")
DATABASE_KNOWN = ObservedChild(SENT, LIVE, DATABASE)
SETTINGS_ALONE = rendered(child(desired("settings", SETTINGS), "settings"))


def test_a_child_without_data_is_deleted() -> None:
    plan = decide(snapshot(DATABASE_KNOWN, SETTINGS_KNOWN), rendered(child(WANTED)), now=NOW)

    (removed,) = [step for step in plan.steps if isinstance(step, Delete)]
    assert (removed.entry.resource, removed.instruction) == ("settings", "")
    assert plan.causes == ()


def test_a_child_with_data_is_held_and_the_consent_is_named() -> None:
    plan = decide(snapshot(DATABASE_KNOWN, SETTINGS_KNOWN), SETTINGS_ALONE, now=NOW)

    assert not [step for step in plan.steps if isinstance(step, Delete)]
    (held,) = plan.causes
    assert held.reason == "HeldDeletion"
    assert "fairlead.dev/consent=database=child-uid`" in held.message


@pytest.mark.parametrize(
    ("consent", "goes"),
    [
        ("database=child-uid", True),
        ("settings=x, database=child-uid", True),
        ("database=other-uid", False),
        ("database", False),
        ("child-uid", False),
    ],
)
def test_consent_is_for_one_uid(consent: str, *, goes: bool) -> None:
    owner = claim(annotations={names.CONSENT: consent}, deletionPolicy="Snapshot")
    plan = decide(snapshot(DATABASE_KNOWN, SETTINGS_KNOWN, of=owner), SETTINGS_ALONE, now=NOW)
    removed = [(step.instruction, step.policy) for step in plan.steps if isinstance(step, Delete)]

    assert removed == ([("child-uid/Snapshot", "Snapshot")] if goes else [])


def test_foreign_data_is_left_alone_with_consent_under_orphan() -> None:
    owner = claim(annotations={names.CONSENT: "data=data-uid"})
    known = snapshot(DATABASE_KNOWN, observed("data", VOLUME, uid="data-uid"), of=owner)

    plan = decide(known, rendered(child(WANTED)), now=NOW)

    assert [type(step) for step in plan.steps] == [Keep, Orphan]


def test_a_child_whose_namespace_is_deleted_gets_no_instruction() -> None:
    going = {"metadata": {"name": "shop", "labels": {}, "deletionTimestamp": NOW}}
    dying = observed(stored=live(MARKED, deleted=True), external_reference=MARKS)
    plan = decide(snapshot(dying, namespace=going), rendered(child(WANTED)), now=NOW)

    assert [type(step) for step in plan.steps] == [Keep]


def test_most_of_the_children_are_not_deleted_at_once() -> None:
    known = [observed(name, SETTINGS, uid=name) for name in ("a", "b", "c")]
    kept = rendered(child(desired("a", SETTINGS), "a"))

    assert _reasons(snapshot(*known), kept) == ["HeldDeletion", "HeldDeletion"]


def test_data_under_another_object_name_is_held_and_nothing_takes_its_place() -> None:
    plan = decide(snapshot(observed(name="orders-database-former")), rendered(child(desired())), now=NOW)

    assert [cause.reason for cause in plan.causes] == ["HeldDeletion"]
    assert [type(step) for step in plan.steps] == [Keep]


def test_a_deletion_waits_while_something_else_fails() -> None:
    stranger = observed(stored=live(WANTED, uid="other", labels={}))
    known = (observed("settings", SETTINGS), stranger, observed("a", SETTINGS))

    plan = decide(snapshot(*known), rendered(child(WANTED), child(desired("a", SETTINGS), "a")), now=NOW)

    assert [cause.reason for cause in plan.causes] == ["NotOwned", "ResourcePending"]
    assert not any(isinstance(step, Delete) for step in plan.steps)


def test_a_child_is_deleted_after_those_that_depend_on_it() -> None:
    user = observed("user", SETTINGS, uid="user-uid", depends_on=("settings",))
    more = observed("more", SETTINGS, uid="m")
    composed = rendered(child(WANTED), child(desired("more", SETTINGS), "more"))
    plan = decide(snapshot(DATABASE_KNOWN, more, SETTINGS_KNOWN, user), composed, now=NOW)

    assert [step.entry.resource for step in plan.steps if isinstance(step, Delete)] == ["user"]


# Pause and yielded fields
