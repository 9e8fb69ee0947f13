"""Every mutable field of an instance, changed by somebody else: put back, reported, or left, by its rule.

The clause `foreign_change_is_put_back_or_held_by_its_class` shows what the reconciler makes of each class.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from providers.external.diff import diff
from providers.external.observation import Change
from providers.gcp.instances import create
from providers.gcp.instances.changes import classify
from providers.gcp.models import CloudSQLInstanceParameters
from tests.providers.drifted import Answer, Row, answer_to, merged, mutable_fields
from tests.providers.gcp.answers import instance, seen, target
from tests.providers.gcp.simulated_sql import nested

# A network may be set once. What the provider itself goes by is nothing that Cloud SQL has.
_SET_ONCE = {"privateNetwork"}
_SPEC = {"region": "us-central1", "databaseVersion": "POSTGRES_16", "tier": "db-custom-1-3840"}
_OURS = {"finalBackupTtlDays", "database", "databaseRef", "addressType", "fromBackup"}
_NETWORK, _OTHER_NETWORK = "projects/shop/global/networks/db", "projects/shop/global/networks/other"
_PLUS = {"edition": "ENTERPRISE_PLUS", "tier": "db-perf-optimized-N-2"}
_INSIGHTS = {"queryInsightsEnabled": True}
_WINDOW = {"maintenanceDay": 7, "maintenanceHour": 3}
_ZONES = {"zone": "europe-west1-b", "secondaryZone": "europe-west1-c"}
_PRIVATE = {"privateNetwork": _NETWORK}
_RELEASE = "POSTGRES_16_9.R20250302.00_31"


_SETTINGS = "settings."
_ADDRESS, _BACKUP = "settings.ipConfiguration.", "settings.backupConfiguration."
_QUERIES, _HOURS, _PLACE = "settings.insightsConfig.", "settings.maintenanceWindow.", "settings.locationPreference."
_RETAINED, _ADMITTED = (
    f"{_BACKUP}backupRetentionSettings.retainedBackups",
    f"{_ADDRESS}pscConfig.allowedConsumerProjects",
)
_OPEN, _STRICT = "ALLOW_UNENCRYPTED_AND_ENCRYPTED", "ENCRYPTED_ONLY"
_TABLE: dict[Answer, tuple[tuple[Any, ...], ...]] = {
    Answer.CORRECTED: (
        # What interrupts nobody is put back at once.
        ("storageAutoResize", True, f"{_SETTINGS}storageAutoResize", False),
        ("storageAutoResizeLimit", 100, f"{_SETTINGS}storageAutoResizeLimit", "50"),
        ("backupEnabled", True, f"{_BACKUP}enabled", False),
        ("backupStartTime", "03:00", f"{_BACKUP}startTime", "05:00"),
        ("backupLocation", "eu", f"{_BACKUP}location", "us"),
        ("retainedBackups", 7, _RETAINED, 3),
        ("transactionLogRetentionDays", 7, f"{_BACKUP}transactionLogRetentionDays", 3),
        ("retainBackupsOnDelete", True, f"{_SETTINGS}retainBackupsOnDelete", False),
        ("secondaryZone", "europe-west1-c", f"{_PLACE}secondaryZone", "europe-west1-d", _ZONES),
        ("maintenanceDay", 7, f"{_HOURS}day", 2, _WINDOW),
        ("maintenanceHour", 3, f"{_HOURS}hour", 9, _WINDOW),
        ("maintenanceTrack", "stable", f"{_HOURS}updateTrack", "canary", _WINDOW),
        (
            "denyMaintenancePeriod",
            {"startDate": "11-20", "endDate": "12-31", "time": "00:00:00"},
            f"{_SETTINGS}denyMaintenancePeriods",
            [{"startDate": "01-01", "endDate": "01-10", "time": "00:00:00"}],
        ),
        ("queryInsightsEnabled", True, f"{_QUERIES}queryInsightsEnabled", False),
        ("queryPlansPerMinute", 5, f"{_QUERIES}queryPlansPerMinute", 20, _INSIGHTS),
        ("queryStringLength", 1024, f"{_QUERIES}queryStringLength", 256, _INSIGHTS),
        ("recordApplicationTags", True, f"{_QUERIES}recordApplicationTags", False, _INSIGHTS),
        ("recordClientAddress", True, f"{_QUERIES}recordClientAddress", False, _INSIGHTS),
        ("deletionProtectionEnabled", True, f"{_SETTINGS}deletionProtectionEnabled", False),
        ("deletionProtectionEnabled", False, f"{_SETTINGS}deletionProtectionEnabled", True),
        ("userLabels", {"team": "shop"}, f"{_SETTINGS}userLabels.team", "another"),
        ("databaseFlags", {"work_mem": "64MB"}, f"{_SETTINGS}databaseFlags", [{"name": "work_mem", "value": "4096"}]),
        ("databaseFlags", {}, f"{_SETTINGS}databaseFlags", [{"name": "work_mem", "value": "4096"}]),
        (
            "enablePrivatePathForGoogleCloudServices",
            True,
            f"{_ADDRESS}enablePrivatePathForGoogleCloudServices",
            False,
            _PRIVATE,
        ),
        # To let in again whom somebody shut out interrupts nobody either.
        ("activationPolicy", "ALWAYS", f"{_SETTINGS}activationPolicy", "NEVER"),
        ("ipv4Enabled", True, f"{_ADDRESS}ipv4Enabled", False),
        ("authorizedNetworks", ["203.0.113.0/24"], f"{_ADDRESS}authorizedNetworks", []),
        ("pscAllowedConsumerProjects", ["shop"], _ADMITTED, [], {"pscEnabled": True}),
        ("sslMode", _OPEN, f"{_ADDRESS}sslMode", _STRICT),
        ("connectorEnforcement", "NOT_REQUIRED", f"{_SETTINGS}connectorEnforcement", "REQUIRED"),
    ),
    Answer.HELD: (
        # What restarts, or shuts somebody out, waits for the window.
        ("tier", "db-custom-1-3840", f"{_SETTINGS}tier", "db-custom-4-15360"),
        ("edition", "ENTERPRISE", f"{_SETTINGS}edition", "ENTERPRISE_PLUS"),
        ("availabilityType", "ZONAL", f"{_SETTINGS}availabilityType", "REGIONAL"),
        ("zone", "europe-west1-b", f"{_PLACE}zone", "europe-west1-c"),
        ("dataCacheEnabled", True, f"{_SETTINGS}dataCacheConfig.dataCacheEnabled", False, _PLUS),
        ("allocatedIpRange", "range-a", f"{_ADDRESS}allocatedIpRange", "range-b", _PRIVATE),
        ("pointInTimeRecoveryEnabled", True, f"{_BACKUP}pointInTimeRecoveryEnabled", False),
        ("maintenanceVersion", _RELEASE, "maintenanceVersion", "POSTGRES_16_9.R20240101.00_01"),
        (
            "databaseFlags",
            {"max_connections": "200"},
            f"{_SETTINGS}databaseFlags",
            [{"name": "max_connections", "value": "100"}],
        ),
        ("ipv4Enabled", False, f"{_ADDRESS}ipv4Enabled", True, _PRIVATE),
        (
            "authorizedNetworks",
            ["203.0.113.0/24"],
            f"{_ADDRESS}authorizedNetworks",
            [{"value": "203.0.113.0/24"}, {"value": "198.51.100.0/24"}],
        ),
        ("pscAllowedConsumerProjects", ["shop"], _ADMITTED, ["other"], {"pscEnabled": True}),
        ("sslMode", _STRICT, f"{_ADDRESS}sslMode", _OPEN),
        ("activationPolicy", "NEVER", f"{_SETTINGS}activationPolicy", "ALWAYS"),
        ("connectorEnforcement", "REQUIRED", f"{_SETTINGS}connectorEnforcement", "NOT_REQUIRED"),
    ),
    Answer.LOSS: (
        # What would lose backups waits for a person's consent.
        ("backupEnabled", False, f"{_BACKUP}enabled", True),
        ("retainedBackups", 7, _RETAINED, 30),
        ("transactionLogRetentionDays", 3, f"{_BACKUP}transactionLogRetentionDays", 7),
        ("pointInTimeRecoveryEnabled", False, f"{_BACKUP}pointInTimeRecoveryEnabled", True),
    ),
    Answer.IMPOSSIBLE: (
        # What Cloud SQL never takes back is said.
        ("databaseVersion", "POSTGRES_16", "databaseVersion", "POSTGRES_17"),
        ("privateNetwork", _NETWORK, f"{_ADDRESS}privateNetwork", _OTHER_NETWORK),
    ),
    Answer.LEFT: (
        # What it does by itself is listed, and left.
        ("dataDiskSizeGb", 20, f"{_SETTINGS}dataDiskSizeGb", "40"),
        ("maintenanceVersion", _RELEASE, "maintenanceVersion", "POSTGRES_16_9.R20260101.00_01"),
    ),
}
ROWS = tuple(
    Row(name, wanted, nested(tuple(path.split(".")), struck), answer, *needs)
    for answer, rows in _TABLE.items()
    for name, wanted, path, struck, *needs in rows
)


def test_every_mutable_field_has_its_row() -> None:
    instances, users, databases = (
        mutable_fields(f"gcp.fairlead.dev_cloudsql{kind}", unfixed=_SET_ONCE, elsewhere=_OURS)
        for kind in ("instances", "users", "databases")
    )
    assert {row.path for row in ROWS} == instances
    assert (users, databases) == ({"databaseRoles"}, set())


def _changes(desired: CloudSQLInstanceParameters, answer: dict[str, Any]) -> tuple[Change, ...]:
    observed = seen(desired, answer)
    return tuple(classify(change, observed) for change in diff(desired, observed.spec))


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_field_that_somebody_changed_is_put_back_reported_or_left_by_its_rule(row: Row) -> None:
    desired = msgspec.convert({**_SPEC, **row.needs, row.path: row.spec}, CloudSQLInstanceParameters)
    answer = merged(instance(), create.body_for(target(desired)))
    assert _changes(desired, answer) == ()

    merged(answer, row.theirs)
    assert answer_to(row.path, _changes(desired, answer), seen(desired, answer).tolerated) is row.answer
