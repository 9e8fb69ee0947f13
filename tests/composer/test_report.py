"""What the conditions of a claim say."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from apis.reasons import ReasonClass
from composer.causes import Cause, cause
from composer.claim.pause import NOBODY
from composer.claim.readiness import child_cause
from composer.claim.report import Findings, only_words_differ, paused_status, report, teardown_status
from composer.claim.snapshot import ObservedChild
from composer.render.render import Rendered
from runtime.objects import Object
from tests.composer.factories import DATABASE, annotated, child, claim, desired, entry, live, rendered, snapshot

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
READY_BEFORE = {
    "type": "Ready",
    "status": "True",
    "reason": "Available",
    "message": "ready",
    "observedGeneration": 1,
    "lastTransitionTime": "2026-11-01T00:00:00Z",
}


def _said(obj: Object, *conditions: tuple[str, str, str], generation: int = 1) -> Object:
    told = [
        {"type": kind, "status": status, "reason": reason, "message": f"{reason}!", "observedGeneration": generation}
        for kind, status, reason in conditions
    ]
    return {**obj, "status": {"observedGeneration": generation, "conditions": told}}


LIVE = live(desired())
FINE = _said(LIVE, ("Ready", "True", "Available"), ("Synced", "True", "InSync"))


@dataclass(frozen=True)
class Row:
    """What was found, and the conditions: (Ready, Synced, Reconciling, Stalled) as status and reason."""

    ready: str
    synced: str
    abnormal: str = ""
    causes: tuple[Cause, ...] = ()
    stored: Object | None = field(default_factory=lambda: FINE)
    what: Rendered | None = field(default_factory=lambda: rendered(child(desired())))
    before: bool = False
    published: bool = True
    waited: timedelta = timedelta()


CREATING = cause("Creating", "made")
NOT_FOUND = cause("CompositionNotFound", "absent")
INVALID = cause("TemplateInvalid", "broken")
UNREADY = rendered(child(desired(), ready=False))
ROWS = {
    "all is well": Row("True Available", "True InSync"),
    "on its way": Row("False Creating", "True InSync", "Reconciling Creating", (CREATING,), None, UNREADY),
    "waits for a value": Row(
        "False ResourcePending", "False ResourcePending", "Reconciling ResourcePending",
        (cause("ResourcePending", "waits"),), None, UNREADY,
    ),
    "a broken template, never ready": Row(
        "False TemplateInvalid", "False TemplateInvalid", "Stalled TemplateInvalid", (INVALID,), None, None
    ),
    "a broken template, ready before": Row(
        "True Available", "False TemplateInvalid", "Stalled TemplateInvalid", (INVALID,), what=None, before=True
    ),
    "something is missing": Row(
        "False CompositionNotFound", "False CompositionNotFound", "Reconciling CompositionNotFound", (NOT_FOUND,),
        None, None,
    ),
    "something is missing for a minute": Row(
        "False CompositionNotFound", "False CompositionNotFound", "Stalled CompositionNotFound", (NOT_FOUND,),
        None, None, waited=timedelta(seconds=61),
    ),
    "a held deletion beside a database that works": Row(
        "True Available", "False HeldDeletion", "Stalled HeldDeletion", (cause("HeldDeletion", "held"),)
    ),
    "a field rests beside a database that works": Row(
        "True Available", "False FieldConflict", "", (cause("FieldConflict", "fight"),)
    ),
    "the cloud is away, ready before": Row(
        "True Available", "False CloudUnreachable", "Reconciling CloudUnreachable",
        (cause("CloudUnreachable", "away"),), what=UNREADY, before=True,
    ),
    "a lost database": Row(
        "False DatabaseLost", "False DatabaseLost", "Stalled DatabaseLost",
        (cause("DatabaseLost", "lost", shown_as=ReasonClass.STALLED),),
        _said(LIVE, ("Ready", "False", "DatabaseLost"), ("Stalled", "True", "DatabaseLost")), UNREADY, before=True,
    ),
    "the gravest comes first": Row(
        "False TemplateInvalid", "False TemplateInvalid", "Stalled TemplateInvalid", (CREATING, INVALID), None, UNREADY
    ),
    "ready but for the Secret": Row(
        "False ConnectionIncomplete", "True InSync", "Reconciling ConnectionIncomplete",
        (cause("ConnectionIncomplete", "no password"),), published=False,
    ),
}  # fmt: skip


def _conditions(status: Object) -> dict[str, str]:
    return {each["type"]: f"{each['status']} {each['reason']}" for each in status["conditions"]}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_the_conditions(row: Row) -> None:
    owner = claim(status={"conditions": [READY_BEFORE]} if row.before else {})
    known = snapshot(ObservedChild(entry(), row.stored, DATABASE), of=owner)
    found = Findings(row.causes, (), row.what, published=row.published, waited=row.waited)

    told = _conditions(report(known, found, AT))

    kind, _, reason = row.abnormal.partition(" ")
    expected = {"Ready": row.ready, "Synced": row.synced} | ({kind: f"True {reason}"} if kind else {})
    assert told == expected


@pytest.mark.parametrize(
    ("before", "hours", "told"),
    [
        ("Reconciling", 0.9, "Reconciling"),
        ("Reconciling", 1.0, "Stalled"),
        ("Stalled", 0.0, "Stalled"),
    ],
    ids=["for a while", "beyond its deadline", "told before, in another process"],
)
def test_what_takes_too_long_is_for_a_person(before: str, hours: float, told: str) -> None:
    since = (AT - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    known = {**READY_BEFORE, "type": before, "reason": "Creating", "lastTransitionTime": since}
    owner = claim(status={"conditions": [known]})

    status = report(snapshot(ObservedChild(entry(), None, DATABASE), of=owner), Findings((CREATING,), (), UNREADY), AT)

    assert _conditions(status)[told] == "True Creating"
    assert _conditions(status)["Synced"] == ("True InSync" if told == "Reconciling" else "False Creating")


def test_an_edit_that_is_under_way_is_not_ready_for_its_generation() -> None:
    """`kubectl wait` compares a condition's generation with the object's: the old one keeps it waiting."""
    owner = claim(generation=2, status={"observedGeneration": 1, "conditions": [READY_BEFORE]})
    stale = {**FINE, "metadata": {**FINE["metadata"], "generation": 2}}
    updating = cause("Updating", "on its way")

    status = report(snapshot(ObservedChild(entry(), stale, DATABASE), of=owner), Findings((updating,), (), UNREADY), AT)

    ready, synced, working = status["conditions"]
    assert (ready["status"], ready["observedGeneration"], ready["lastTransitionTime"]) == (
        "True",
        1,
        READY_BEFORE["lastTransitionTime"],
    )
    assert synced["observedGeneration"] == working["observedGeneration"] == status["observedGeneration"] == 2


class Told(msgspec.Struct, frozen=True):
    live: Object | None
    ready: bool
    gives: tuple[str, ReasonClass] | None


TOLD = {
    "nothing of a child that is well": Told(FINE, ready=True, gives=None),
    "of one that is not there": Told(None, ready=False, gives=("Creating", ReasonClass.PROGRESS)),
    "of one that nobody has seen": Told(
        {**LIVE, "status": {"observedGeneration": -1}}, ready=False, gives=("Creating", ReasonClass.PROGRESS)
    ),
    "of one whose edit nobody has seen": Told(
        {**FINE, "metadata": {**FINE["metadata"], "generation": 2}},
        ready=False,
        gives=("Updating", ReasonClass.PROGRESS),
    ),
    "of one that is going": Told(live(desired(), deleted=True), ready=False, gives=("Creating", ReasonClass.PROGRESS)),
    "its own stall": Told(
        _said(LIVE, ("Ready", "False", "DatabaseLost"), ("Stalled", "True", "DatabaseLost")),
        ready=False,
        gives=("DatabaseLost", ReasonClass.STALLED),
    ),
    "its own work while it is usable": Told(
        _said(LIVE, ("Ready", "True", "Available"), ("Reconciling", "True", "Throttled")),
        ready=False,
        gives=("Throttled", ReasonClass.WAITING),
    ),
    "its own work while it is not": Told(
        _said(LIVE, ("Ready", "False", "Creating"), ("Reconciling", "True", "Creating")),
        ready=False,
        gives=("Creating", ReasonClass.PROGRESS),
    ),
    "what it holds back": Told(
        _said(LIVE, ("Ready", "True", "Available"), ("Synced", "False", "DriftHeld")),
        ready=True,
        gives=("DriftHeld", ReasonClass.HELD),
    ),
    "of a foreign one without conditions": Told(LIVE, ready=False, gives=("ChildNotReady", ReasonClass.PROGRESS)),
}


@pytest.mark.parametrize("case", TOLD.values(), ids=TOLD)
def test_what_a_child_tells(case: Told) -> None:
    found = child_cause("database", case.live, ready=case.ready)

    assert (found and (found.reason, found.reason_class)) == case.gives


def test_a_closed_and_a_missing_provider_config_read_the_same() -> None:
    closed, missing = (
        child_cause("database", _said(LIVE, ("Ready", "False", reason), ("Stalled", "True", reason)), ready=False)
        for reason in ("NotAllowed", "ProviderConfigNotFound")
    )

    assert closed == missing
    assert closed is not None


def test_nothing_said_anew_is_the_same_status() -> None:
    owner = claim()
    known = snapshot(ObservedChild(entry(), FINE, DATABASE), of=owner)
    found = Findings((), (entry(),), rendered(child(desired())), "c", "c-1", "Orphan")
    first = report(known, found, AT)
    again = report(
        snapshot(ObservedChild(entry(), FINE, DATABASE), of={**owner, "status": first}), found, AT + timedelta(hours=1)
    )

    assert again == first


def test_words_and_marks_may_wait() -> None:
    def status(**fields: Any) -> Object:
        whole = {"type": "Ready", "status": "False", "reason": "Creating", "message": "a", **fields}
        return {"conditions": [whole], "inventory": [{"name": "x", "marks": {}}]}

    assert only_words_differ(status(), status(message="b"))
    assert only_words_differ(status(), {**status(), "inventory": [{"name": "x", "marks": {"incarnation": "1"}}]})
    assert not only_words_differ(status(), status(reason="Updating"))
    assert not only_words_differ(status(), {**status(), "inventory": [{"name": "x", "live": "h", "marks": {}}]})


def test_a_pause_keeps_ready_as_it_was() -> None:
    owner = annotated(claim(status={"conditions": [READY_BEFORE]}), paused="true", paused_reason="audit")
    status = paused_status(snapshot(of=owner), NOBODY, AT)

    assert _conditions(status) == {"Ready": "True Available", "Synced": "False Paused"}
    assert "audit" in status["conditions"][1]["message"]


def test_a_deletion_says_what_it_waits_for() -> None:
    status = teardown_status(snapshot(of=claim(deleted=True)), (cause("Deleting", "waits for x"),), AT)

    assert _conditions(status) == {
        "Ready": "False Deleting",
        "Synced": "False Deleting",
        "Reconciling": "True Deleting",
    }


ODD: dict[str, tuple[Any, tuple[str, str]]] = {
    "no reason and no message": (
        {"conditions": [{"type": "Ready", "status": "False"}]},
        ("Unknown", "does not say why"),
    ),
    "a reason that no condition may have": (
        {"conditions": [{"type": "Ready", "status": "False", "reason": "not yet!", "message": "m"}]},
        ("Unknown", "m"),
    ),
    "a generation that is a text": (
        {"observedGeneration": "x", "conditions": [{"type": "Stalled", "status": "True", "message": "m"}]},
        ("Unknown", "m"),
    ),
    "conditions that are none": ({"conditions": "none"}, ("ChildNotReady", "is not ready yet")),
    "a status that is a text": ("Running", ("ChildNotReady", "is not ready yet")),
}


@pytest.mark.parametrize(("status", "said"), ODD.values(), ids=ODD)
def test_a_child_of_odd_words_is_told_all_the_same(status: Any, said: tuple[str, str]) -> None:
    found = child_cause("database", {**live(desired()), "status": status}, ready=False)

    assert found is not None
    assert found.reason == said[0]
    assert said[1] in found.message


def test_what_a_child_says_at_length_fits_the_status_of_its_claim() -> None:
    loud = _said(live(desired()), ("Stalled", "True", "R" * 3_000))
    loud["status"]["conditions"][0]["message"] = "m" * 40_000
    found = child_cause("database", loud, ready=False)
    assert found is not None

    status = report(snapshot(), Findings((found, cause("RenderFailed", "n" * 5_000)), ()), AT)

    for each in status["conditions"]:
        assert len(each["message"]) <= 2_000
        assert len(each["reason"]) <= 1_024
