"""Names, versions and owners by rule; whose an object is by its tags, which are to be written, and which to go."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.external.cloud_api.naming import hash_in, name_of
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
from providers.external.cloud_api.versions import covers, major_of, satisfies
from providers.external.observation import Change
from providers.external.ownership import Identity, Owner, identity_of
from runtime.objects import Object
from tests.providers.managed.test_record import P, obj


def _identity(claim_name: str, uid: str = "uid-1") -> Identity:
    return Identity(uid, claim_name, "db", "", has_claim=True)


@given(st.text(max_size=80), st.uuids().map(str))
def test_a_name_has_letters_digits_and_single_dashes_and_carries_its_hash(claim_name: str, uid: str) -> None:
    identity = _identity(claim_name, uid)
    name = name_of(identity, "fl-")

    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    assert len(name) <= len("fl-") + 41
    assert hash_in(name) == identity.hash


@pytest.mark.parametrize(
    ("wanted", "running", "is_covered", "is_satisfied"),
    [
        ("16", "16.4", True, True),
        ("16.4", "16.4", True, True),
        ("16", "16", True, True),
        ("1", "16.4", False, False),
        ("16.4", "16.40", False, True),
        ("16.4", "16.10", False, True),
        ("16.10", "16.4", False, False),
        ("16.4", "16", False, False),
        ("16", "17.1", False, False),
        ("17", "16.9", False, False),
        ("16.4", "16.4-R1", False, False),
    ],
)
def test_a_minor_version_may_run_ahead_and_a_major_one_may_not(
    wanted: str, running: str, *, is_covered: bool, is_satisfied: bool
) -> None:
    assert covers(wanted, running) is is_covered
    assert satisfies(wanted, running) is is_satisfied


def test_the_major_version_is_the_first_number() -> None:
    assert [major_of(version) for version in ("16", "16.4", "16.4-R1", "")] == ["16", "16", "16", ""]


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


def child(**changed: str) -> Object:
    annotations = {P + "claim-name": "shop", P + "resource": "database", P + "key": "eu"} | changed
    return obj(annotations, labels={P + "claim": "claim-uid"})


def test_identity_without_its_claim_is_doubtful() -> None:
    unnamed = child()
    unnamed["metadata"]["annotations"] = {}
    unlabelled = child()
    unlabelled["metadata"]["labels"] = {}
    bare = obj()
    bare["metadata"]["ownerReferences"] = [{"kind": "PostgreSQLInstance", "name": "shop", "controller": True}]

    assert [identity_of(resource).doubtful for resource in (unnamed, unlabelled, bare, child(), obj())] == [
        True,
        True,
        True,
        False,
        False,
    ]
