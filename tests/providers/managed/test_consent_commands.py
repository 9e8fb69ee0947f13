"""What a refusal offers: whole commands to be typed; until when a lost database can be brought back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from apis.teardown import Policy
from providers.external.consent import Consent
from providers.external.observation import Absent, Predecessor, Present, Unknown
from providers.external.provider import Revival
from providers.managed.decisions.decide import decide
from providers.managed.decisions.plan import Delete, Plan, Refuse, RemoveFinalizer, Settled
from providers.managed.inputs import Inputs
from providers.managed.revival import revivable_until
from tests.providers.managed.test_decide import (
    ADDRESS,
    FORMER,
    FRESH,
    GONE,
    GRACE,
    LONG_GONE,
    LOSS,
    NOW,
    PREVIEW,
    RECORDED,
    Row,
    Spec,
    inputs,
    leaving,
    row,
    there,
)

LOST = (GONE, LONG_GONE)
FOREIGN = (there(owner=None), FRESH)
ANNOTATE = f"`kubectl annotate {ADDRESS}"
OVERWRITE = f"`kubectl annotate --overwrite {ADDRESS}"
AGREED = Consent((("size", "3"),))


@pytest.mark.parametrize(
    ("seen", "texts"),
    [
        pytest.param(inputs(*LOST), [f"{ANNOTATE} fairlead.dev/consent=recreate=oid-1`"], id="start empty"),
        pytest.param(
            inputs(*LOST, consent=AGREED),
            [f"{OVERWRITE} fairlead.dev/consent=size=3,recreate=oid-1`"],
            id="beside another consent, which stays",
        ),
        pytest.param(
            inputs(*LOST, consent=Consent(used=(("recreate", "oid-1"),))),
            [f"{OVERWRITE} fairlead.dev/consent=recreate=oid-1`", "was used already"],
            id="once more",
        ),
        pytest.param(
            inputs(there(), changes=(LOSS,)),
            ["backups is 7, wanted 0", f"{ANNOTATE} fairlead.dev/consent=backups=0`"],
            id="a loss, with what it changes",
        ),
        pytest.param(
            inputs(there(), changes=(replace(LOSS, want="a b; reboot"),)),
            [f"{ANNOTATE} 'fairlead.dev/consent=backups=a b; reboot'`"],
            id="quoted for a shell",
        ),
        pytest.param(
            inputs(GONE, FRESH, predecessors=(Predecessor("old", "oid-0", FORMER),)),
            [f"{ANNOTATE} fairlead.dev/adopt=oid-0`", "annotate the claim fairlead.dev/adopt=none"],
            id="a predecessor",
        ),
        pytest.param(inputs(there("oid-2")), [f"{ANNOTATE} fairlead.dev/adopt=oid-2`"], id="replaced"),
        pytest.param(
            inputs(*FOREIGN),
            ["set allowAdoption in the ProviderConfig, ", f"{ANNOTATE} fairlead.dev/adopt=oid-1`"],
            id="foreign, and adoption is not allowed",
        ),
        pytest.param(
            inputs(*FOREIGN, adoption=True, preview=PREVIEW),
            [f"take it over: {ANNOTATE} fairlead.dev/adopt=oid-1/hash-1`; status.adoption lists what that changes"],
            id="foreign, with what adoption would change",
        ),
        pytest.param(
            inputs(*FOREIGN, adoption=True, preview=PREVIEW, consent=Consent(adopt="oid-1/hash-0")),
            [f"{OVERWRITE} fairlead.dev/adopt=oid-1/hash-1`", "no longer what the annotation that is there agrees to"],
            id="foreign, and what was agreed to is no longer what would be made",
        ),
        pytest.param(
            inputs(*FOREIGN, adoption=True, consent=Consent(adopt="oid-7")),
            [f"{OVERWRITE} fairlead.dev/adopt=oid-1`"],
            id="another one was named",
        ),
    ],
)
def test_message_has_the_command_to_go_on(seen: Inputs[Spec], texts: list[str]) -> None:
    plan = decide(seen).plan

    assert isinstance(plan, Refuse)
    assert [text for text in texts if text not in plan.message] == [], plan.message


RENAMED = Absent(remains=True, renamed="orders_x_old")
RECORDED_BEFORE = replace(RECORDED, incarnation="oid-1-random")


def known_as(incarnation: str) -> Present[Any, Any]:
    return Present(replace(there().observed, incarnation=incarnation, earlier_ids=("oid-1",)))


WORDS = "database orders_x is not gone: it is called orders_x_old now; rename it back, or drop it"
ROWS: dict[str, Row] = {
    "what was renamed is not gone and not forgotten": leaving(
        Refuse, RENAMED, LONG_GONE, reason="DatabaseRenamed", holds={"message": WORDS}
    ),
    "what was renamed is not kept": leaving(
        Refuse, RENAMED, LONG_GONE, policy=Policy.SNAPSHOT, reason="DatabaseRenamed"
    ),
    "what was renamed is an orphan all the same": leaving(RemoveFinalizer, RENAMED, LONG_GONE, policy=Policy.ORPHAN),
    "what was renamed is lost to who uses it": row(Refuse, RENAMED, LONG_GONE, reason="DatabaseLost"),
    "a record of an older form is the same database": row(Settled, known_as("oid-1-random")),
    "a record of an older form is destroyed": leaving(Delete, known_as("oid-1-random")),
    "the same number with another random is another": row(
        Refuse, known_as("oid-1-other"), RECORDED_BEFORE, reason="Replaced"
    ),
}


@pytest.mark.parametrize("case", ROWS.values(), ids=ROWS.keys())
def test_decide_on_a_renamed_database(case: Row) -> None:
    plan = decide(case.inputs).plan

    assert type(plan) is case.plan, plan
    assert {key: getattr(plan, key) for key in case.holds} == case.holds


DAYS = timedelta(days=5)
REVIVAL = Revival(DAYS, "cloud revive")
REPORTED = NOW + timedelta(days=2)
GONE = Absent()
DELETE = Delete(Policy.DELETE)


def _reported(until: str = "2026-11-23T12:00:00Z") -> dict[str, Any]:
    return {"status": {"revivableUntil": until}}


@dataclass(frozen=True)
class Revivable:
    """Inputs, the plan where there is one, and until when the database can be brought back."""

    inputs: Any
    until: datetime | None
    plan: Plan | None = None


REVIVALS = {
    "one that is there is not to be revived": Revivable(inputs(there(), revival=REVIVAL), None),
    "nor is one that came back": Revivable(inputs(there(), revival=REVIVAL, obj=_reported()), None),
    "nor is one that was never made": Revivable(inputs(GONE, FRESH, revival=REVIVAL), None),
    "a cloud that keeps nothing says nothing": Revivable(inputs(GONE, LONG_GONE), None),
    "one that is missed counts from now": Revivable(inputs(GONE, RECORDED, revival=REVIVAL), NOW + DAYS),
    "one that was missed counts from then": Revivable(inputs(GONE, LONG_GONE, revival=REVIVAL), NOW - GRACE + DAYS),
    "what was reported stays over a restart": Revivable(inputs(GONE, revival=REVIVAL, obj=_reported()), REPORTED),
    "and while nothing is learnt": Revivable(
        inputs(Unknown("CloudUnreachable", "x"), revival=REVIVAL, obj=_reported()), REPORTED
    ),
    "our deletion counts from its call": Revivable(inputs(there(), deleting=True, revival=REVIVAL), NOW + DAYS, DELETE),
    "a deletion that is sent again counts anew": Revivable(
        inputs(there(), deleting=True, revival=REVIVAL, obj=_reported()), NOW + DAYS, DELETE
    ),
    "a deletion under way keeps its end": Revivable(
        inputs(there(), deleting=True, revival=REVIVAL, obj=_reported()), REPORTED
    ),
    "so does one that is done": Revivable(inputs(GONE, deleting=True, revival=REVIVAL, obj=_reported()), REPORTED),
    "a broken date is none": Revivable(
        inputs(GONE, LONG_GONE, revival=REVIVAL, obj=_reported("soon")), NOW - GRACE + DAYS
    ),
}


@pytest.mark.parametrize("name", REVIVALS)
def test_database_can_be_revived_until(name: str) -> None:
    row = REVIVALS[name]

    assert revivable_until(row.inputs, row.plan) == row.until


def test_lost_database_names_the_date_and_the_command() -> None:
    plan = decide(inputs(GONE, LONG_GONE, revival=REVIVAL)).plan

    assert isinstance(plan, Refuse)
    assert plan.reason == "DatabaseLost"
    assert "it can be revived until 2026-11-26T11:59:00Z at the latest, by `cloud revive`; nothing is" in plan.message


def test_backup_is_named_before_a_revival() -> None:
    plan = decide(inputs(GONE, LONG_GONE, revival=REVIVAL, backup="backup-1")).plan

    assert isinstance(plan, Refuse)
    assert "the newest backup is backup-1" in plan.message
