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


def test_a_window_brings_no_version_that_was_not_wanted(cloud: Cloud) -> None:
    cloud.created(AutoMinorVersionUpgrade=False, BackupRetentionPeriod=0)
    arn = cloud.look()["DBInstanceArn"]
    _change(cloud, MultiAZ=True)

    cloud.advance(8 * DAY_S)
    after = cloud.until(lambda shown: shown["MultiAZ"])
    assert after["EngineVersion"] == "16.4"
    assert after["SecondaryAvailabilityZone"] != after["AvailabilityZone"]
    assert cloud.rds.describe_pending_maintenance_actions(ResourceIdentifier=arn)["PendingMaintenanceActions"] == []


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


def test_storage_grows_by_itself_up_to_the_most(cloud: Cloud) -> None:
    cloud.created(AllocatedStorage=100, MaxAllocatedStorage=115)

    cloud.control("POST", "instances/db-1", {"autoscale": True})
    cloud.until(lambda shown: shown["AllocatedStorage"] == 110)
    cloud.advance(6 * 3600)
    cloud.control("POST", "instances/db-1", {"autoscale": True})
    cloud.until(lambda shown: shown["AllocatedStorage"] == 115)
    assert _event_ids(cloud)[-4:] == ["0217", "0218", "0217", "0218"]
    assert "MaxAllocatedStorage" not in _change(cloud, MaxAllocatedStorage=115)


def test_a_static_parameter_waits_for_a_restart_that_only_its_user_does(cloud: Cloud) -> None:
    name = {"DBParameterGroupName": "own-16"}
    cloud.rds.create_db_parameter_group(**name, DBParameterGroupFamily="postgres16", Description="d")
    cloud.created(DBParameterGroupName="own-16")

    def parameter(name: str, value: str, method: str) -> dict[str, str]:
        return {"ParameterName": name, "ParameterValue": value, "ApplyMethod": method}

    def shows(status: str) -> None:
        member = {**name, "ParameterApplyStatus": status}
        cloud.until(lambda shown: shown["DBParameterGroups"] == [member])

    cloud.rds.modify_db_parameter_group(**name, Parameters=[parameter("work_mem", "8192", "immediate")])
    shows("in-sync")
    cloud.rds.modify_db_parameter_group(**name, Parameters=[parameter("max_connections", "200", "pending-reboot")])
    shows("pending-reboot")
    cloud.advance(8 * DAY_S)
    # The upgrade that this window brought restarted it.
    shows("in-sync")
    cloud.rds.reset_db_parameter_group(**name, ResetAllParameters=True)
    shows("pending-reboot")
    cloud.rest()
    cloud.rds.reboot_db_instance(DBInstanceIdentifier="db-1")
    cloud.rest()
    shows("in-sync")
    pages = cloud.rds.get_paginator("describe_db_parameters").paginate(**name, Source="user")
    assert [parameter for page in pages for parameter in page["Parameters"]] == []


def test_a_failover_swaps_the_zones_and_a_rename_keeps_the_instance_and_frees_its_name(cloud: Cloud) -> None:
    before = cloud.created(MultiAZ=True)

    cloud.rds.reboot_db_instance(DBInstanceIdentifier="db-1", ForceFailover=True)

    after = cloud.rest()
    assert after["AvailabilityZone"] == before["SecondaryAvailabilityZone"]
    assert _event_ids(cloud)[-2:] == ["0013", "0049"]

    _change(cloud, NewDBInstanceIdentifier="Db-2", ApplyImmediately=True)

    cloud.gone()
    after = cloud.rest("db-2")
    assert after["DbiResourceId"] == before["DbiResourceId"]
    assert after["DBInstanceArn"].endswith(":db:db-2")


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
