"""What a change does to sessions, what a patch makes of settings, which tiers there are."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from devcloud.gcp.state import catalog
from devcloud.gcp.state.changes import effect_of
from devcloud.gcp.state.settings import defaults, merged, settled

Json = dict[str, Any]


def instance(**settings: Any) -> Json:
    usual = defaults("ENTERPRISE", "europe-west1-b")
    return {
        "databaseVersion": "POSTGRES_16",
        "maintenanceVersion": catalog.maintenance_version("POSTGRES_16"),
        "settings": merged(usual, {"tier": "db-custom-1-3840", **settings}),
    }


@pytest.mark.parametrize(
    ("change", "effect"),
    [
        ({}, "online"),
        ({"dataDiskSizeGb": "20"}, "online"),
        ({"userLabels": {"team": "a"}}, "online"),
        ({"backupConfiguration": {"enabled": True}}, "online"),
        ({"ipConfiguration": {"authorizedNetworks": [{"value": "10.0.0.0/8"}]}}, "online"),
        ({"maintenanceWindow": {"day": 1, "hour": 2}}, "online"),
        ({"databaseFlags": [{"name": "work_mem", "value": "4096"}]}, "online"),
        ({"databaseFlags": [{"name": "max_connections", "value": "200"}]}, "restart"),
        ({"tier": "db-custom-2-7680"}, "restart"),
        ({"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2"}, "restart"),
        ({"availabilityType": "REGIONAL"}, "restart"),
        ({"locationPreference": {"zone": "europe-west1-c"}}, "restart"),
    ],
)
def test_effect_of_a_change_of_settings(change: Json, effect: str) -> None:
    assert effect_of(instance(), instance(**change)) == effect


def test_effect_of_another_version() -> None:
    assert effect_of(instance(), {**instance(), "databaseVersion": "POSTGRES_17"}) == "upgrade"
    assert effect_of(instance(), {**instance(), "maintenanceVersion": "POSTGRES_16_9.R20260101.00_01"}) == "restart"


def test_patch_leaves_what_it_was_given_as_it_was() -> None:
    present: Json = {"a": {"b": 1, "c": [1]}, "d": 2}
    change: Json = {"a": {"b": None, "c": [2]}, "e": {"f": 3}}
    before = copy.deepcopy((present, change))

    assert merged(present, change) == {"a": {"c": [2]}, "d": 2, "e": {"f": 3}}
    assert (present, change) == before


def test_settings_are_filled_in() -> None:
    sent = {
        "tier": "db-f1-micro",
        "ipConfiguration": {"authorizedNetworks": [{"value": "10.0.0.0/8"}], "sslMode": "ENCRYPTED_ONLY"},
        "insightsConfig": {"queryInsightsEnabled": True},
        "backupConfiguration": {"enabled": True, "pointInTimeRecoveryEnabled": True},
    }
    kept = settled(merged(defaults("ENTERPRISE", "z"), sent), ("edition",))

    assert kept["ipConfiguration"]["authorizedNetworks"] == [{"value": "10.0.0.0/8", "kind": "sql#aclEntry"}]
    assert kept["ipConfiguration"]["requireSsl"] is False
    assert kept["insightsConfig"]["queryPlansPerMinute"] == 5
    assert kept["backupConfiguration"]["transactionalLogStorageState"] == "CLOUD_STORAGE"
    assert "edition" not in kept


@pytest.mark.parametrize(
    ("tier", "edition", "is_one"),
    [
        ("db-f1-micro", "ENTERPRISE", True),
        ("db-custom-1-3840", "ENTERPRISE", True),
        ("db-custom-2-7680", "ENTERPRISE", True),
        ("db-custom-96-638976", "ENTERPRISE", True),
        ("db-perf-optimized-N-8", "ENTERPRISE_PLUS", True),
        ("db-custom-2-7681", "ENTERPRISE", False),
        ("db-custom-2-13568", "ENTERPRISE", False),
        ("db-custom-98-376832", "ENTERPRISE", False),
        ("db-n1-standard-1", "ENTERPRISE", False),
        ("db-perf-optimized-N-8", "ENTERPRISE", False),
        ("db-custom-2-7680", "ENTERPRISE_PLUS", False),
    ],
)
def test_tier(tier: str, edition: str, is_one: bool) -> None:  # noqa: FBT001 - a column of the table
    assert (catalog.refusal_of_tier(tier, edition) == "") is is_one
