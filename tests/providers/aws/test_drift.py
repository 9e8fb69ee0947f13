"""Every mutable field of an RDSInstance, changed behind our back: put back, reported, or left, as its rule says.

The clause `foreign_change_is_put_back_or_held_by_its_class` shows what the reconciler makes of each class. What
restarts is handed to RDS's own queue for the maintenance window: tests/providers/aws/test_translate.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from providers.aws import INSTANCES
from providers.aws.instances.create import call_for
from providers.aws.instances.translate import observed
from providers.aws.models import RDSInstanceParameters, RDSInstanceSpec
from providers.external.client import Target
from providers.external.credential import Credential
from providers.managed.inputs import differences
from tests.providers.aws.test_translate import ANSWER, OWNER, TAGS
from tests.providers.drifted import Answer, Row, answer_to, mutable_fields

# Wishes to the provider, or another spelling of a field that has a row: nothing in RDS is called so.
_NOT_IN_RDS = {
    *("engine", "allowMajorVersionUpgrade", "deleteAutomatedBackups", "finalDBSnapshotIdentifierPrefix"),
    *("dbSubnetGroupNameRef", "dbParameterGroupNameRef"),
}
_GROWS_ONLY = {"allocatedStorage", "engineVersion"}
_ROLE, _OTHER_ROLE = "arn:aws:iam::123456789012:role/monitoring", "arn:aws:iam::123456789012:role/other"
_MAJOR = {"engineVersion": "16"}
_GROUPS = ("sg-0a1b2c3d4e5f60001", "sg-0a1b2c3d4e5f60002")
ROWS = (
    Row("maxAllocatedStorage", 200, {"MaxAllocatedStorage": 160}),
    Row("backupRetentionPeriod", 7, {"BackupRetentionPeriod": 2}),
    Row("preferredBackupWindow", "03:00-04:00", {"PreferredBackupWindow": "05:00-06:00"}),
    Row("preferredMaintenanceWindow", "sun:06:00-sun:07:00", {"PreferredMaintenanceWindow": "mon:06:00-mon:07:00"}),
    Row("autoMinorVersionUpgrade", spec=False, theirs={"AutoMinorVersionUpgrade": True}),
    Row("copyTagsToSnapshot", spec=True, theirs={"CopyTagsToSnapshot": False}),
    Row("deletionProtection", spec=True, theirs={"DeletionProtection": False}),
    Row("enableCloudwatchLogsExports", ["postgresql", "upgrade"], {"EnabledCloudwatchLogsExports": ["upgrade"]}),
    Row("enablePerformanceInsights", spec=True, theirs={"PerformanceInsightsEnabled": False}),
    Row("performanceInsightsRetentionPeriod", 7, {"PerformanceInsightsRetentionPeriod": 31}),
    Row("databaseInsightsMode", "standard", {"DatabaseInsightsMode": "advanced"}),
    Row("monitoringInterval", 60, {"MonitoringInterval": 5}, needs={"monitoringRoleArn": _ROLE}),
    Row("monitoringRoleArn", _ROLE, {"MonitoringRoleArn": _OTHER_ROLE}, needs={"monitoringInterval": 60}),
    Row("tags", {"team": "orders"}, {"TagList": [{"Key": key, "Value": value} for key, value in TAGS.items()]}),
    Row(
        "optionGroupName",
        "default:postgres-16",
        {"OptionGroupMemberships": [{"OptionGroupName": "theirs"}]},
        needs=_MAJOR,
    ),
    Row(
        "dbParameterGroupName",
        "default.postgres16",
        {"DBParameterGroups": [{"DBParameterGroupName": "theirs"}]},
        needs=_MAJOR,
    ),
    Row("multiAZ", spec=False, theirs={"MultiAZ": True}),
    Row("enableIAMDatabaseAuthentication", spec=True, theirs={"IAMDatabaseAuthenticationEnabled": False}),
    Row("storageType", "gp3", {"StorageType": "gp2"}),
    Row("iops", 1000, {"Iops": 3000}, needs={"storageType": "io1", "allocatedStorage": 100}),
    Row(
        "storageThroughput",
        500,
        {"StorageThroughput": 600},
        needs={"storageType": "gp3", "allocatedStorage": 400, "iops": 12_000},
    ),
    Row("allocatedStorage", 20, {"AllocatedStorage": 40}, Answer.LEFT),
    Row("dbInstanceClass", "db.t4g.micro", {"DBInstanceClass": "db.t4g.large"}, Answer.HELD),
    Row("engineVersion", "16.8", {"EngineVersion": "16.3"}, Answer.HELD),
    Row("engineVersion", "16.3", {"EngineVersion": "16.10"}, Answer.LEFT),
    Row(
        "caCertificateIdentifier",
        "rds-ca-rsa2048-g1",
        {"CACertificateIdentifier": "rds-ca-ecc384-g1"},
        Answer.HELD,
    ),
    Row("dbSubnetGroupName", "default", {"DBSubnetGroup": {"DBSubnetGroupName": "theirs"}}, Answer.HELD),
    Row("vpcSecurityGroupIds", [_GROUPS[0]], {"VpcSecurityGroups": [{"VpcSecurityGroupId": _GROUPS[1]}]}, Answer.HELD),
    Row("publiclyAccessible", spec=False, theirs={"PubliclyAccessible": True}, answer=Answer.HELD),
    Row("networkType", "IPV4", {"NetworkType": "DUAL"}, Answer.HELD),
    Row("port", 5432, {"Endpoint": {"Port": 5433}}, Answer.HELD),
)


def test_every_mutable_field_has_its_row() -> None:
    fields = mutable_fields("aws.fairlead.dev_rdsinstances", unfixed=_GROWS_ONLY, elsewhere=_NOT_IN_RDS)
    assert {row.path for row in ROWS} == fields


# What an answer calls otherwise than the request that creates an instance.
_SHOWN: dict[str, Callable[[Any], dict[str, Any]]] = {
    "EnableCloudwatchLogsExports": lambda value: {"EnabledCloudwatchLogsExports": value},
    "EnablePerformanceInsights": lambda value: {"PerformanceInsightsEnabled": value},
    "EnableIAMDatabaseAuthentication": lambda value: {"IAMDatabaseAuthenticationEnabled": value},
    "Port": lambda value: {"Endpoint": {**ANSWER["Endpoint"], "Port": value}},
    "OptionGroupName": lambda value: {"OptionGroupMemberships": [{"OptionGroupName": value}]},
    "DBParameterGroupName": lambda value: {"DBParameterGroups": [{"DBParameterGroupName": value}]},
    "DBSubnetGroupName": lambda value: {"DBSubnetGroup": {"DBSubnetGroupName": value}},
    "VpcSecurityGroupIds": lambda value: {"VpcSecurityGroups": [{"VpcSecurityGroupId": group} for group in value]},
    "Tags": lambda value: {"TagList": value},
}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_field_changed_by_somebody_else_is_put_back_reported_or_left(row: Row) -> None:
    fields = {"dbInstanceClass": "db.t4g.micro", "allocatedStorage": 100, "masterUsername": "boss"}
    spec = msgspec.convert({**fields, **row.needs, row.path: row.spec}, RDSInstanceParameters)
    target = Target("fl-orders-aaaaaaaaaa", spec, OWNER, "aaaaaaaaaa")
    answer = dict(ANSWER)
    for name, value in call_for(target, Credential("boss", "Sufficient-1"))[1].items():
        answer |= _SHOWN[name](value) if name in _SHOWN else {name: value}

    def seen() -> Any:
        return observed(answer, {tag["Key"]: tag["Value"] for tag in answer["TagList"]}, target)

    assert differences(INSTANCES, RDSInstanceSpec(for_provider=spec), target, seen(), {}) == ()
    answer |= {key: {**answer[key], **new} if isinstance(new, dict) else new for key, new in row.theirs.items()}

    changes = differences(INSTANCES, RDSInstanceSpec(for_provider=spec), target, seen(), {})
    assert answer_to(row.path, changes, seen().tolerated) is row.answer
