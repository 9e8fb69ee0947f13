"""Whose an object is by its tags; which tags are to be written, and which to go."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from providers.external.cloud_api.tags import (
    TagChanges,
    missing_owner_tags,
    owner_from,
    owner_tags,
    peoples_tags,
    released_tag,
    tag_changes,
    with_owner,
)
from providers.external.observation import Change
from providers.external.ownership import Owner

OWNER = Owner("home", "uid-1", "0123456789abcdef", "shop", "orders", "db", "shop-uid")
TAGS = {
    "fairlead-installation": "home",
    "fairlead-identity": "uid-1",
    "fairlead-claim": "0123456789abcdef",
    "fairlead-namespace": "shop",
    "fairlead-name": "orders",
    "fairlead-resource": "db",
    "fairlead-namespace-uid": "shop-uid",
}


def test_an_owner_is_read_from_the_tags_that_it_wrote() -> None:
    assert owner_tags(OWNER) == TAGS
    assert owner_from(TAGS) == OWNER
    # Of before a namespace's uid was recorded.
    former = replace(OWNER, namespace_uid="")
    assert owner_from(owner_tags(former)) == former
    assert "fairlead-namespace-uid" not in owner_tags(former)


@pytest.mark.parametrize("missing", ["fairlead-installation", "fairlead-identity", "fairlead-claim"])
def test_an_object_is_nobodys_without_one_of_the_three_tags_that_decide(missing: str) -> None:
    assert owner_from({key: value for key, value in TAGS.items() if key != missing}) is None
    assert owner_from({**TAGS, missing: ""}) is None


def test_a_spec_cannot_set_an_owner() -> None:
    written = with_owner({"team": "a", "fairlead-identity": "another"}, OWNER)

    assert written == {**TAGS, "team": "a"}
    assert with_owner(None, OWNER) == TAGS


def test_peoples_tags_are_neither_ours_nor_the_clouds() -> None:
    tags = {**TAGS, "team": "a", "aws:createdBy": "b", "goog-terraform": "c"}

    assert peoples_tags(tags, "aws:") == {"team": "a", "goog-terraform": "c"}
    assert peoples_tags(tags, "aws:", "goog-") == {"team": "a"}


def test_owner_tags_that_are_missing_or_differ_are_changes() -> None:
    present = {**TAGS, "fairlead-claim": "another", "team": "a"}
    del present["fairlead-name"]

    assert missing_owner_tags(OWNER, TAGS) == ()
    assert missing_owner_tags(OWNER, present) == (
        Change(("tags", "fairlead-claim"), "0123456789abcdef", "another"),
        Change(("tags", "fairlead-name"), "orders", None),
    )


def test_changes_of_tags_are_those_to_write_and_those_to_remove() -> None:
    changes = (
        Change(("tags", "team"), "a", None),
        Change(("tags", "with.dots"), None, "b"),
        Change(("allocatedStorage",), 30, 20),
    )

    assert tag_changes(changes) == TagChanges({"team": "a"}, frozenset({"with.dots"}))
    assert tag_changes(changes[2:]) == TagChanges({}, frozenset())


def test_a_release_is_written_in_seconds() -> None:
    assert released_tag(datetime(2026, 1, 1, 0, 0, 0, 999, tzinfo=UTC)) == {"fairlead-released": "1767225600"}
