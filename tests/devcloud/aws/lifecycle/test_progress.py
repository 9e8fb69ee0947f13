"""What instances go through, seen by boto3 over the wire."""

from __future__ import annotations

from typing import Any

from tests.devcloud.aws.conftest import Cloud, refusal

DAY_S = 24 * 3600


def _change(cloud: Cloud, **parameters: Any) -> dict[str, Any]:
    reply: dict[str, Any] = cloud.rds.modify_db_instance(DBInstanceIdentifier="db-1", **parameters)["DBInstance"]
    return reply


def _status(cloud: Cloud) -> str:
    return str(cloud.look()["DBInstanceStatus"])


def _event_ids(cloud: Cloud) -> list[str]:
    return [event["EventID"].removeprefix("RDS-EVENT-") for event in cloud.control("GET", "events")]


def test_a_creation_goes_from_creating_over_its_first_backup_to_available(cloud: Cloud) -> None:
    cloud.at_real_length()
    first = cloud.create("Db-1", Tags=[{"Key": "owner", "Value": "a"}])

    assert first["DBInstanceIdentifier"] == "db-1"
    assert first["DBInstanceStatus"] == "creating"
    assert first["PendingModifiedValues"] == {"MasterUserPassword": "****"}
    assert first["DbInstancePort"] == 0
    assert not {"Endpoint", "AvailabilityZone", "InstanceCreateTime"} & set(first)
    cloud.advance(239)
    assert _status(cloud) == "creating"
    cloud.advance(2)
    cloud.until(lambda shown: shown["DBInstanceStatus"] == "backing-up")
    cloud.advance(61)
    after = cloud.rest()
    assert after["Endpoint"] == {"Address": "127.255.255.254", "Port": 5432, "HostedZoneId": "Z1DEVCLOUD0000"}
    assert after["PendingModifiedValues"] == {}
    assert after["TagList"] == [{"Key": "owner", "Value": "a"}]
    assert after["DbiResourceId"] == first["DbiResourceId"]
    assert _event_ids(cloud) == ["0005", "0001", "0091", "0002"]


def test_a_change_is_answered_with_the_old_values_and_waits_for_the_window(cloud: Cloud) -> None:
    cloud.created()

    reply = _change(cloud, DBInstanceClass="db.m6g.large", DeletionProtection=True)

    assert (reply["DBInstanceStatus"], reply["DBInstanceClass"]) == ("available", "db.t4g.micro")
    assert reply["PendingModifiedValues"] == {"DBInstanceClass": "db.m6g.large"}
    assert reply["DeletionProtection"] is True
    cloud.advance(8 * DAY_S)
    after = cloud.until(lambda shown: shown["PendingModifiedValues"] == {})
    # The same window brings the newest minor version, since that is on by default.
    assert (after["DBInstanceClass"], after["EngineVersion"]) == ("db.m6g.large", "16.10")


def test_upgrade_that_the_database_refuses_leaves_the_instance_as_it_was(cloud: Cloud) -> None:
    cloud.created()

    _change(cloud, EngineVersion="18.1", AllowMajorVersionUpgrade=True, ApplyImmediately=True)

    after = cloud.until(lambda shown: not shown["PendingModifiedValues"])
    assert (after["DBInstanceStatus"], after["EngineVersion"]) == ("available", "16.4")
    assert "0268" not in _event_ids(cloud)


def test_storage_grows_by_a_tenth_at_least_and_is_then_optimised_for_six_hours(cloud: Cloud) -> None:
    cloud.created(AllocatedStorage=100)
    cloud.at_real_length()

    reply = _change(cloud, AllocatedStorage=105, ApplyImmediately=True)
    assert reply["PendingModifiedValues"] == {"AllocatedStorage": 110}
    cloud.advance(110)
    assert _status(cloud) == "storage-optimization"
    more = {"DBInstanceIdentifier": "db-1", "AllocatedStorage": 200}
    assert refusal(lambda: cloud.rds.modify_db_instance(**more)) == ("InvalidParameterCombination", 400)
    assert _change(cloud, MultiAZ=True)["PendingModifiedValues"] == {"MultiAZ": True}
    cloud.advance(6 * 3600)
    assert _status(cloud) == "available"
    assert _change(cloud, AllocatedStorage=200)["PendingModifiedValues"] == {"AllocatedStorage": 200, "MultiAZ": True}


def test_a_failed_instance_goes_without_a_snapshot_alone_and_a_deletion_ends_what_is_under_way(cloud: Cloud) -> None:
    cloud.created()
    cloud.control("POST", "instances/db-1", {"status": "failed"})

    final = {"DBInstanceIdentifier": "db-1", "FinalDBSnapshotIdentifier": "last"}
    assert refusal(lambda: cloud.rds.delete_db_instance(**final)) == ("InvalidDBInstanceState", 400)
    cloud.rds.delete_db_instance(DBInstanceIdentifier="db-1", SkipFinalSnapshot=True)
    cloud.gone()
    assert _event_ids(cloud)[-2:] == ["0031", "0003"]

    cloud.at_real_length()
    cloud.create()

    reply = cloud.rds.delete_db_instance(DBInstanceIdentifier="db-1", SkipFinalSnapshot=True)["DBInstance"]

    assert reply["DBInstanceStatus"] == "deleting"
    again = {"DBInstanceIdentifier": "db-1", "SkipFinalSnapshot": True}
    assert refusal(lambda: cloud.rds.delete_db_instance(**again)) == ("InvalidDBInstanceState", 400)
    cloud.advance(91)
    cloud.gone()
    assert _event_ids(cloud)[-2:] == ["0003", "0003"]
