"""What tests can do to the service: faults, lag, limits, changes behind the API's back, and the log of calls."""

from __future__ import annotations

import urllib.error
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError, HTTPClientError, ReadTimeoutError

from tests.devcloud.aws.conftest import PASSWORD, Cloud, refusal

TAG = [{"Key": "fairlead-identity", "Value": "1"}, {"Key": "team", "Value": "a"}]


def _audit(cloud: Cloud) -> list[tuple[str, str]]:
    return [(call["action"], call["outcome"]) for call in cloud.control("GET", "audit")]


def test_a_fault_comes_as_often_as_asked_for_the_call_and_name_asked(cloud: Cloud) -> None:
    fault = {"action": "Create*", "code": "Throttling", "times": 2, "identifier": "db-*"}
    cloud.control("POST", "faults", fault)

    cloud.create("other")
    assert refusal(lambda: cloud.create("db-1")) == ("Throttling", 400)
    assert refusal(lambda: cloud.create("db-1")) == ("Throttling", 400)
    cloud.create("db-1")
    assert [outcome for _, outcome in _audit(cloud)] == ["ok", "Throttling", "Throttling", "ok"]


def test_a_server_error_has_the_status_asked_for(cloud: Cloud) -> None:
    cloud.control("POST", "faults", {"code": "ServiceUnavailable", "times": None})

    assert refusal(cloud.rds.describe_db_instances) == ("ServiceUnavailable", 503)
    assert refusal(cloud.rds.describe_db_instances) == ("ServiceUnavailable", 503)
    cloud.control("DELETE", "faults")
    assert cloud.rds.describe_db_instances()["DBInstances"] == []


@pytest.mark.parametrize("happened", [True, False])
def test_a_reply_is_lost_after_or_before_the_effect(happened: bool, cloud: Cloud) -> None:  # noqa: FBT001 - a case
    cloud.control("POST", "faults", {"action": "CreateDBInstance", "kind": "drop", "after_effect": happened})

    with pytest.raises((ConnectionClosedError, HTTPClientError)):
        cloud.create()
    assert len(cloud.rds.describe_db_instances()["DBInstances"]) == int(happened)
    assert ("CreateDBInstance", "dropped") in _audit(cloud)


def test_a_call_hangs_until_the_client_gives_up(cloud: Cloud) -> None:
    cloud.control("POST", "faults", {"action": "ModifyDBInstance", "kind": "hang"})
    cloud.created()
    hasty = cloud.client(config={"read_timeout": 0.3})

    with pytest.raises(ReadTimeoutError):
        hasty.modify_db_instance(DBInstanceIdentifier="db-1", DeletionProtection=True)
    assert cloud.look()["DeletionProtection"] is True
    assert ("ModifyDBInstance", "hung") in _audit(cloud)


def test_lists_lag_behind_gets(cloud: Cloud) -> None:
    cloud.created("old")
    cloud.control("POST", "clock", {"advance_s": 100})
    cloud.control("POST", "behaviour", {"list_lag_s": 60})
    cloud.create("new")
    cloud.control("POST", "instances/old", {"vanish": True})

    assert [instance["DBInstanceIdentifier"] for instance in cloud.rds.describe_db_instances()["DBInstances"]] == [
        "old"
    ]
    assert cloud.look("new")["DBInstanceIdentifier"] == "new"
    assert refusal(lambda: cloud.look("old")) == ("DBInstanceNotFound", 404)
    cloud.control("POST", "clock", {"advance_s": 61})
    assert [instance["DBInstanceIdentifier"] for instance in cloud.rds.describe_db_instances()["DBInstances"]] == [
        "new"
    ]


def test_gets_lag_too_when_asked_and_what_changes_often_is_not_lost_to_the_lag(cloud: Cloud) -> None:
    cloud.created()
    cloud.control("POST", "behaviour", {"get_lag_s": 60, "list_lag_s": 60})
    cloud.advance(61)
    for number in range(20):
        cloud.rds.modify_db_instance(DBInstanceIdentifier="db-1", DeletionProtection=bool(number % 2))
    assert cloud.look()["DBInstanceIdentifier"] == "db-1"
    assert len(cloud.rds.describe_db_instances()["DBInstances"]) == 1

    cloud.create("late")
    assert refusal(lambda: cloud.look("late")) == ("DBInstanceNotFound", 404)
    cloud.advance(61)
    assert cloud.look("late")["DBInstanceIdentifier"] == "late"


def test_a_list_may_lack_tags_that_a_get_has(cloud: Cloud) -> None:
    cloud.create(Tags=TAG)
    cloud.control("POST", "behaviour", {"list_without_tags": ["db-*"]})

    assert "TagList" not in cloud.rds.describe_db_instances()["DBInstances"][0]
    assert cloud.look()["TagList"] == TAG


def test_a_robot_strips_tags_again_and_again(cloud: Cloud) -> None:
    cloud.created(Tags=TAG)
    arn = cloud.look()["DBInstanceArn"]
    cloud.control("POST", "behaviour", {"tag_robot": {"strip": ["fairlead-*"], "every_s": 0.01}})

    assert cloud.until(lambda shown: shown["TagList"] == TAG[1:])
    cloud.rds.add_tags_to_resource(ResourceName=arn, Tags=TAG[:1])
    assert cloud.until(lambda shown: shown["TagList"] == TAG[1:])
    cloud.control("POST", "behaviour", {"tag_robot": None})


