"""Until when a deleted database can be brought back: as soon as it is missed or its deletion is sent, and no later."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from apis.teardown import Policy
from providers.external.observation import Absent, Unknown
from providers.external.provider import Revival
from providers.managed.decisions.decide import decide
from providers.managed.decisions.plan import Delete, Plan, Refuse
from providers.managed.revival import how_to_revive, revivable_until, written_until
from tests.providers.managed.test_decide import FRESH, GRACE, LONG_GONE, NOW, RECORDED, inputs, there

DAYS = timedelta(days=5)
REVIVAL = Revival(DAYS, "cloud revive")
REPORTED = NOW + timedelta(days=2)
GONE = Absent()
DELETE = Delete(Policy.DELETE)


def _reported(until: str = "2026-11-23T12:00:00Z") -> dict[str, Any]:
    return {"status": {"revivableUntil": until}}


@dataclass(frozen=True)
class Row:
    """Inputs, the plan where there is one, and until when the database can be brought back."""

    inputs: Any
    until: datetime | None
    plan: Plan | None = None


ROWS = {
    "one that is there is not to be revived": Row(inputs(there(), revival=REVIVAL), None),
    "nor is one that came back": Row(inputs(there(), revival=REVIVAL, obj=_reported()), None),
    "nor is one that was never made": Row(inputs(GONE, FRESH, revival=REVIVAL), None),
    "a cloud that keeps nothing says nothing": Row(inputs(GONE, LONG_GONE), None),
    "one that is missed counts from now": Row(inputs(GONE, RECORDED, revival=REVIVAL), NOW + DAYS),
    "one that was missed counts from then": Row(inputs(GONE, LONG_GONE, revival=REVIVAL), NOW - GRACE + DAYS),
    "what was reported stays over a restart": Row(inputs(GONE, revival=REVIVAL, obj=_reported()), REPORTED),
    "and while nothing is learnt": Row(
        inputs(Unknown("CloudUnreachable", "x"), revival=REVIVAL, obj=_reported()), REPORTED
    ),
    "our deletion counts from its call": Row(inputs(there(), deleting=True, revival=REVIVAL), NOW + DAYS, DELETE),
    "a deletion that is sent again counts anew": Row(
        inputs(there(), deleting=True, revival=REVIVAL, obj=_reported()), NOW + DAYS, DELETE
    ),
    "a deletion under way keeps its end": Row(
        inputs(there(), deleting=True, revival=REVIVAL, obj=_reported()), REPORTED
    ),
    "so does one that is done": Row(inputs(GONE, deleting=True, revival=REVIVAL, obj=_reported()), REPORTED),
    "a broken date is none": Row(inputs(GONE, LONG_GONE, revival=REVIVAL, obj=_reported("soon")), NOW - GRACE + DAYS),
}


@pytest.mark.parametrize("name", ROWS)
def test_until(name: str) -> None:
    row = ROWS[name]

    assert revivable_until(row.inputs, row.plan) == row.until


def test_status_has_whole_seconds_and_nothing_of_one_that_is_there() -> None:
    assert written_until(inputs(GONE, revival=REVIVAL, obj=_reported()), DELETE) == "2026-11-23T12:00:00Z"
    assert written_until(inputs(there(), revival=REVIVAL), Refuse("DatabaseStopped", "x")) == ""


def test_lost_database_names_the_date_and_the_command() -> None:
    plan = decide(inputs(GONE, LONG_GONE, revival=REVIVAL)).plan

    assert isinstance(plan, Refuse)
    assert plan.reason == "DatabaseLost"
    assert "it can be revived until 2026-11-26T11:59:00Z at the latest, by `cloud revive`; nothing is" in plan.message


def test_nothing_is_promised_once_the_date_is_over() -> None:
    late = replace(inputs(GONE, LONG_GONE, revival=REVIVAL, obj=_reported()), now=REPORTED)

    assert how_to_revive(late) == ""
    plan = decide(late).plan
    assert isinstance(plan, Refuse)
    assert "no backup of it is known" in plan.message


def test_backup_is_named_before_a_revival() -> None:
    plan = decide(inputs(GONE, LONG_GONE, revival=REVIVAL, backup="backup-1")).plan

    assert isinstance(plan, Refuse)
    assert "the newest backup is backup-1" in plan.message
