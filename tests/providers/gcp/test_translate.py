"""An instance as Cloud SQL shows it, in the words of the spec: what nobody is to change differs in nothing."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from providers.external.diff import diff
from providers.external.observation import Phase
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


DIFFERENT: list[tuple[dict[str, Any], dict[str, Any], tuple[str, ...], Any, Any]] = [
    ({"tier": "db-custom-2-7680"}, {}, ("tier",), "db-custom-2-7680", "db-custom-1-3840"),
    ({"database_version": "POSTGRES_17"}, {}, ("databaseVersion",), "POSTGRES_17", "POSTGRES_16"),
    ({"edition": "ENTERPRISE_PLUS"}, {}, ("edition",), "ENTERPRISE_PLUS", "ENTERPRISE"),
    ({"data_disk_size_gb": 20}, {}, ("dataDiskSizeGb",), 20, 10),
    ({"data_disk_size_gb": 10, "storage_auto_resize": False},
     {"storageAutoResize": False, "dataDiskSizeGb": "40"}, ("dataDiskSizeGb",), 10, 40),
    ({"storage_auto_resize_limit": 100}, {}, ("storageAutoResizeLimit",), 100, 0),
    ({"availability_type": "REGIONAL"}, {}, ("availabilityType",), "REGIONAL", "ZONAL"),
    ({"activation_policy": "ALWAYS"}, {"activationPolicy": "NEVER"}, ("activationPolicy",), "ALWAYS", "NEVER"),
    ({"ipv4_enabled": False}, {}, ("ipv4Enabled",), False, True),
    ({"authorized_networks": ("203.0.113.0/24",)}, {}, ("authorizedNetworks",), ("203.0.113.0/24",), ()),
    ({"private_network": "projects/shop/global/networks/db"}, {}, ("privateNetwork",),
     "projects/shop/global/networks/db", None),
    ({"ssl_mode": "ENCRYPTED_ONLY"}, {}, ("sslMode",), "ENCRYPTED_ONLY", "ALLOW_UNENCRYPTED_AND_ENCRYPTED"),
    ({"connector_enforcement": "REQUIRED"}, {}, ("connectorEnforcement",), "REQUIRED", "NOT_REQUIRED"),
    ({"database_flags": {"jit": "off"}}, {}, ("databaseFlags", "jit"), "off", None),
    ({"database_flags": {}}, {"databaseFlags": [{"name": "jit", "value": "off"}]}, ("databaseFlags", "jit"), None,
     "off"),
    ({"backup_enabled": True}, {}, ("backupEnabled",), True, False),
    ({"backup_start_time": "03:00"}, {}, ("backupStartTime",), "03:00", "12:00"),
    ({"backup_location": "eu"}, {"backupConfiguration": {"location": "us"}}, ("backupLocation",), "eu", "us"),
    ({"retained_backups": 14}, {}, ("retainedBackups",), 14, 7),
    ({"point_in_time_recovery_enabled": True}, {}, ("pointInTimeRecoveryEnabled",), True, False),
    ({"transaction_log_retention_days": 3}, {}, ("transactionLogRetentionDays",), 3, 7),
    ({"zone": "us-central1-c"}, {}, ("zone",), "us-central1-c", "us-central1-a"),
    ({"maintenance_day": 7}, {}, ("maintenanceDay",), 7, 0),
    ({"maintenance_hour": 3}, {"maintenanceWindow": {"day": 7, "hour": 4}}, ("maintenanceHour",), 3, 4),
    ({"maintenance_track": "canary"}, {"maintenanceWindow": {"updateTrack": "stable"}}, ("maintenanceTrack",),
     "canary", "stable"),
    ({"maintenance_version": "POSTGRES_16_9.R20260101.00_01"}, {}, ("maintenanceVersion",),
     "POSTGRES_16_9.R20260101.00_01", "POSTGRES_16_9.R20250302.00_31"),
    ({"query_insights_enabled": True}, {}, ("queryInsightsEnabled",), True, False),
    ({"data_cache_enabled": True}, {}, ("dataCacheEnabled",), True, False),
    ({"deletion_protection_enabled": True}, {}, ("deletionProtectionEnabled",), True, False),
    ({"user_labels": {"team": "shop"}}, {}, ("userLabels", "team"), "shop", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "settings", "path", "want", "have"), DIFFERENT, ids=[f"{row[2]} {row[3]}" for row in DIFFERENT]
)
def test_difference_has_one_path(
    wanted: dict[str, Any], settings: dict[str, Any], path: tuple[str, ...], want: Any, have: Any
) -> None:
    desired = spec(**wanted)
    (change,) = diff(desired, seen(desired, instance(**settings)).spec)
    assert (change.path, change.want, change.have) == (path, want, have)


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


def test_an_answer_is_not_changed_by_reading_it() -> None:
    answer = instance()
    before = copy.deepcopy(answer)
    seen(None, answer)
    assert answer == before
