"""What a refusal offers to be typed, in whole commands; decisions on a database that somebody renamed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apis.teardown import Policy
from providers.external.consent import Consent
from providers.external.observation import Absent, Predecessor, Present
from providers.managed.decisions.decide import decide
from providers.managed.decisions.plan import Delete, Refuse, RemoveFinalizer, Settled
from providers.managed.inputs import Inputs
from tests.providers.managed.test_decide import (
    ADDRESS,
    FORMER,
    FRESH,
    GONE,
    LONG_GONE,
    LOSS,
    RECORDED,
    SIZE,
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
            inputs(*FOREIGN, adoption=True, observe_only=True),
            ["take it over: set managementPolicy: Manage, ", f"{ANNOTATE} fairlead.dev/adopt=oid-1`"],
            id="foreign, and only observed",
        ),
        pytest.param(
            inputs(*FOREIGN, adoption=True, changes=(SIZE,)),
            [f"take it over: {ANNOTATE} fairlead.dev/adopt=oid-1`; status.drift lists what that changes"],
            id="foreign, with what adoption would change",
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
