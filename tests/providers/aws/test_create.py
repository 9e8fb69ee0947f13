"""The calls that make an instance: what each carries, whatever it begins with."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from providers.aws.instances.create import call_for
from providers.aws.models import PointInTime, RDSInstanceParameters, RestoreFrom
from providers.external.client import Target
from providers.external.credential import Credential
from providers.external.ownership import Owner

OWNER = Owner("home", "uid-1", "0123456789abcdef", "shop", "orders", "instance", "shop-uid")
PASSWORD = "Sufficient-1"
SNAPSHOT = RestoreFrom(db_snapshot_identifier="kept")
INSTANT = RestoreFrom(point_in_time=PointInTime(source_dbi_resource_id="db-ONE", restore_time="2026-11-20T12:00:00Z"))
LATEST = RestoreFrom(point_in_time=PointInTime(source_db_instance_identifier="fl-source"))
SOURCES = pytest.mark.parametrize(
    "source", [None, SNAPSHOT, INSTANT, LATEST], ids=["nothing", "a snapshot", "an instant", "the latest instant"]
)


def _call(source: RestoreFrom | None, **spec: Any) -> tuple[str, dict[str, Any]]:
    fields: dict[str, Any] = {"db_instance_class": "db.t4g.micro", "allocated_storage": 20, "master_username": "app"}
    parameters = RDSInstanceParameters(**fields, restore_from=source, **spec)
    return call_for(Target("fl-orders", parameters, OWNER, "hash"), Credential("app", PASSWORD))


@SOURCES
def test_create_call_carries_the_tags_of_the_owner_and_has_them_copied_to_snapshots(source: RestoreFrom | None) -> None:
    _, parameters = _call(source, tags={"team": "orders"})

    assert {tag["Key"]: tag["Value"] for tag in parameters["Tags"]} == {
        "fairlead-installation": "home",
        "fairlead-identity": "uid-1",
        "fairlead-claim": "0123456789abcdef",
        "fairlead-namespace": "shop",
        "fairlead-namespace-uid": "shop-uid",
        "fairlead-name": "orders",
        "fairlead-resource": "instance",
        "team": "orders",
    }
    assert parameters["CopyTagsToSnapshot"] is True


@SOURCES
@pytest.mark.parametrize("copied", [True, False])
def test_copied_tags_are_as_the_spec_says(source: RestoreFrom | None, *, copied: bool) -> None:
    assert _call(source, copy_tags_to_snapshot=copied)[1]["CopyTagsToSnapshot"] is copied


@SOURCES
def test_password_is_sent_with_a_new_instance_alone(source: RestoreFrom | None) -> None:
    parameters = _call(source)[1]

    assert (parameters.get("MasterUserPassword") == PASSWORD) is (source is None)
    assert ("MasterUsername" in parameters) is (source is None)
    assert (PASSWORD in str(parameters)) is (source is None)


def test_source_has_its_operation_name_and_parameters() -> None:
    operation, parameters = _call(None)
    assert (operation, parameters["DBInstanceIdentifier"]) == ("create_db_instance", "fl-orders")

    operation, parameters = _call(SNAPSHOT)
    assert operation == "restore_db_instance_from_db_snapshot"
    assert (parameters["DBInstanceIdentifier"], parameters["DBSnapshotIdentifier"]) == ("fl-orders", "kept")

    operation, parameters = _call(INSTANT)
    assert operation == "restore_db_instance_to_point_in_time"
    assert parameters["TargetDBInstanceIdentifier"] == "fl-orders"
    assert parameters["SourceDbiResourceId"] == "db-ONE"
    assert parameters["RestoreTime"] == datetime(2026, 11, 20, 12, tzinfo=UTC)
    assert {"DBInstanceIdentifier", "UseLatestRestorableTime"}.isdisjoint(parameters)

    _, parameters = _call(LATEST)
    assert (parameters["SourceDBInstanceIdentifier"], parameters["UseLatestRestorableTime"]) == ("fl-source", True)
    assert "RestoreTime" not in parameters


def test_lists_and_settings_are_sent_as_the_sdk_takes_them() -> None:
    parameters = _call(None, vpc_security_group_ids=("sg-1", "sg-2"), multi_az=True, backup_retention_period=9)[1]

    assert parameters["VpcSecurityGroupIds"] == ["sg-1", "sg-2"]
    assert (parameters["MultiAZ"], parameters["BackupRetentionPeriod"]) == (True, 9)
    assert "Iops" not in parameters
    # A restore takes the storage, the login and the backups of its source.
    restored = _call(SNAPSHOT, vpc_security_group_ids=("sg-1",), backup_retention_period=9)[1]
    assert restored["VpcSecurityGroupIds"] == ["sg-1"]
    assert {"AllocatedStorage", "BackupRetentionPeriod"}.isdisjoint(restored)
