"""Each reason shows in a claim's conditions as docs/names.md says; the page is the oracle."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from composer.causes import cause
from composer.claim.report import Findings, report
from runtime.conditions import timestamp
from runtime.objects import Object
from tests.composer.factories import child, claim, condition, conditions_of, desired, live, observed, rendered, snapshot

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
PAGE = (Path(__file__).resolve().parents[3] / "docs" / "names.md").read_text(encoding="utf-8")
NO_DATABASE = frozenset({"DatabaseLost", "DatabaseStopped", "Replaced"})
LONG = timedelta(days=1)


@dataclass(frozen=True)
class Shown:
    """How a class of reasons shows: abnormal condition now, and after it has lasted; status of Synced, None = either.

    `keeps_ready`: Ready stays as last known.
    """

    now: str
    later: str
    synced: str | None
    keeps_ready: bool = True


CLASSES = {
    "Normal, `Synced=True`": Shown("", "", "True"),
    "Reconciling, `Ready=False`": Shown("Reconciling", "Stalled", None, keeps_ready=False),
    "Reconciling, `Ready` as last known, `Synced=False`": Shown("Reconciling", "Stalled", "False"),
    "Reconciling 60 s, then Stalled": Shown("Reconciling", "Stalled", "False"),
    "Neither, `Synced=False`": Shown("", "", "False"),
    "Stalled": Shown("Stalled", "Stalled", "False"),
    "Deleting, neither": Shown("", "", "False"),
}


def _classes() -> dict[str, Shown]:
    """Read the table of reasons: a row in bold is the class of the rows below it."""
    section = PAGE.split("\n## 6. ", 1)[1].split("\n## 7. ", 1)[0]
    by_reason: dict[str, Shown] = {}
    shown: Shown | None = None
    for line in section.splitlines():
        heading, reason = re.match(r"\| \*\*(.+?)\*\* \|", line), re.match(r"\| `(\w+)` \|", line)
        if heading:
            # "Neither, `Synced=False`; move: a person": what stands before the semicolon.
            shown = CLASSES.get(heading[1].partition(";")[0])
            assert shown is not None or heading[1] == "Normal, `Ready=True`", heading[1]
        elif reason and shown is not None and reason[1] != "InSync":
            by_reason[reason[1]] = shown
    return by_reason


REASONS = _classes()


def _condition(type_: str, status: str, reason: str, at: datetime) -> Object:
    return condition(type_, status, reason, since=timestamp(at))


def _reported(reason: str, *, was_ready: bool, lasted: timedelta = timedelta()) -> dict[str, str]:
    """Report a claim whose only trouble is `reason`; its child says what a child in that trouble says."""
    before = [_condition("Ready", "True" if was_ready else "False", "Available" if was_ready else reason, AT - lasted)]
    if lasted:
        before.append(_condition("Reconciling", "True", reason, AT - lasted))
    usable = was_ready and reason not in NO_DATABASE
    stored = live(desired())
    stored["status"] = {"conditions": [_condition("Ready", "True" if usable else "False", reason, AT)]}
    known = snapshot(observed(stored=stored), of=claim(status={"conditions": before}))
    findings = Findings((cause(reason, "why"),), (), rendered(child(desired(), ready=False)), waited=lasted)
    return conditions_of(report(known, findings, AT))


def test_the_page_lists_the_reasons() -> None:
    assert len(REASONS) > 60
    assert {"Creating", "CloudBusy", "KeptLarger", "Paused", "AwaitingTeardown", "InUse"} <= REASONS.keys()


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_shows_in_conditions_as_the_page_says(reason: str) -> None:
    shown = REASONS[reason]
    conditions = _reported(reason, was_ready=True)

    abnormal = {type_: shown_as for type_, shown_as in conditions.items() if type_ in ("Reconciling", "Stalled")}
    assert abnormal == ({shown.now: f"True {reason}"} if shown.now else {})
    if shown.synced is not None:
        assert conditions["Synced"] == f"{shown.synced} {reason}"
    if reason in NO_DATABASE:
        assert conditions["Ready"] == f"False {reason}"
    elif shown.keeps_ready:
        assert conditions["Ready"] == "True Available"


@pytest.mark.parametrize("reason", REASONS)
def test_a_reason_that_lasts_shows_in_conditions_as_the_page_says(reason: str) -> None:
    shown = REASONS[reason]
    conditions = _reported(reason, was_ready=False, lasted=LONG)

    abnormal = {type_: shown_as for type_, shown_as in conditions.items() if type_ in ("Reconciling", "Stalled")}
    assert abnormal == ({shown.later: f"True {reason}"} if shown.later else {})
    assert conditions["Ready"] == f"False {reason}"
    if shown.later == "Stalled":
        assert conditions["Synced"] == f"False {reason}"