def test_calls_beyond_the_rate_are_throttled_reads_and_writes_apart(cloud: Cloud) -> None:
    rate = {"read_per_s": 0.001, "write_per_s": 0.001, "burst": 3, "code": "ThrottlingException"}
    cloud.control("POST", "behaviour", {"throttle": rate})

    for _ in range(3):
        cloud.rds.describe_db_instances()
    assert refusal(cloud.rds.describe_db_instances) == ("ThrottlingException", 400)
    cloud.create()


QUOTAS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"quotas": {"instances": 1}}, "InstanceQuotaExceeded"),
    ({"quotas": {"storage_gib": 39}}, "StorageQuotaExceeded"),
    ({"no_capacity": ["db.t4g.micro"]}, "InsufficientDBInstanceCapacity"),
    ({"hidden_versions": ["16.4"]}, "InvalidParameterCombination"),
)


@pytest.mark.parametrize(("behaviour", "code"), QUOTAS, ids=[code for _, code in QUOTAS])
def test_a_creation_beyond_what_is_left_is_refused(behaviour: dict[str, Any], code: str, cloud: Cloud) -> None:
    cloud.create("db-1")
    cloud.control("POST", "behaviour", behaviour)

    assert refusal(lambda: cloud.create("db-2")) == (code, 400)


def test_what_is_left_bounds_classes_groups_and_final_snapshots(cloud: Cloud) -> None:
    cloud.created()
    cloud.control("POST", "behaviour", {"no_capacity": ["db.m6g.large"]})

    change = {"DBInstanceIdentifier": "db-1", "DBInstanceClass": "db.m6g.large"}
    assert refusal(lambda: cloud.rds.modify_db_instance(**change)) == ("InsufficientDBInstanceCapacity", 400)

    cloud.control("POST", "behaviour", {"quotas": {"subnet_groups": 1, "parameter_groups": 0}})
    subnets = ["subnet-0a1b2c3d4e5f6000a", "subnet-0a1b2c3d4e5f6000b"]
    subnet_group = {"DBSubnetGroupName": "g", "DBSubnetGroupDescription": "d", "SubnetIds": subnets}
    parameter_group = {"DBParameterGroupName": "g", "DBParameterGroupFamily": "postgres16", "Description": "d"}

    # A list shows the default one too, which counts.
    assert refusal(lambda: cloud.rds.create_db_subnet_group(**subnet_group)) == ("DBSubnetGroupQuotaExceeded", 400)
    refused = refusal(lambda: cloud.rds.create_db_parameter_group(**parameter_group))
    assert refused == ("DBParameterGroupQuotaExceeded", 400)

    cloud.control("POST", "behaviour", {"quotas": {"snapshots": 0}})

    def drop() -> object:
        return cloud.rds.delete_db_instance(DBInstanceIdentifier="db-1", FinalDBSnapshotIdentifier="last")

    assert refusal(drop) == ("SnapshotQuotaExceeded", 400)
    assert cloud.look()["DBInstanceStatus"] == "available"
    cloud.control("POST", "behaviour", {"quotas": {"snapshots": 1}})
    drop()
    cloud.gone()


def test_an_instance_is_changed_replaced_lost_and_forced_into_a_state_behind_the_apis_back(cloud: Cloud) -> None:
    before = cloud.created(Tags=TAG)

    cloud.control("POST", "instances/db-1", {"set": {"EngineVersion": "16.9", "AllocatedStorage": 140}})
    changed = cloud.look()
    assert (changed["EngineVersion"], changed["AllocatedStorage"]) == ("16.9", 140)
    cloud.control("POST", "instances/db-1", {"replace": True})
    replaced = cloud.rest()
    assert replaced["DbiResourceId"] != before["DbiResourceId"]
    assert replaced["TagList"] == []
    cloud.control("POST", "instances/db-1", {"vanish": True})
    assert refusal(cloud.look) == ("DBInstanceNotFound", 404)

    cloud.created()
    cloud.control("POST", "instances/db-1", {"status": "a-state-of-tomorrow", "seconds": 60})

    assert cloud.look()["DBInstanceStatus"] == "a-state-of-tomorrow"
    cloud.control("POST", "clock", {"advance_s": 61})
    assert cloud.look()["DBInstanceStatus"] == "available"


def test_the_log_shows_who_changed_what_and_no_password(cloud: Cloud) -> None:
    cloud.create()
    cloud.rds.describe_db_instances()

    entries = cloud.control("GET", "audit")
    assert [(entry["action"], entry["mutating"], entry["identifier"]) for entry in entries] == [
        ("CreateDBInstance", True, "db-1"),
        ("DescribeDBInstances", False, ""),
    ]
    assert entries[0]["params"]["MasterUserPassword"] == "****"
    assert entries[0]["principal"] == "arn:aws:iam::123456789012:user/fairlead"
    assert PASSWORD not in str(cloud.control("GET", "instances")) + str(entries)
    assert cloud.control("GET", f"audit?since={entries[0]['seq']}") == entries[1:]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("faults", {"kind": "explode"}),
        ("behaviour", {"quota": {}}),
        ("clock", {"speed": "fast"}),
        ("instances/none", {"vanish": True}),
        ("nothing", {}),
    ],
)
def test_a_control_call_that_makes_no_sense_is_refused(path: str, body: dict[str, Any], cloud: Cloud) -> None:
    with pytest.raises(urllib.error.HTTPError) as error:
        cloud.control("POST", path, body)

    assert error.value.code == 400
    assert path.split("/", 1)[0] in error.value.read().decode()
