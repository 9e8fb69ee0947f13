"""What is read off a claim."""

from __future__ import annotations

from composer.claim.snapshot import entry_of
from composer.inventory import Entry, dump, load
from tests.composer.factories import annotated, desired, entry, live


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
