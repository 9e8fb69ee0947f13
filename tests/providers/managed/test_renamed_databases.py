"""Decisions on a database that somebody renamed, and on records of an older form of the incarnation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apis.teardown import Policy
from providers.external.observation import Absent, Present
from providers.managed.decisions.decide import decide
from providers.managed.decisions.plan import Delete, Refuse, RemoveFinalizer, Settled
from tests.providers.managed.test_decide import LONG_GONE, RECORDED, Row, inputs, row, there

RENAMED = Absent(remains=True, renamed="orders_x_old")


def known_as(incarnation: str) -> Present[Any, Any]:
    return Present(replace(there().observed, incarnation=incarnation, earlier_ids=("oid-1",)))


ROWS: dict[str, Row] = {
    "what was renamed is not gone and not forgotten": row(
        inputs(RENAMED, LONG_GONE, deleting=True),
        Refuse,
        reason="DatabaseRenamed",
        message="database orders_x is not gone: it is called orders_x_old now; rename it back, or drop it",
    ),
    "what was renamed is not kept": row(
        inputs(RENAMED, LONG_GONE, deleting=True, policy=Policy.SNAPSHOT), Refuse, reason="DatabaseRenamed"
    ),
    "what was renamed is an orphan all the same": row(
        inputs(RENAMED, LONG_GONE, deleting=True, policy=Policy.ORPHAN), RemoveFinalizer
    ),
    "what was renamed is lost to who uses it": row(inputs(RENAMED, LONG_GONE), Refuse, reason="DatabaseLost"),
    "a record of an older form is the same database": row(inputs(known_as("oid-1-random")), Settled),
    "a record of an older form is destroyed": row(inputs(known_as("oid-1-random"), deleting=True), Delete),
    "the same number with another random is another database": row(
        inputs(known_as("oid-1-other"), replace(RECORDED, incarnation="oid-1-random")), Refuse, reason="Replaced"
    ),
}


@pytest.mark.parametrize("case", ROWS.values(), ids=ROWS.keys())
def test_decide_on_a_renamed_database(case: Row) -> None:
    plan = decide(case.inputs).plan

    assert type(plan) is case.plan, plan
    assert {key: getattr(plan, key) for key in case.holds} == case.holds
