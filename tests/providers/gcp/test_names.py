"""Names by rule, and the owner in labels of Google's alphabet."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.external.ownership import Identity, Owner
from providers.gcp import names
from tests.providers.gcp.answers import OWNER

LABEL = re.compile(r"[a-z0-9_-]{0,63}")


@pytest.mark.parametrize(
    ("claim", "starts"),
    [("orders", "fl-orders-"), ("orders.v2", "fl-orders-v2-"), ("a" * 60, f"fl-{'a' * 30}-"), ("--", "fl-")],
)
def test_name_holds_the_claim_and_its_hash(claim: str, starts: str) -> None:
    identity = Identity("uid", claim, "instance", "", has_claim=True)
    name = names.name_of(identity, "fl-")
    assert name == f"{starts}{identity.hash}"
    assert names.hash_in(name) == (identity.hash if claim != "--" else names.hash_in(name))


@pytest.mark.parametrize("name", ["orders", "orders-db", "fl-orders-ABCDEFGHIJ"])
def test_a_persons_name_holds_no_hash(name: str) -> None:
    assert names.hash_in(name) == ""


def test_inside_names_carry_their_instance() -> None:
    assert names.child_name("fl-orders", "app") == "fl-orders/app"
    assert names.own_name("fl-orders/app") == "app"
    assert names.own_name("app") == "app"
    assert names.child_name(None, "app").partition("/")[0] == ""


def test_owner_comes_back_from_its_labels() -> None:
    labels = names.owner_labels(OWNER)
    assert names.owner_from({**labels, "team": "shop"}) == OWNER
    assert all(LABEL.fullmatch(key) and LABEL.fullmatch(value) for key, value in labels.items())
    assert labels["fairlead-name"] == "orders_2ev2"


@pytest.mark.parametrize("missing", [names.INSTALLATION, names.IDENTITY, names.CLAIM])
def test_owner_needs_the_three_labels_that_decide(missing: str) -> None:
    labels = names.owner_labels(OWNER)
    del labels[missing]
    assert names.owner_from(labels) is None


@given(st.text(max_size=80))
def test_values_fit_into_a_label_and_come_back_as_far_as_they_fit(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return
    label = names.encoded(value)
    assert LABEL.fullmatch(label)
    assert value.startswith(names.decoded(label))


@given(st.text(alphabet="abcxyz_-.0129/", max_size=20), st.text(alphabet="abcxyz_-.0129/", max_size=20))
def test_two_values_never_share_a_label(first: str, second: str) -> None:
    assert (names.encoded(first) == names.encoded(second)) == (first == second)


def test_owner_without_a_namespace_uid_has_no_such_label() -> None:
    owner = Owner(*OWNER.tags)
    assert set(names.owner_labels(owner)) == {names.INSTALLATION, names.IDENTITY, names.CLAIM}
    assert names.owner_from(names.owner_labels(replace(owner))) == owner


def test_peoples_labels_are_those_without_our_prefix() -> None:
    assert names.peoples_labels({"team": "shop", names.RELEASED: "1"}) == {"team": "shop"}
