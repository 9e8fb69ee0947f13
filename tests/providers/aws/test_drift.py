"""Every mutable field of an RDSInstance, changed behind our back: put back, reported, or left, as its rule says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from devcloud.aws.server import Served
from runtime.objects import Object
from tests.providers.aws.rds_world import at_rest
from tests.support import yaml_texts

pytestmark = pytest.mark.rds

_CRD = Path(__file__).resolve().parents[3] / "crds" / "aws.fairlead.dev_rdsinstances.yaml"
# Wishes to the provider, or another spelling of a field that has a row: nothing in RDS is called so.
_NOT_IN_RDS = {
    *("allowMajorVersionUpgrade", "deleteAutomatedBackups", "finalDBSnapshotIdentifierPrefix"),
    *("dbSubnetGroupNameRef", "dbParameterGroupNameRef"),
}
_GROWS_ONLY = {"allocatedStorage", "engineVersion"}
_ROLE, _OTHER_ROLE = "arn:aws:iam::123456789012:role/monitoring", "arn:aws:iam::123456789012:role/other"
_MAJOR = {"engineVersion": "16"}
_SOON = timedelta(minutes=10)
_GROUPS = ("sg-0a1b2c3d4e5f60001", "sg-0a1b2c3d4e5f60002")


class Answer(Enum):
    """What becomes of a change of somebody else's."""

    CORRECTED = "put back at once, for it interrupts nobody"
    QUEUED = "reported, and handed to RDS's own queue for the maintenance window"
    HELD = "reported, and kept until the window"
    LEFT = "RDS may do it by itself; nothing is said against it"


@dataclass(frozen=True, slots=True)
class Row:
    """A field of the spec, what the spec says, and what somebody makes of it on the wire."""

    path: str
    spec: Any
    struck: Mapping[str, Any]
    answer: Answer = Answer.CORRECTED
    needs: Mapping[str, Any] = field(default_factory=dict)


ROWS = (
    Row("maxAllocatedStorage", 100, {"MaxAllocatedStorage": 60}),
    Row("backupRetentionPeriod", 7, {"BackupRetentionPeriod": 2}),
    Row("preferredBackupWindow", "03:00-04:00", {"PreferredBackupWindow": "05:00-06:00"}),
    Row("preferredMaintenanceWindow", "sun:06:00-sun:07:00", {"PreferredMaintenanceWindow": "mon:06:00-mon:07:00"}),
    Row("autoMinorVersionUpgrade", spec=False, struck={"AutoMinorVersionUpgrade": True}),
    Row("copyTagsToSnapshot", spec=True, struck={"CopyTagsToSnapshot": False}),
    Row("deletionProtection", spec=True, struck={"DeletionProtection": False}),
    Row("enableCloudwatchLogsExports", ["postgresql", "upgrade"], {"EnabledCloudwatchLogsExports": ["upgrade"]}),
    Row("enablePerformanceInsights", spec=True, struck={"PerformanceInsightsEnabled": False}),
    Row("performanceInsightsRetentionPeriod", 7, {"PerformanceInsightsRetentionPeriod": 31}),
    Row("databaseInsightsMode", "standard", {"DatabaseInsightsMode": "advanced"}),
    Row("monitoringInterval", 60, {"MonitoringInterval": 5}, needs={"monitoringRoleArn": _ROLE}),
    Row("monitoringRoleArn", _ROLE, {"MonitoringRoleArn": _OTHER_ROLE}, needs={"monitoringInterval": 60}),
    Row("tags", {"team": "orders"}, {"TagList": []}),
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
    Row("multiAZ", spec=False, struck={"MultiAZ": True}),
    Row("enableIAMDatabaseAuthentication", spec=True, struck={"IAMDatabaseAuthenticationEnabled": False}),
    Row("storageType", "gp3", {"StorageType": "gp2"}),
    Row("iops", 1000, {"Iops": 3000}, needs={"storageType": "io1", "allocatedStorage": 100}),
    Row(
        "storageThroughput",
        500,
        {"StorageThroughput": 600},
        needs={"storageType": "gp3", "allocatedStorage": 400, "iops": 12_000},
    ),
    Row("allocatedStorage", 20, {"AllocatedStorage": 40}, Answer.LEFT),
    Row("dbInstanceClass", "db.t4g.micro", {"DBInstanceClass": "db.t4g.large"}, Answer.QUEUED),
    Row("engineVersion", "16.8", {"EngineVersion": "16.3"}, Answer.QUEUED),
    Row("engineVersion", "16.3", {"EngineVersion": "16.10"}, Answer.LEFT),
    Row(
        "caCertificateIdentifier",
        "rds-ca-rsa2048-g1",
        {"CACertificateIdentifier": "rds-ca-ecc384-g1"},
        Answer.QUEUED,
    ),
    Row("dbSubnetGroupName", "default", {"DBSubnetGroup": {"DBSubnetGroupName": "theirs"}}, Answer.QUEUED),
    Row("vpcSecurityGroupIds", [_GROUPS[0]], {"VpcSecurityGroups": [{"VpcSecurityGroupId": _GROUPS[1]}]}, Answer.HELD),
    Row("publiclyAccessible", spec=False, struck={"PubliclyAccessible": True}, answer=Answer.HELD),
    Row("networkType", "IPV4", {"NetworkType": "DUAL"}, Answer.HELD),
    Row("port", 5432, {"Endpoint": {"Port": 5433}}, Answer.HELD),
)


