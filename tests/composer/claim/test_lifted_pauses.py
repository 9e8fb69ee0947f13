"""A pause that has ended for a claim has ended for its children, those that are going included."""

from __future__ import annotations

from apis import names
from composer.claim.decide import Annotate, decide
from composer.claim.snapshot import ObservedChild
from composer.kinds.catalog import KindFacts
from runtime.objects import Resource
from tests.composer.factories import DATABASE, NOW, annotated, child, desired, entry, live, rendered, snapshot

WANTED = desired()


def test_a_pause_that_has_ended_ends_for_a_child_that_is_not_wanted_any_more() -> None:
    groups = KindFacts(Resource("aws.fairlead.dev", "v1", "DBParameterGroup", "dbparametergroups"), stateful=False)
    dying = annotated(live(desired("group", groups), deleted=True), paused="true", teardown="child-uid/Delete")
    known = ObservedChild(entry("group", groups), dying, groups)

    steps = decide(
        snapshot(ObservedChild(entry(), live(WANTED), DATABASE), known), rendered(child(WANTED)), now=NOW
    ).steps

    assert [step.annotations for step in steps if isinstance(step, Annotate)] == [{names.PAUSED: None}]
