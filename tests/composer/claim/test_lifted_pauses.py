"""A pause that has ended for a claim has ended for its children, those that are going included."""

from __future__ import annotations

import pytest

from apis import names
from composer.claim.decide import Annotate, decide
from composer.claim.snapshot import ObservedChild
from composer.kinds.catalog import KindFacts
from runtime.objects import Resource
from tests.composer.factories import DATABASE, NOW, annotated, child, desired, entry, live, rendered, snapshot

WANTED = desired()
MARKS = {"external-name": "orders_x", "incarnation": "16400", "account": "77"}
MARKED = annotated(live(WANTED), external_name="orders_x", incarnation="16400", account="77")


@pytest.mark.parametrize(
    ("instruction", "annotations"), [("", {names.TEARDOWN: "child-uid/Detach"}), ("child-uid/Detach", {})]
)
def test_a_pause_that_has_ended_ends_for_a_child_that_somebody_deleted_meanwhile(
    instruction: str, annotations: dict[str, str]
) -> None:
    dying = annotated(live(MARKED, deleted=True), paused="true", **({"teardown": instruction} if instruction else {}))
    seen = snapshot(ObservedChild(entry(external_reference=MARKS), dying, DATABASE))

    (step,) = decide(seen, rendered(child(WANTED, ready=False)), now=NOW).steps

    assert isinstance(step, Annotate)
    assert step.annotations == {names.PAUSED: None, **annotations}


def test_a_pause_that_has_ended_ends_for_a_child_that_is_not_wanted_any_more() -> None:
    groups = KindFacts(Resource("aws.fairlead.dev", "v1", "DBParameterGroup", "dbparametergroups"), stateful=False)
    dying = annotated(live(desired("group", groups), deleted=True), paused="true", teardown="child-uid/Delete")
    known = ObservedChild(entry("group", groups), dying, groups)

    steps = decide(
        snapshot(ObservedChild(entry(), live(WANTED), DATABASE), known), rendered(child(WANTED)), now=NOW
    ).steps

    assert [step.annotations for step in steps if isinstance(step, Annotate)] == [{names.PAUSED: None}]
