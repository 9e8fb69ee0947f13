"""Names by rule, and the hash that is read back out of them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.external.cloud_api.naming import NAMING, hash_in, name_of
from providers.external.ownership import Identity


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
    ("claim_name", "expected"),
    [
        ("orders", "fl-orders-"),
        ("shop.orders_2", "fl-shop-orders-2-"),
        ("Überweisung", "fl-berweisung-"),
        ("a" * 29 + "-b", "fl-" + "a" * 29 + "-"),
        ("---", "fl-"),
    ],
)
def test_a_claims_name_is_made_to_fit(claim_name: str, expected: str) -> None:
    identity = _identity(claim_name)

    assert name_of(identity, "fl-") == f"{expected}{identity.hash}"
    assert NAMING.name(None, identity, "fl-") == f"{expected}{identity.hash}"


@pytest.mark.parametrize("name", ["", "legacy", "orders-ABCDEFGHIJ", "orders-abcdefghi1", "ordersabcdefghij", "a-b"])
def test_another_name_carries_no_hash(name: str) -> None:
    assert hash_in(name) == NAMING.hash_in(None, name) == ""
