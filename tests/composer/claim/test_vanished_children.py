"""A claim goes, and a child is not there although no teardown instruction was written for its provider."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apis import names
from composer.claim.debounce import UnwrittenEntries
from composer.claim.decide import Create, Keep
from composer.claim.deletion import Teardown, has_vanished, tear_down
from composer.claim.outcomes import Outcome, instructed_entries
from composer.claim.snapshot import ObservedChild, Snapshot, with_entries
from composer.inventory import Entry
from composer.kinds.catalog import KindFacts
from composer.render.render import Child
from runtime.objects import Object
from tests.composer.factories import (
    DATABASE,
    NOW,
    SETTINGS,
    annotated,
    child,
    claim,
    desired,
    entry,
    live,
    observed,
    snapshot,
)

MARKS = {"external-name": "orders_ab12", "incarnation": "16401"}
RENDERED = (child(desired()),)
LIVE = live(desired())
DYING = live(desired(), deleted=True)
VANISHED = observed(stored=None, external_reference=MARKS)


def _going(known: ObservedChild, **fields: Any) -> Snapshot:
    return snapshot(known, of=claim(deleted=True), **fields)


def _torn_down(known: ObservedChild, policy: Any, rendered: tuple[Child, ...] = RENDERED) -> Teardown:
    return tear_down(_going(known), policy, rendered)


def _marked(outcome: str = "") -> Entry:
    return entry(external_reference=MARKS, outcome=outcome)


OF_SETTINGS = entry("settings", SETTINGS, external_reference=MARKS)


@pytest.mark.parametrize(
    ("recorded", "facts", "policy", "again"),
    [
        pytest.param(_marked(), DATABASE, "Snapshot", True, id="under Snapshot"),
        pytest.param(_marked(), DATABASE, "Delete", True, id="under Delete"),
        pytest.param(_marked(), DATABASE, "Orphan", False, id="under Orphan it may live on"),
        pytest.param(entry(), DATABASE, "Delete", False, id="nothing was ever made for it"),
        pytest.param(_marked("child-uid/Snapshot"), DATABASE, "Snapshot", False, id="its instruction was Snapshot"),
        pytest.param(_marked("child-uid/Delete"), DATABASE, "Delete", False, id="its instruction was Delete"),
        pytest.param(_marked("child-uid/Snapshot"), DATABASE, "Delete", False, id="the policy changed since"),
        pytest.param(_marked("former-uid/Delete"), DATABASE, "Delete", True, id="it was for a former object"),
        pytest.param(_marked("child-uid/Detach"), DATABASE, "Delete", True, id="it was let go of"),
        pytest.param(OF_SETTINGS, SETTINGS, "Delete", False, id="a kind of somebody else's"),
    ],
)
def test_a_child_that_vanished_is_created_again_before_its_claim_is_gone(
    recorded: Entry, facts: KindFacts, policy: Any, *, again: bool
) -> None:
    known = ObservedChild(recorded, None, facts)

    plan = _torn_down(known, policy)

    assert has_vanished(_going(known), policy) == again
    assert plan.done != again
    assert [type(step) for step in plan.steps] == ([Create] if again else [])


@pytest.mark.parametrize(
    ("facts", "reason"), [(DATABASE, "RevisionNotFound"), (None, "KindNotInstalled")], ids=["no render", "no kind"]
)
def test_a_claim_waits_for_a_child_that_cannot_be_created_again(facts: KindFacts | None, reason: str) -> None:
    plan = _torn_down(replace(VANISHED, facts=facts), "Snapshot", ())

    assert not plan.done
    assert [type(step) for step in plan.steps] == [Keep]
    assert [cause.reason for cause in plan.causes] == [reason, "Deleting"]
    assert "spec.deletionPolicy to Orphan" in plan.causes[0].message


def test_a_namespace_being_deleted_holds_no_claim_for_children_that_cannot_be_created_in_it() -> None:
    space: Object = {"metadata": {"name": "shop", "labels": {names.EPHEMERAL_LABEL: "true"}, "deletionTimestamp": NOW}}
    going = _going(VANISHED, namespace=space)

    assert tear_down(going, "Delete", RENDERED).done


@pytest.mark.parametrize(
    ("stored", "policy", "outcome"),
    [
        (LIVE, "Snapshot", "child-uid/Snapshot"),
        (LIVE, "Orphan", ""),
        (DYING, "Delete", "child-uid/Delete"),
        (annotated(DYING, teardown="child-uid/Delete"), "Delete", "child-uid/Delete"),
        (annotated(DYING, teardown="child-uid/Detach"), "Snapshot", ""),
    ],
    ids=["living", "living, Orphan", "going", "going by this instruction", "going by another instruction"],
)
def test_the_instruction_is_recorded_before_it_is_written(stored: Object, policy: Any, outcome: str) -> None:
    going = _going(replace(VANISHED, live=stored))

    plan = tear_down(going, policy)

    (known,) = with_entries(going, (step.entry for step in plan.steps)).children
    assert known.entry.outcome == outcome


def test_an_instruction_that_replaces_another_is_recorded_once_the_object_has_it() -> None:
    stands = annotated(DYING, teardown="child-uid/Snapshot")
    outcomes = (
        Outcome(entry(external_reference=MARKS), written=stands),
        Outcome(None),
        Outcome(entry("settings", SETTINGS)),
    )

    assert [instructed.outcome for instructed in instructed_entries(outcomes)] == ["child-uid/Snapshot"]


def test_an_instruction_that_cannot_be_recorded_is_remembered_until_the_claim_is_gone() -> None:
    noted, instructed = UnwrittenEntries(), entry(external_reference=MARKS, outcome="child-uid/Delete")
    going = _going(VANISHED)
    another = _going(observed(stored=None, external_reference=MARKS, uid="another-uid"))
    noted.note(going.key, (instructed, entry("settings", SETTINGS)))

    assert tear_down(noted.added_to(going), "Delete", ()).done
    assert not tear_down(noted.added_to(another), "Delete", ()).done
    noted.forget(going.key)
    assert noted.added_to(going) == going
