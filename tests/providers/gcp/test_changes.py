"""What a change does to users, and how the changes of one pass go into one patch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from devcloud.gcp.state import flags
from providers.external.diff import diff
from providers.external.observation import Change, Class
from providers.gcp.instances import create, states
from providers.gcp.instances.changes import RULES, STATIC_FLAGS, classify, patch
from providers.gcp.instances.flags import UNIT_OF, as_cloud_sql_writes
from providers.gcp.models import CloudSQLInstanceParameters, DenyMaintenancePeriod
from providers.gcp.names import owner_labels
from tests.providers.gcp.answers import OWNER, instance, seen, spec, target


def _classified(wanted: dict[str, Any], settings: dict[str, Any] | None = None) -> tuple[Change, ...]:
    desired = spec(**wanted)
    observed = seen(desired, instance(**(settings or {})))
    return tuple(classify(change, observed) for change in diff(desired, observed.spec))


ON_NETWORK = {"ipConfiguration": {"privateNetwork": "projects/shop/global/networks/db", "ipv4Enabled": True}}
OPEN = {"ipConfiguration": {"authorizedNetworks": [{"value": "203.0.113.0/24"}], "sslMode": "ENCRYPTED_ONLY"}}


VETOES = [
    ({"data_disk_size_gb": 10, "storage_auto_resize": False},
     {"storageAutoResize": False, "dataDiskSizeGb": "40"}, "shrinks"),
    ({"database_version": "POSTGRES_15"}, {}, "downgrade"),
    ({"private_network": "projects/shop/global/networks/other"}, ON_NETWORK, "takes none out of its network"),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "settings", "says"), VETOES)
def test_what_cloud_sql_never_does_is_not_sent(wanted: dict[str, Any], settings: dict[str, Any], says: str) -> None:
    (change,) = _classified(wanted, settings)
    assert change.veto is not None
    assert change.veto[0] == "InvalidValue"
    assert says in change.veto[1]


@pytest.mark.parametrize("name", ["databaseVersion", "edition", "maintenanceVersion"])
def test_what_cloud_sql_takes_alone_travels_alone(name: str) -> None:
    changes = _classified(
        {
            "database_version": "POSTGRES_17",
            "edition": "ENTERPRISE_PLUS",
            "maintenance_version": "POSTGRES_16_9.R20260101.00_01",
            "backup_enabled": True,
        }
    )
    assert {change.shown: change.alone for change in changes}[name]
    assert not {change.shown: change.alone for change in changes}["backupEnabled"]


def test_a_tier_of_the_other_edition_goes_with_that_edition() -> None:
    edition, tier = _classified({"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2"})
    assert (edition.shown, edition.alone) == ("edition", True)
    assert (tier.shown, tier.alone, tier.along) == ("tier", True, ("edition",))
    desired = spec(edition="ENTERPRISE_PLUS", tier="db-perf-optimized-N-2")
    body = patch(desired, seen(desired), (edition,))
    assert body["settings"] == {"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2", "settingsVersion": "123"}


def test_a_stopped_instance_is_started_by_its_activation_policy_alone() -> None:
    activation, backup = _classified(
        {"activation_policy": "ALWAYS", "backup_enabled": True}, {"activationPolicy": "NEVER"}
    )
    assert (activation.starts, backup.starts) == (True, False)


def _patched(wanted: dict[str, Any], settings: dict[str, Any] | None = None) -> dict[str, Any]:
    desired = spec(**wanted)
    observed = seen(desired, instance(**(settings or {})))
    changes = tuple(classify(change, observed) for change in diff(desired, observed.spec))
    return patch(desired, observed, changes)


PATCHES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"tier": "db-custom-2-7680"}, {}, {"tier": "db-custom-2-7680"}),
    ({"data_disk_size_gb": 20}, {}, {"dataDiskSizeGb": "20"}),
    ({"authorized_networks": ("203.0.113.0/24",)}, {},
     {"ipConfiguration": {"authorizedNetworks": [{"value": "203.0.113.0/24"}]}}),
    ({"authorized_networks": ()}, OPEN, {"ipConfiguration": {"authorizedNetworks": []}}),
    ({"database_flags": {"jit": "off"}}, {"databaseFlags": [{"name": "work_mem", "value": "4096"}]},
     {"databaseFlags": [{"name": "jit", "value": "off"}]}),
    ({"database_flags": {}}, {"databaseFlags": [{"name": "work_mem", "value": "4096"}]}, {"databaseFlags": []}),
    ({"retained_backups": 14, "backup_enabled": True}, {},
     {"backupConfiguration": {"enabled": True, "backupRetentionSettings": {"retainedBackups": 14}}}),
    ({"maintenance_day": 7, "maintenance_hour": 4}, {"maintenanceWindow": {"day": 6, "hour": 4}},
     {"maintenanceWindow": {"day": 7, "hour": 4}}),
    ({"deny_maintenance_period": DenyMaintenancePeriod("11-20", "12-31")}, {},
     {"denyMaintenancePeriods": [{"startDate": "11-20", "endDate": "12-31", "time": "00:00:00"}]}),
    ({"user_labels": {"team": "shop"}}, {"userLabels": {"cost": "42"}}, {"userLabels": {"team": "shop"}}),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "settings", "sent"), PATCHES, ids=[str(row[0]) for row in PATCHES])
def test_patch_holds_what_changed_and_the_lock_and_nothing_else(
    wanted: dict[str, Any], settings: dict[str, Any], sent: dict[str, Any]
) -> None:
    assert _patched(wanted, settings) == {"settings": {**sent, "settingsVersion": "123"}}


def test_a_version_is_no_setting() -> None:
    assert _patched({"database_version": "POSTGRES_17"}) == {"databaseVersion": "POSTGRES_17"}


def test_a_flag_that_waits_for_the_window_is_not_in_the_list_that_goes_now() -> None:
    desired = spec(database_flags={"work_mem": "64MB", "max_connections": "200"})
    observed = seen(desired, instance(databaseFlags=[{"name": "max_connections", "value": "100"}]))
    changes = [classify(change, observed) for change in diff(desired, observed.spec)]
    now = tuple(change for change in changes if change.kind is Class.ONLINE)
    assert patch(desired, observed, now)["settings"]["databaseFlags"] == [
        {"name": "max_connections", "value": "100"},
        {"name": "work_mem", "value": "65536"},
    ]


def test_a_label_that_goes_is_sent_as_none() -> None:
    observed = seen()
    change = classify(Change(("userLabels", "team"), None, "shop"), observed)
    assert patch(spec(), observed, (change,))["settings"]["userLabels"] == {"team": None}


def test_every_field_that_is_compared_has_a_rule_and_no_other_has() -> None:
    fixed = {"region", "dataDiskType", "pscEnabled", "collation", "kmsKeyName", "restoreFrom", "finalBackupTtlDays"}
    fields = {field.encode_name for field in msgspec.structs.fields(CloudSQLInstanceParameters)}
    assert set(RULES) == fields - fixed


def test_new_instance_is_made_with_its_labels_and_all_that_the_spec_says() -> None:
    wanted = spec(
        edition="ENTERPRISE",
        data_disk_size_gb=20,
        data_disk_type="PD_SSD",
        authorized_networks=("203.0.113.0/24",),
        database_flags={"work_mem": "64MB"},
        kms_key_name="projects/p/locations/l/keyRings/r/cryptoKeys/k",
        maintenance_version="POSTGRES_16_9.R20260101.00_01",
        maintenance_day=7,
        maintenance_hour=3,
        user_labels={"team": "shop"},
    )
    assert create.body_for(target(wanted)) == {
        "name": "fl-orders-abcdefghij",
        "instanceType": "CLOUD_SQL_INSTANCE",
        "region": "us-central1",
        "databaseVersion": "POSTGRES_16",
        "diskEncryptionConfiguration": {"kmsKeyName": "projects/p/locations/l/keyRings/r/cryptoKeys/k"},
        "settings": {
            "tier": "db-custom-1-3840",
            "edition": "ENTERPRISE",
            "dataDiskSizeGb": "20",
            "dataDiskType": "PD_SSD",
            "databaseFlags": [{"name": "work_mem", "value": "65536"}],
            "ipConfiguration": {"authorizedNetworks": [{"value": "203.0.113.0/24"}]},
            "maintenanceWindow": {"day": 7, "hour": 3},
            "userLabels": {"team": "shop", **owner_labels(OWNER)},
        },
    }


def test_people_cannot_overwrite_our_labels_at_creation() -> None:
    body = create.body_for(target(spec(user_labels={"fairlead-claim": "another"})))
    assert body["settings"]["userLabels"] == owner_labels(OWNER)


FLAGS = [
    ("work_mem", "64MB", "65536"),
    ("work_mem", "0.3kB", "0.3kB"),
    ("jit", "true", "on"),
    ("search_path", "64MB", "64MB"),
]


@pytest.mark.parametrize(("name", "value", "written"), FLAGS)
def test_flag_is_written_in_its_own_unit(name: str, value: str, written: str) -> None:
    assert as_cloud_sql_writes(name, value) == written


def test_flags_with_a_unit_are_numbers_and_those_that_restart_are_known_as_such_by_the_simulated_cloud() -> None:
    assert {name for name in UNIT_OF if flags.FLAGS[name].type not in {"INTEGER", "FLOAT"}} == set()
    assert {name for name, flag in flags.FLAGS.items() if flag.restarts} == STATIC_FLAGS


_SUNDAY = datetime(2026, 11, 22, tzinfo=UTC)
WINDOWS = [
    (7, 3, timedelta(hours=3), timedelta(hours=3)),
    (7, 3, timedelta(hours=4), timedelta(days=7, hours=3)),
    (0, 0, timedelta(0), None),
]


@pytest.mark.parametrize(("day", "hour", "now", "opens"), WINDOWS)
def test_window_is_an_hour_of_the_week(day: int, hour: int, now: timedelta, opens: timedelta | None) -> None:
    expected = None if opens is None else _SUNDAY + opens
    assert states.next_window(day, hour, _SUNDAY + now) == expected
