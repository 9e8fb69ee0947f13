"""The replay judges: an exchange that the simulator makes equal passes, one that it does not is noticed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from tests.devcloud.aws.conftest import Cloud
from tests.devcloud.aws.exchanges import Recording, differences

MOMENT = datetime(2024, 8, 7, tzinfo=UTC)
RESTORED: dict[str, Any] = {
    "DBInstanceIdentifier": "again",
    "DBInstanceClass": "db.t3.micro",
    "DBInstanceStatus": "creating",
    "DBName": "orders",
    "AllocatedStorage": 20,
    "StorageType": "gp2",
    "StorageThroughput": 0,
    "BackupRetentionPeriod": 3,
    "PreferredBackupWindow": "09:23-09:53",
    "PreferredMaintenanceWindow": "thu:05:34-thu:06:04",
    "PendingModifiedValues": {},
    "MultiAZ": False,
    "OptionGroupMemberships": [{"OptionGroupName": "default:postgres-15", "Status": "pending-apply"}],
    "StatusInfos": [],
}
SNAPSHOT: dict[str, Any] = {
    "DBSnapshotIdentifier": "kept",
    "DBInstanceIdentifier": "db-1",
    "AllocatedStorage": 20,
    "StorageType": "gp2",
    "Status": "available",
    "PercentProgress": 100,
    "ProcessorFeatures": [],
    "SnapshotCreateTime": MOMENT,
}
TAGS = [{"Key": "team", "Value": "a"}, {"Key": "owner", "Value": "b"}]
PARAMETER = {"ParameterName": "work_mem", "Source": "engine-default", "ApplyType": "dynamic", "IsModifiable": True,
             "Description": "(kB) Sets the maximum memory.", "MinimumEngineVersion": "9.3.5"}  # fmt: skip


class Case(msgspec.Struct, frozen=True):
    """An operation, a reply that the simulator gives too, and one that it does not, with what is said of it."""

    operation: str
    reply: dict[str, Any]
    other: dict[str, Any]
    says: str


CASES = (
    Case("RestoreDBInstanceFromDBSnapshot", {"DBInstance": RESTORED},
         {"DBInstance": {**RESTORED, "OptionGroupMemberships": [{"OptionGroupName": "g", "Status": "in-sync"}]}},
         "values: "),
    Case("RestoreDBInstanceToPointInTime", {"DBInstance": RESTORED},
         {"DBInstance": {**RESTORED, "DBInstanceStatus": "available"}}, "states: "),
    Case("ListTagsForResource", {"TagList": TAGS}, {"TagList": [{**TAGS[0], "More": 1}]},
         ".TagList[].More is missing"),
    Case("DescribeDBParameters", {"Parameters": [PARAMETER]}, {"Parameters": [{**PARAMETER, "IsModifiable": "yes"}]},
         ".Parameters[].IsModifiable is boolean, was str"),
    Case("DescribeDBSnapshots", {"DBSnapshots": [SNAPSHOT]}, {"DBSnapshots": [{**SNAPSHOT, "More": 1}]},
         ".DBSnapshots[].More is missing"),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case.operation for case in CASES])
def test_an_equal_exchange_passes_and_an_unequal_one_is_noticed(case: Case, cloud: Cloud) -> None:
    assert differences(cloud, Recording(case.operation, 200, case.reply, case.operation)) == []

    cloud.control("POST", "reset")
    lines = differences(cloud, Recording(case.operation, 200, case.other, case.operation))

    assert [line for line in lines if line.startswith(case.says)], lines
