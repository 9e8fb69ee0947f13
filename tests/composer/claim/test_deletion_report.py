"""What a claim says while it goes, or stands still: the blocker, since when, when next; who paused; the token."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from apis import names
from apis.reasons import ReasonClass
from composer.causes import Cause, cause
from composer.claim.decide import Annotate, Orphan, RemoveFinalizer
from composer.claim.deletion import blocker
from composer.claim.outcomes import Note, finalizer_note, gathered, instruction_note
from composer.claim.report import NOBODY, Findings, Pauser, pauser, report, report_deletion, report_pause
from composer.claim.snapshot import ObservedChild, Snapshot
from runtime.conditions import timestamp
from runtime.objects import Object
from tests.composer.factories import (
    DATABASE,
    NOW,
    VOLUME,
    annotated,
    claim,
    condition,
    conditions_of,
    desired,
    entry,
    live,
    observed,
    snapshot,
)

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
SINCE = "2026-11-21T09:30:00Z"


def _going(*conditions: tuple[str, str, str]) -> Object:
    reported = [
        {**condition(type_, status, reason, since=SINCE), "message": "the cloud's words"}
        for type_, status, reason in conditions
    ]
    return {**live(desired(), deleted=True), "status": {"conditions": reported}}


class Blocked(msgspec.Struct, frozen=True):
    stored: Object | None
    gives: tuple[str, ReasonClass] | None
    facts: Any = DATABASE


BLOCKED = {
    "nothing by a child that is gone": Blocked(None, None),
    "nothing by one that lives": Blocked(live(desired()), None),
    "nothing by one that is on its way": Blocked(_going(("Reconciling", "True", "Deleting")), None),
    "nothing by one that has not seen the instruction": Blocked(_going(("Stalled", "True", "AwaitingTeardown")), None),
    "a refusal": Blocked(_going(("Stalled", "True", "DeleteBlocked")), ("DeleteBlocked", ReasonClass.STALLED)),
    "a cloud out of reach": Blocked(
        _going(("Ready", "True", "Available"), ("Reconciling", "True", "CloudUnreachable")),
        ("CloudUnreachable", ReasonClass.WAITING),
    ),
    "what is held for a person": Blocked(
        _going(("Synced", "False", "AwaitingTakeover")), ("AwaitingTakeover", ReasonClass.WAITING)
    ),
    "somebody's finalizer on a foreign child": Blocked(
        live(desired("data", VOLUME), deleted=True, finalizers=["example.dev/hold", names.TEARDOWN_FINALIZER]),
        ("DeleteBlocked", ReasonClass.WAITING),
        VOLUME,
    ),
    "not the collector's own finalizer": Blocked(
        live(desired("data", VOLUME), deleted=True, finalizers=["foregroundDeletion"]), None, VOLUME
    ),
}


@pytest.mark.parametrize("case", BLOCKED.values(), ids=BLOCKED)
def test_a_blocker_is_the_cause_that_holds_a_deletion(case: Blocked) -> None:
    blocking = blocker(ObservedChild(entry(), case.stored, case.facts))

    assert (blocking and (blocking.reason, blocking.reason_class)) == case.gives


def test_a_blocker_is_named_with_its_error_since_when_and_the_next_try() -> None:
    blocking = blocker(observed(stored=_going(("Stalled", "True", "DeleteBlocked"))))

    assert blocking is not None
    for part in (f"PostgresDatabase {entry().name}", "the cloud's words", f"since {SINCE}", "tried again within 5 min"):
        assert part in blocking.message
    held = live(desired("data", VOLUME), deleted=True, finalizers=["example.dev/hold"])
    foreign = blocker(observed("data", VOLUME, stored=held))
    assert foreign is not None
    assert "held by finalizer example.dev/hold since " + NOW in foreign.message


class Ends(msgspec.Struct, frozen=True):
    causes: tuple[Cause, ...]
    abnormal: str
    reason: str
    minutes: int = 0


ENDS = {
    "is on its way": Ends((cause("Deleting", "waits"),), "Reconciling", "Deleting"),
    "for too long": Ends((cause("Deleting", "waits"),), "Stalled", "Deleting", minutes=61),
    "is blocked": Ends((cause("Deleting", "waits"), cause("DeleteBlocked", "no")), "Stalled", "DeleteBlocked"),
    "waits for the cloud": Ends(
        (cause("Deleting", "waits"), cause("CloudUnreachable", "away")), "Reconciling", "CloudUnreachable"
    ),
}


@pytest.mark.parametrize("case", ENDS.values(), ids=ENDS)
def test_a_claim_that_is_being_deleted_reports_its_conditions(case: Ends) -> None:
    since = timestamp(AT - timedelta(minutes=case.minutes))
    before = {"conditions": [condition("Reconciling", "True", "Deleting", since=since)]}
    status = report_deletion(snapshot(of=claim(deleted=True, status=before)), case.causes, AT)

    assert conditions_of(status) == {
        "Ready": f"False {case.reason}",
        "Synced": f"False {case.reason}",
        case.abnormal: f"True {case.reason}",
    }


# The token that asks for a pass


def _requested(**more: Any) -> Snapshot:
    return snapshot(of=annotated(claim(**more), reconcile_requested_at="monday"))


def test_a_token_is_repeated_by_every_kind_of_pass() -> None:
    statuses = (
        report(_requested(), Findings((), ()), AT),
        report_pause(_requested(), NOBODY, AT),
        report_deletion(_requested(deleted=True), (), AT),
    )

    assert [status["lastHandledReconcileAt"] for status in statuses] == ["monday"] * 3


def test_a_token_requests_a_pass_until_it_is_repeated() -> None:
    assert _requested().is_requested
    assert not _requested(status={"lastHandledReconcileAt": "monday"}).is_requested
    assert _requested(status={"lastHandledReconcileAt": "sunday"}).is_requested
    assert not snapshot().is_requested


# A pause


def _managed(manager: str, at: str, annotation: str = names.PAUSED) -> Object:
    fields: Object = {"f:metadata": {"f:annotations": {f"f:{annotation}": {}}}}
    return {"manager": manager, "operation": "Update", "time": at, "fieldsV1": fields}


def test_the_pauser_is_the_manager_that_set_the_annotation_last() -> None:
    owner = claim()
    owner["metadata"]["managedFields"] = [
        _managed("kubectl-annotate", "2026-11-20T08:00:00Z"),
        _managed("argocd-controller", "2026-11-21T08:00:00Z"),
        _managed("kubectl-edit", "2026-11-21T09:00:00Z", names.CONSENT),
    ]

    assert pauser(owner) == Pauser("argocd-controller", "2026-11-21T08:00:00Z")
    assert pauser(claim()) == NOBODY


def test_a_pause_reports_who_when_why_and_until() -> None:
    end = "2026-11-30T00:00:00Z"
    owner = annotated(claim(deleted=True), paused=end, paused_reason="audit week")
    status = report_pause(snapshot(of=owner), Pauser("kubectl-annotate", SINCE), AT)

    (text,) = {condition["message"] for condition in status["conditions"]}
    for part in (f"by kubectl-annotate at {SINCE}", f"until {end}", "audit week", "its deletion waits", names.PAUSED):
        assert part in text


# What is put on record


def test_notes_of_one_reason_are_one() -> None:
    notes = (Note("ChildCreated", "a"), Note("FieldTakenBack", "f", is_warning=True), Note("ChildCreated", "b"))

    assert gathered(notes) == (Note("ChildCreated", "a; b"), Note("FieldTakenBack", "f", is_warning=True))


class Instructed(msgspec.Struct, frozen=True):
    instruction: str | None
    going: bool
    says: str | None


INSTRUCTED = {
    "no instruction": Instructed(None, going=True, says=None),
    "a destroying one": Instructed("child-uid/Delete", going=True, says="ChildDeleted"),
    "one that keeps": Instructed("child-uid/Orphan", going=True, says="ChildDeleted"),
    "none at all, as its namespace goes": Instructed("child-uid/Detach", going=True, says="LetGo"),
    "none at all, as its claim wants it": Instructed("child-uid/Detach", going=False, says="LetGo"),
}


@pytest.mark.parametrize("case", INSTRUCTED.values(), ids=INSTRUCTED)
def test_an_instruction_to_a_child_that_somebody_deleted_is_noted(case: Instructed) -> None:
    step = Annotate(entry(), DATABASE, live(desired(), deleted=True), {names.TEARDOWN: case.instruction})
    note = instruction_note(snapshot(of=claim(deleted=case.going)), step)

    assert (note and note.reason) == case.says


def test_a_foreign_child_that_is_released_is_noted_once() -> None:
    stored = live(desired("data", VOLUME), deleted=True)
    going, living = snapshot(of=claim(deleted=True)), snapshot()
    kept = finalizer_note(going, Orphan(entry("data", VOLUME), VOLUME, live(desired("data", VOLUME))))
    recreated = finalizer_note(living, RemoveFinalizer(entry("data", VOLUME), VOLUME, stored))

    assert kept is not None
    assert kept.reason == "LetGo"
    assert recreated is not None
    assert "made again" in recreated.message
    # Its deletion was noted when it was instructed.
    assert finalizer_note(going, RemoveFinalizer(entry("data", VOLUME), VOLUME, stored)) is None


def test_a_child_that_gives_no_reason_blocks_a_deletion_in_words() -> None:
    bare = {**live(desired(), deleted=True), "status": {"conditions": [{"type": "Stalled", "status": "True"}]}}

    why = blocker(observed(stored=bare))

    assert why is not None
    assert why.reason == "Unknown"
    assert "since its deletion" in why.message
