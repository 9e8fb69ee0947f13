"""What a claim says while it goes, or stands still: the blocker, since when, when next; who paused; the token."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from apis import names
from apis.teardown import DeletionPolicy
from composer.claim.decide import Annotate, Orphan, RemoveFinalizer
from composer.claim.deletion import blocker
from composer.claim.deletion_pass import kept_note
from composer.claim.outcomes import finalizer_note, instruction_note
from composer.claim.report import NOBODY, Pauser, pauser, report_pause
from composer.claim.snapshot import ObservedChild
from composer.kinds.catalog import KindFacts
from runtime.objects import Object
from tests.composer.factories import (
    DATABASE,
    VOLUME,
    annotated,
    claim,
    condition,
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


HELD_FOREIGN = live(desired("data", VOLUME), deleted=True, finalizers=["example.dev/hold", names.TEARDOWN_FINALIZER])
COLLECTED = live(desired("data", VOLUME), deleted=True, finalizers=["foregroundDeletion"])


@pytest.mark.parametrize(
    ("stored", "facts", "expected"),
    [
        pytest.param(None, DATABASE, None, id="none by a child that is gone"),
        pytest.param(live(desired()), DATABASE, None, id="none by one that lives"),
        pytest.param(_going(("Reconciling", "True", "Deleting")), DATABASE, None, id="none by one that is on its way"),
        pytest.param(_going(("Stalled", "True", "AwaitingTeardown")), DATABASE, None, id="it is not instructed yet"),
        pytest.param(_going(("Stalled", "True", "DeleteBlocked")), DATABASE, "DeleteBlocked STALLED", id="a refusal"),
        pytest.param(
            _going(("Ready", "True", "Available"), ("Reconciling", "True", "CloudUnreachable")),
            DATABASE,
            "CloudUnreachable WAITING",
            id="a cloud out of reach",
        ),
        pytest.param(_going(("Synced", "False", "AwaitingTakeover")), DATABASE, "AwaitingTakeover WAITING", id="held"),
        pytest.param(HELD_FOREIGN, VOLUME, "DeleteBlocked WAITING", id="somebody's finalizer on a foreign child"),
        pytest.param(COLLECTED, VOLUME, None, id="not the collector's own finalizer"),
    ],
)
def test_a_blocker_is_the_cause_that_holds_a_deletion(
    stored: Object | None, facts: KindFacts, expected: str | None
) -> None:
    blocking = blocker(ObservedChild(entry(), stored, facts))

    assert (blocking and f"{blocking.reason} {blocking.reason_class.name}") == expected


# The token that asks for a pass


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


@pytest.mark.parametrize(
    ("instruction", "going", "expected"),
    [
        pytest.param(None, True, None, id="no instruction"),
        pytest.param("child-uid/Delete", True, "ChildDeleted", id="a destroying one"),
        pytest.param("child-uid/Orphan", True, "ChildDeleted", id="one that keeps"),
        pytest.param("child-uid/Detach", True, "LetGo", id="none at all, as its namespace goes"),
        pytest.param("child-uid/Detach", False, "LetGo", id="none at all, as its claim wants it"),
    ],
)
def test_an_instruction_to_a_child_that_somebody_deleted_is_noted(
    instruction: str | None, *, going: bool, expected: str | None
) -> None:
    step = Annotate(entry(), DATABASE, live(desired(), deleted=True), {names.TEARDOWN: instruction})
    note = instruction_note(snapshot(of=claim(deleted=going)), step)

    assert (note and note.reason) == expected


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


@pytest.mark.parametrize(
    ("policy", "fields", "reason", "begin"),
    [
        ("Orphan", {}, "LetGo", "PostgresDatabase orders_x of claim shop/orders: kept (Orphan); `fairlead backups"),
        (
            "Snapshot",
            {"outcome": "u/Snapshot"},
            "BackupTaken",
            "PostgresDatabase orders_x of claim shop/orders: kept (",
        ),
        ("Snapshot", {"outcome": "u/Delete"}, "", ""),
        ("Delete", {}, "", ""),
        ("Orphan", {"external_reference": {}}, "", ""),
    ],
)
def test_the_last_event_of_a_claim_says_what_is_kept(
    policy: DeletionPolicy, fields: dict[str, Any], reason: str, begin: str
) -> None:
    known = observed(stored=None, **{"external_reference": {"external-name": "orders_x"}, **fields})

    note = kept_note(snapshot(known), policy)

    assert (note.reason if note else "") == reason
    assert begin in (note.message if note else "")
