"""What instances go through, seen by boto3 over the wire."""

from __future__ import annotations

from typing import Any

from tests.devcloud.aws.conftest import Cloud


def _changing(cloud: Cloud, **parameters: Any) -> dict[str, Any]:
    reply: dict[str, Any] = cloud.rds.modify_db_instance(DBInstanceIdentifier="db-1", **parameters)["DBInstance"]
    return reply


def test_a_creation_is_first_creating_without_endpoint_and_then_available(cloud: Cloud) -> None:
    first = cloud.create("Db-1", Tags=[{"Key": "owner", "Value": "a"}])

    assert first["DBInstanceIdentifier"] == "db-1"
    assert first["DBInstanceStatus"] == "creating"
    assert first["PendingModifiedValues"] == {"MasterUserPassword": "****"}
    assert first["DbInstancePort"] == 0
    assert not {"Endpoint", "AvailabilityZone", "InstanceCreateTime"} & set(first)
    after = cloud.rest()
    assert after["DBInstanceStatus"] == "available"
    assert after["Endpoint"] == {"Address": "192.0.2.1", "Port": 5432, "HostedZoneId": "Z1DEVCLOUD0000"}
    assert after["PendingModifiedValues"] == {}
    assert after["TagList"] == [{"Key": "owner", "Value": "a"}]
    assert after["DbiResourceId"] == first["DbiResourceId"]


def test_a_change_is_answered_with_the_old_values_and_waits_for_the_window(cloud: Cloud) -> None:
    cloud.born()

    reply = _changing(cloud, DBInstanceClass="db.m6g.large", DeletionProtection=True)

    assert (reply["DBInstanceStatus"], reply["DBInstanceClass"]) == ("available", "db.t4g.micro")
    assert reply["PendingModifiedValues"] == {"DBInstanceClass": "db.m6g.large"}
    assert reply["DeletionProtection"] is True
    cloud.control("POST", "clock", {"advance_s": 8 * 24 * 3600})
    after = cloud.until(lambda shown: shown["PendingModifiedValues"] == {})
    # The same window brings the newest minor version, since that is on by default.
    assert (after["DBInstanceClass"], after["EngineVersion"]) == ("db.m6g.large", "16.10")


def test_apply_immediately_empties_the_whole_queue(cloud: Cloud) -> None:
    cloud.born()
    _changing(cloud, DBInstanceClass="db.m6g.large")

    reply = _changing(cloud, AllocatedStorage=30, ApplyImmediately=True)

    assert reply["PendingModifiedValues"] == {"AllocatedStorage": 30, "DBInstanceClass": "db.m6g.large"}
    after = cloud.until(lambda shown: shown["DBInstanceClass"] == "db.m6g.large")
    assert (after["AllocatedStorage"], after["PendingModifiedValues"]) == (30, {})
    assert after["DBInstanceStatus"] == "storage-optimization"


def test_a_pending_change_is_taken_back_by_the_present_value(cloud: Cloud) -> None:
    cloud.born()
    _changing(cloud, MultiAZ=True)

    assert _changing(cloud, MultiAZ=False)["PendingModifiedValues"] == {}


def test_a_final_snapshot_outlives_the_instance_and_a_name_is_reused(cloud: Cloud) -> None:
    before = cloud.born()
    cloud.rds.delete_db_instance(DBInstanceIdentifier="db-1", FinalDBSnapshotIdentifier="last-1")
    cloud.gone()

    snapshot = cloud.rds.describe_db_snapshots(DBSnapshotIdentifier="last-1")["DBSnapshots"][0]
    assert (snapshot["Status"], snapshot["SnapshotType"]) == ("available", "manual")
    assert snapshot["DbiResourceId"] == before["DbiResourceId"]
    assert cloud.born()["DbiResourceId"] != before["DbiResourceId"]
