"""What is read off a claim."""

from __future__ import annotations

import pytest

from apis import names
from composer.claim.snapshot import ObservedChild, entry_of, without_yielded
from composer.inventory import Entry, YieldedField, dump, load
from runtime.objects import Object
from tests.composer.factories import DATABASE, SETTINGS, VOLUME, annotated, claim, desired, entry, live, snapshot


@pytest.mark.parametrize(
    ("observed_generation", "generation", "revision", "is_new"),
    [(1, 1, "c-a", False), (1, 2, "c-a", True), (1, 1, "c-b", True)],
    ids=["nothing changed", "another generation", "another revision"],
)
def test_a_new_intent_ends_the_yield_of_fields(
    observed_generation: int, generation: int, revision: str, *, is_new: bool
) -> None:
    owner = claim(
        status={"observedGeneration": observed_generation, "composition": {"revision": "c-a"}}, generation=generation
    )
    yielded = entry(yielded=(YieldedField(".spec.limit", "rival", "2026-11-21T12:10:00Z"),))
    seen = snapshot(ObservedChild(yielded, live(desired()), DATABASE), of=owner)

    assert seen.is_new_intent(revision) == is_new
    assert [observed.entry.yielded for observed in without_yielded(seen).children] == [()]


def test_a_broken_entry_is_skipped() -> None:
    assert load({"inventory": [{"name": 3}, *dump([entry()])]}) == (entry(),)
    assert load({}) == ()


def test_a_child_that_has_its_label_alone_is_recognized() -> None:
    child = annotated(live(desired()), incarnation="5")

    assert entry_of(child, stateful=True) == Entry(
        resource="database",
        api_version="onprem.fairlead.dev/v1alpha1",
        kind="PostgresDatabase",
        name=child["metadata"]["name"],
        uid="child-uid",
        stateful=True,
        external_reference={"incarnation": "5"},
    )
    bare = {**child, "metadata": {**child["metadata"], "annotations": {}}}
    assert entry_of(bare, stateful=True) is None


@pytest.mark.parametrize(
    ("child", "is_stateful"),
    [
        (live(desired("a", SETTINGS)), False),
        (annotated(live(desired("a", SETTINGS)), stateful="true"), True),
        (live(desired("a", VOLUME), finalizers=[names.TEARDOWN_FINALIZER]), True),
        (live(desired("a", VOLUME), finalizers=[names.TEARDOWN_FINALIZER], ownerReferences=[{"uid": "1"}]), False),
        (live(desired("a", VOLUME), finalizers=["kubernetes.io/pvc-protection"]), False),
        (live(desired(), finalizers=[names.TEARDOWN_FINALIZER]), False),
    ],
    ids=[
        "says nothing",
        "says it",
        "is a foreign one that we hold",
        "has an owner",
        "is held by somebody else",
        "is held by its provider",
    ],
)
def test_a_child_records_whether_it_holds_data(child: Object, *, is_stateful: bool) -> None:
    recorded = entry_of(child, stateful=False)

    assert recorded is not None
    assert recorded.stateful is is_stateful
