"""A claim is made again under the name of one that was removed by force: foreign objects with data are not doubled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apis import names
from composer.claim.decide import Adopt, Create, decide
from composer.claim.deletion import adoption_patch
from composer.claim.snapshot import ObservedChild
from tests.composer.factories import NOW, SETTINGS, VOLUME, child, claim, desired, entry, live, rendered, snapshot

LEFT = ObservedChild(entry("data", VOLUME, uid="former-uid"), live(desired("data", VOLUME), uid="former-uid"), VOLUME)
ABOUT = {names.CLAIM_NAME: "orders", names.RESOURCE: "data"}
DYING = replace(LEFT, live=live(desired("data", VOLUME), uid="former-uid", deleted=True))
WANTED = rendered(child(desired("data", VOLUME), "data"), child(desired("settings", SETTINGS), "settings"))


def _decided(*left: ObservedChild, **annotations: str) -> tuple[list[str], list[str]]:
    """Return the resources that are made, and the reasons of what is not."""
    marked = {names.PREFIX + name: text for name, text in annotations.items()}
    plan = decide(replace(snapshot(of=claim(annotations=marked)), predecessors=left), WANTED, now=NOW)
    return [step.entry.resource for step in plan.steps if isinstance(step, Create)], [why.reason for why in plan.causes]


@pytest.mark.parametrize(
    ("left", "annotations", "made", "reasons"),
    [
        pytest.param((), {}, ["data", "settings"], [], id="nothing is left"),
        pytest.param((LEFT,), {}, [], ["PredecessorFound"], id="data are left"),
        pytest.param((LEFT,), {"adopt": "none"}, ["data", "settings"], [], id="a new one is asked for"),
        pytest.param((LEFT,), {"adopt": "former-uid"}, ["settings"], [], id="it is taken over"),
        pytest.param((LEFT,), {"adopt": "another-uid"}, [], ["PredecessorFound"], id="another one is to be taken over"),
        pytest.param((), {"external-names": "data=there"}, [], ["PredecessorFound"], id="what is named is not there"),
        pytest.param(
            (), {"external-names": "settings=there"}, ["data", "settings"], [], id="what is named has no data"
        ),
        pytest.param((DYING,), {"adopt": "former-uid"}, [], ["PredecessorFound"], id="it is being deleted"),
        pytest.param(
            (replace(LEFT, entry=entry("other", VOLUME)),), {}, ["data", "settings"], [], id="another resource's"
        ),
    ],
)
def test_nothing_new_is_created_beside_what_an_earlier_claim_left(
    left: tuple[ObservedChild, ...], annotations: dict[str, Any], made: list[str], reasons: list[str]
) -> None:
    assert _decided(*left, **annotations) == (made, reasons)


def test_what_is_taken_over_keeps_its_name_and_gets_our_label_and_finalizer() -> None:
    owner = claim(annotations={names.ADOPT: "other, former-uid"})
    left = replace(LEFT, entry=entry("data", VOLUME, uid="former-uid", name="orders-data-former"))

    (step,) = (
        step
        for step in decide(replace(snapshot(of=owner), predecessors=(left,)), WANTED, now=NOW).steps
        if isinstance(step, Adopt)
    )

    assert (step.entry.name, step.entry.uid, step.entry.adopted) == ("orders-data-former", "former-uid", True)
    stripped = (
        {**left.live, "metadata": {**left.live["metadata"], "labels": None, "annotations": None}} if left.live else {}
    )
    values = {operation["path"]: operation.get("value") for operation in adoption_patch(stripped, "claim-uid", ABOUT)}
    assert values["/metadata/labels/fairlead.dev~1claim"] == "claim-uid"
    assert values["/metadata/annotations/fairlead.dev~1resource"] == "data"
    assert values["/metadata/finalizers"] == [names.TEARDOWN_FINALIZER]


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
