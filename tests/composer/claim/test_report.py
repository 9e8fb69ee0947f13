"""What the conditions of a claim say."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from apis.reasons import ReasonClass
from composer.causes import Cause, cause
from composer.claim.readiness import child_cause
from composer.claim.report import Findings, report
from composer.render.render import Rendered
from runtime.objects import Object
from tests.composer.factories import (
    child,
    claim,
    condition,
    conditions_of,
    desired,
    live,
    observed,
    rendered,
    snapshot,
)

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
READY_BEFORE = condition("Ready", "True", "Available")


def _with_conditions(obj: Object, *conditions: tuple[str, str, str]) -> Object:
    reported = [condition(kind, status, reason) for kind, status, reason in conditions]
    return {**obj, "status": {"observedGeneration": 1, "conditions": reported}}


LIVE = live(desired())
FINE = _with_conditions(LIVE, ("Ready", "True", "Available"), ("Synced", "True", "InSync"))


@dataclass(frozen=True)
class Row:
    """What was found, and the conditions: (Ready, Synced, Reconciling, Stalled) as status and reason."""

    ready: str
    synced: str
    abnormal: str = ""
    causes: tuple[Cause, ...] = ()
    stored: Object | None = field(default_factory=lambda: FINE)
    composed: Rendered | None = field(default_factory=lambda: rendered(child(desired())))
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
        "True Available", "False TemplateInvalid", "Stalled TemplateInvalid", (INVALID,), composed=None, before=True
    ),
    "something is missing": Row(
        "False CompositionNotFound", "False CompositionNotFound", "Reconciling CompositionNotFound", (NOT_FOUND,),
        None, None,
    ),
    "something is missing for a minute": Row(
        "False CompositionNotFound", "False CompositionNotFound", "Stalled CompositionNotFound", (NOT_FOUND,),
        None, None, waited=timedelta(seconds=61),
    ),

    "the gravest comes first": Row(
        "False TemplateInvalid", "False TemplateInvalid", "Stalled TemplateInvalid", (CREATING, INVALID), None, UNREADY
    ),
    "ready but for the Secret": Row(
        "False ConnectionIncomplete", "True InSync", "Reconciling ConnectionIncomplete",
        (cause("ConnectionIncomplete", "no password"),), published=False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_the_conditions_follow_the_findings(row: Row) -> None:
    owner = claim(status={"conditions": [READY_BEFORE]} if row.before else {})
    known = snapshot(observed(stored=row.stored), of=owner)
    findings = Findings(row.causes, (), row.composed, published=row.published, waited=row.waited)

    conditions = conditions_of(report(known, findings, AT))

    kind, _, reason = row.abnormal.partition(" ")
    expected = {"Ready": row.ready, "Synced": row.synced} | ({kind: f"True {reason}"} if kind else {})
    assert conditions == expected


CREATED, UPDATED = ("Creating", ReasonClass.PROGRESS), ("Updating", ReasonClass.PROGRESS)
UNSEEN = {**LIVE, "status": {"observedGeneration": -1}}
STALE = {**FINE, "metadata": {**FINE["metadata"], "generation": 2}}
STALLS = _with_conditions(LIVE, ("Ready", "False", "DatabaseLost"), ("Stalled", "True", "DatabaseLost"))
WORKS = _with_conditions(LIVE, ("Ready", "True", "Available"), ("Reconciling", "True", "Throttled"))
BEGINS = _with_conditions(LIVE, ("Ready", "False", "Creating"), ("Reconciling", "True", "Creating"))
HOLDS = _with_conditions(LIVE, ("Ready", "True", "Available"), ("Synced", "False", "DriftHeld"))


@pytest.mark.parametrize(
    ("stored", "ready", "expected"),
    [
        pytest.param(FINE, True, None, id="nothing of a child that is well"),
        pytest.param(None, False, CREATED, id="of one that is not there"),
        pytest.param(UNSEEN, False, CREATED, id="of one that nobody has seen"),
        pytest.param(STALE, False, UPDATED, id="of one whose edit nobody has seen"),
        pytest.param(live(desired(), deleted=True), False, CREATED, id="of one that is going"),
        pytest.param(STALLS, False, ("DatabaseLost", ReasonClass.STALLED), id="its own stall"),
        pytest.param(WORKS, False, ("Throttled", ReasonClass.WAITING), id="its own work while it is usable"),
        pytest.param(BEGINS, False, CREATED, id="its own work while it is not"),
        pytest.param(HOLDS, True, ("DriftHeld", ReasonClass.HELD), id="what it holds back"),
        pytest.param(LIVE, False, ("ChildNotReady", ReasonClass.PROGRESS), id="of a foreign one without conditions"),
    ],
)
def test_a_child_reports_its_cause(
    stored: Object | None, *, ready: bool, expected: tuple[str, ReasonClass] | None
) -> None:
    reported = child_cause("database", stored, ready=ready)

    assert (reported and (reported.reason, reported.reason_class)) == expected


def test_a_closed_and_a_missing_provider_config_read_the_same() -> None:
    closed, missing = (
        child_cause(
            "database", _with_conditions(LIVE, ("Ready", "False", reason), ("Stalled", "True", reason)), ready=False
        )
        for reason in ("NotAllowed", "ProviderConfigNotFound")
    )

    assert closed == missing
    assert closed is not None
