"""A claim is made again under the name of one that was removed by force: foreign objects with data are not doubled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apis import names
from composer.claim.decide import Create, decide
from composer.claim.snapshot import ObservedChild
from tests.composer.factories import NOW, SETTINGS, VOLUME, child, claim, desired, entry, live, rendered, snapshot

LEFT = ObservedChild(entry("data", VOLUME, uid="former-uid"), live(desired("data", VOLUME), uid="former-uid"), VOLUME)
WANTED = rendered(child(desired("data", VOLUME), "data"), child(desired("settings", SETTINGS), "settings"))


def test_what_the_claim_has_already_is_kept_and_made_again_beside_what_an_earlier_claim_left() -> None:
    seen = ObservedChild(entry("settings", SETTINGS, uid="settings-uid"), None, SETTINGS)
    of_both = replace(snapshot(seen), predecessors=(LEFT,))

    (step,) = decide(of_both, WANTED, now=NOW).steps

    assert isinstance(step, Create)
    assert step.entry.resource == "settings"


# A claim out of a backup: its identity has the uid of its first life

RESTORED = {names.IDENTITY: "former-uid@shop/orders"}
BOUND = {"binding": {"name": "orders-connection"}}


@pytest.mark.parametrize(
    ("annotations", "status", "made", "reasons"),
    [
        pytest.param(RESTORED, {}, ["settings"], ["DatabaseLost"], id="its object is not in the backup"),
        pytest.param(
            RESTORED, {"identity": RESTORED[names.IDENTITY]}, ["settings"], ["DatabaseLost"], id="seen before"
        ),
        pytest.param({**RESTORED, names.ADOPT: "none"}, {}, ["data", "settings"], [], id="a new one is asked for"),
        pytest.param(
            RESTORED, BOUND, ["data", "settings"], [], id="it was served since, and its Composition has more now"
        ),
        pytest.param({names.IDENTITY: "claim-uid@shop/orders"}, {}, ["data", "settings"], [], id="the same life"),
        pytest.param(
            {names.IDENTITY: "former-uid@shop/another"}, {}, ["data", "settings"], [], id="a copy of another claim"
        ),
    ],
)
def test_an_empty_child_is_not_created_for_a_claim_out_of_a_backup(
    annotations: dict[str, str], status: dict[str, Any], made: list[str], reasons: list[str]
) -> None:
    plan = decide(snapshot(of=claim(annotations=annotations, status=status)), WANTED, now=NOW)

    assert [step.entry.resource for step in plan.steps if isinstance(step, Create)] == made
    assert [why.reason for why in plan.causes] == reasons
    assert all("fairlead.dev/adopt=none`" in why.message for why in plan.causes)