def test_every_mutable_field_has_its_row() -> None:
    spec = yaml_texts.load(_CRD)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    rules = " ".join(rule["rule"] for rule in spec["x-kubernetes-validations"])
    fixed = set(re.findall(r"oldSelf\.forProvider\.(\w+)", rules)) - _GROWS_ONLY | {"engine"}
    assert {row.path for row in ROWS} == set(spec["properties"]["forProvider"]["properties"]) - fixed - _NOT_IN_RDS


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.path} {row.answer.name}")
async def test_field_changed_by_somebody_else_is_put_back_reported_or_left(stopped: Served, row: Row) -> None:
    world, paced = await at_rest(stopped, {**row.needs, row.path: row.spec})
    before = world.shown()
    # Of what has members only those that are named change.
    world.steer(set={key: {**before[key], **new} if isinstance(new, dict) else new for key, new in row.struck.items()})
    paced.wake()
    await paced.until(world.now + _SOON)

    after, calls = world.shown(), paced.changes()
    drift = {(entry["path"].split(".")[0], entry["action"]) for entry in world.status.get("drift", ())}
    match row.answer:
        case Answer.CORRECTED:
            assert [_named(after, key) for key in row.struck] == [_named(before, key) for key in row.struck]
            assert {name for name, _ in calls} == {"AddTagsToResource" if row.path == "tags" else "ModifyDBInstance"}
            assert (row.path, "Corrected") in drift
        case Answer.QUEUED:
            assert (world.reason(), drift) == ("DriftHeld", {(row.path, "Held")})
            assert [(name, call["ApplyImmediately"]) for name, call in calls] == [("ModifyDBInstance", False)]
            waiting = {name.removesuffix("Name") for name, value in after["PendingModifiedValues"].items() if value}
            assert waiting == set(row.struck)
        case Answer.HELD:
            assert (world.reason(), drift, calls) == ("DriftHeld", {(row.path, "Held")}, [])
        case Answer.LEFT:
            assert (world.reason(), drift, calls) == ("InSync", {(row.path, "Tolerated")}, [])


def _named(instance: Object, key: str) -> Any:
    """Return a value of the wire; of a list of members, in no order, what they are called."""
    value = instance.get(key)
    if not isinstance(value, list):
        return value
    return {next(iter(member.values())) if isinstance(member, dict) else member for member in value}
