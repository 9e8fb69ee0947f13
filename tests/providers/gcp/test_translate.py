"""An instance as Cloud SQL shows it, in the words of the spec; names by rule, owners in Google's alphabet."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.external.diff import diff
from providers.external.observation import Phase
from providers.external.ownership import Identity, Owner
from providers.gcp import names
from providers.gcp.instances import translate
from providers.gcp.models import DenyMaintenancePeriod
from providers.gcp.names import owner_labels
from tests.providers.gcp.answers import CREATED, OWNER, instance, seen, spec, target

EQUAL: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("a new instance and a spec that says little", {}, {}),
    ("tier in other letters", {"tier": "DB-custom-1-3840"}, {}),
    ("defaults that are spelled out", {"availability_type": "ZONAL", "activation_policy": "ALWAYS"}, {}),
    ("defaults of an answer that leaves them out", {"storage_auto_resize": True, "ipv4_enabled": True}, {
        "storageAutoResize": None, "ipConfiguration": None}),
    ("an edition that the answer never shows", {"edition": "ENTERPRISE_PLUS"}, {"edition": None}),
    ("a disk that grew by itself", {"data_disk_size_gb": 10}, {"dataDiskSizeGb": "40"}),
    ("no networks and an empty list", {"authorized_networks": ()}, {}),
    ("networks in another order, one without a length",
     {"authorized_networks": ("203.0.113.0/24", "198.51.100.7/32")},
     {"ipConfiguration": {"authorizedNetworks": [{"value": "203.0.113.0/24"}, {"value": "198.51.100.7"}]}}),
    ("a network by the number of its project", {"private_network": "projects/shop/global/networks/db"},
     {"ipConfiguration": {"privateNetwork": "projects/314159/global/networks/db"}}),
    ("flags in another order and other units", {"database_flags": {"work_mem": "64MB", "jit": "true"}},
     {"databaseFlags": [{"name": "work_mem", "value": "65536"}, {"name": "jit", "value": "on"}]}),
    ("no flags", {"database_flags": {}}, {}),
    ("zones that a failover exchanged", {"zone": "us-central1-b", "secondary_zone": "us-central1-a"},
     {"locationPreference": {"zone": "us-central1-a", "secondaryZone": "us-central1-b"}}),
    ("a later maintenance version", {"maintenance_version": "POSTGRES_16_4.R20240101.00_05"}, {}),
    ("insights that are off and not shown", {"query_insights_enabled": False, "query_string_length": 1024}, {}),
    ("labels of others", {"user_labels": {"team": "shop"}}, {"userLabels": {"team": "shop", "cost": "42"}}),
    ("a period without maintenance", {"deny_maintenance_period": DenyMaintenancePeriod("11-20", "12-31")},
     {"denyMaintenancePeriods": [{"startDate": "11-20", "endDate": "12-31", "time": "00:00:00"}]}),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "settings"), [row[1:] for row in EQUAL], ids=[row[0] for row in EQUAL])
def test_equal_means_equal(wanted: dict[str, Any], settings: dict[str, Any]) -> None:
    desired = spec(**wanted)
    answer = instance(**settings)
    answer["settings"] = {key: value for key, value in answer["settings"].items() if value is not None}
    assert diff(desired, seen(desired, answer).spec) == ()


def test_what_moved_by_itself_is_listed_and_left() -> None:
    desired = spec(data_disk_size_gb=10, maintenance_version="POSTGRES_16_4.R20240101.00_05")
    observed = seen(desired, instance(dataDiskSizeGb="40"))
    assert [(change.shown, change.have) for change in observed.tolerated] == [
        ("dataDiskSizeGb", 40),
        ("maintenanceVersion", "POSTGRES_16_9.R20250302.00_31"),
    ]


STATES = [
    ("RUNNABLE", "ALWAYS", Phase.READY, True),
    ("RUNNABLE", "NEVER", Phase.STOPPED, False),
    ("ONLINE_MAINTENANCE", "ALWAYS", Phase.READY, True),
    ("PENDING_CREATE", "ALWAYS", Phase.BUSY, False),
    ("PENDING_DELETE", "ALWAYS", Phase.BUSY, False),
    ("MAINTENANCE", "ALWAYS", Phase.BUSY, False),
    ("REPAIRING", "ALWAYS", Phase.BUSY, False),
    ("SUSPENDED", "ALWAYS", Phase.FAILED, False),
    ("FAILED", "ALWAYS", Phase.FAILED, False),
    ("NEVER_HEARD_OF", "ALWAYS", Phase.BUSY, False),
]


@pytest.mark.parametrize(("state", "activation", "phase", "usable"), STATES)
def test_state_says_what_may_be_done(state: str, activation: str, phase: Phase, *, usable: bool) -> None:
    answer = {**instance(activationPolicy=activation), "state": state}
    observed = seen(None, answer)
    assert (observed.phase, observed.usable) == (phase, usable)
    assert state in observed.state


def test_suspension_names_what_ends_it() -> None:
    observed = seen(None, {**instance(), "state": "SUSPENDED", "suspensionReason": ["KMS_KEY_ISSUE"]})
    assert "KMS key" in observed.remedy


def test_incarnation_is_the_time_of_creation_and_the_owner_stands_in_the_labels() -> None:
    observed = seen(None, instance(userLabels=owner_labels(OWNER)))
    assert (observed.incarnation, observed.owner) == (CREATED, OWNER)
    assert translate.invariants(target(), observed) == ()


def test_labels_of_ours_that_are_missing_are_put_back() -> None:
    changes = translate.invariants(target(), seen())
    assert {change.path[1]: change.want for change in changes} == owner_labels(OWNER)


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
