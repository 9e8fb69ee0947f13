"""A pause that has ended for a claim has ended for its children, those that are going included."""

from __future__ import annotations

import pytest

from apis import names
from composer.claim.decide import Annotate, decide
from composer.claim.snapshot import ObservedChild
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
