"""Names by rule, the hash that is read back out of them, and versions that cover others."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.external.cloud_api.naming import NAMING, hash_in, name_of
from providers.external.cloud_api.versions import covers, major_of, satisfies
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
