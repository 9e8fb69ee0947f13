"""Names made by rule."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apis import names
from apis.identity import Identity, NameRule, child_name, connection_secret_name
from runtime.objects import Key

DNS = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
claim_names = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True)
resource_names = st.from_regex(r"[a-z][a-z0-9]{0,62}", fullmatch=True)


def test_a_name_never_changes() -> None:
    # Recorded: another value here means that every child in the field gets another name.
    identity = Identity("7d1c8f1e-3a8e-4a0e-9d3e-0e7a3f0c1b2a", "shop", "orders")

    assert child_name(identity, "database") == "orders-database-3exvmfyowm"
    assert (
        names.claim_manager("database.fairlead.dev", "PostgreSQLInstance", Key("shop", "orders"))
        == "fairlead.dev/7b7c0b19229fa393"
    )


@given(claim_names, resource_names, st.text(max_size=20))
def test_every_name_is_valid(claim: str, resource: str, key: str) -> None:
    name = child_name(Identity("uid", "shop", claim), resource, key)

    assert len(name) <= 63
    assert DNS.fullmatch(name)


@given(claim_names, resource_names, st.from_regex(r"[a-z][-a-z0-9]{0,19}", fullmatch=True), st.integers(54, 63))
def test_every_name_under_a_rule_is_a_dns_label_within_its_limit(
    claim: str, resource: str, prefix: str, limit: int
) -> None:
    identity, rule = Identity("uid", "shop", claim), NameRule(prefix, limit)

    name = child_name(identity, resource, "", rule)

    assert name.startswith(prefix)
    assert len(name) <= limit
    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)
    assert name.endswith(child_name(identity, resource)[-10:])


def test_a_name_under_a_rule_never_changes() -> None:
    # Recorded, as above.
    identity = Identity("7d1c8f1e-3a8e-4a0e-9d3e-0e7a3f0c1b2a", "shop", "orders.of.the.northern.warehouse.x")

    names_made = [
        child_name(identity, "database", "", rule)
        for rule in (NameRule(limit=50), NameRule("acid-"), NameRule("acid-", 40))
    ]

    assert names_made == [
        "orders-of-the-northern-warehou-database-3exvmfyowm",
        "acid-orders-of-the-northern-warehou-database-3exvmfyowm",
        "acid-orders-of-the-n-database-3exvmfyowm",
    ]


@given(claim_names)
def test_every_secret_name_is_valid(claim: str) -> None:
    name = connection_secret_name(claim)

    assert len(name) <= 253
    assert DNS.fullmatch(name)


def test_names_that_are_cut_alike_differ() -> None:
    long = "x" * 40
    child_names = {child_name(Identity(f"uid-{n}", "shop", long + str(n)), "database") for n in range(50)}

    assert len(child_names) == 50


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ((), "new@shop/orders"),
        (("old@shop/orders",), "old@shop/orders"),
        (("", "old@shop/orders"), "old@shop/orders"),
        (("old@shop/copied-from",), "new@shop/orders"),
        (("old@elsewhere/orders", "older@shop/orders"), "older@shop/orders"),
        (("nonsense",), "new@shop/orders"),
        (("@shop/orders",), "new@shop/orders"),
    ],
)
def test_an_identity_is_kept_unless_it_came_with_a_copy(recorded: tuple[str, ...], expected: str) -> None:
    assert str(Identity.choose(recorded, Key("shop", "orders"), "new")) == expected
