"""Every mutable field of an RDSInstance, changed behind our back: put back, reported, or left, as its rule says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest

from tests.support.api import JsonObject
from tests.support.aws import Aws
from tests.support.kinds import condition
from tests.support.rds_instance import Instance, actions

# Wishes to the provider, or another spelling of a field that has a row: nothing in RDS is called so.
NOT_IN_RDS = {
    *("allowMajorVersionUpgrade", "deleteAutomatedBackups", "finalDBSnapshotIdentifierPrefix"),
    *("dbSubnetGroupNameRef", "dbParameterGroupNameRef"),
}
_ROLE, _OTHER_ROLE = "arn:aws:iam::123456789012:role/monitoring", "arn:aws:iam::123456789012:role/other"
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
    Row("monitoringInterval", 60, {"MonitoringInterval": 5}),
    Row("monitoringRoleArn", _ROLE, {"MonitoringRoleArn": _OTHER_ROLE}),
    Row("tags", {"team": "orders"}, {"TagList": []}),
    Row("optionGroupName", "default:postgres-16", {"OptionGroupMemberships": [{"OptionGroupName": "theirs"}]}),
    Row("dbParameterGroupName", "default.postgres16", {"DBParameterGroups": [{"DBParameterGroupName": "theirs"}]}),
    Row("multiAZ", spec=False, struck={"MultiAZ": True}),
    Row("enableIAMDatabaseAuthentication", spec=True, struck={"IAMDatabaseAuthenticationEnabled": False}),
    # After a growth or another type RDS takes no change of storage for hours: each has an instance of its own.
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
# One instance for each: fields that disturb one another's way through RDS are kept apart.
SHARES = (
    ROWS[0:6],
    (*ROWS[6:13], ROWS[14]),
    (*ROWS[13:14], *ROWS[15:16]),
    ROWS[16:18],
    *((row,) for row in ROWS[18:21]),
    ROWS[21:26],
    ROWS[26:30],
)


class Victim(Instance):
    """An instance whose fields somebody changes one by one."""

    async def suffer(self, rows: tuple[Row, ...]) -> None:
        await self.create(forProvider=_spec(rows))
        for row in rows:
            await self._suffer(row)

    async def _suffer(self, row: Row) -> None:
        before, since = await self.wire(), await self.aws.mark()
        await self.strike(set=_merged(before, row.struck))
        match row.answer:
            case Answer.CORRECTED:
                await self._is_corrected(row, before, since)
            case Answer.QUEUED | Answer.HELD:
                await self._is_reported(row, since)
            case Answer.LEFT:
                await self.until_seen(lambda obj: obj["status"]["atProvider"]["allocatedStorage"] == 40)
                assert await self.changes(since) == []

    async def _is_corrected(self, row: Row, before: JsonObject, since: int) -> None:
        await self.until_wire(lambda instance: all(_named(instance, key) == _named(before, key) for key in row.struck))
        action = "AddTagsToResource" if row.path == "tags" else "ModifyDBInstance"
        await self.until_seen(lambda obj: row.path in {drifted.split(".")[0] for drifted in _paths(obj, "Corrected")})
        assert set(actions(await self.changes(since))) == {action}, row.path

    async def _is_reported(self, row: Row, since: int) -> None:
        held = await self.until_seen(lambda obj: row.path in _paths(obj, "Held"))
        assert condition(held, "Synced")["reason"] == "DriftHeld", row.path
        if row.answer is Answer.HELD:
            assert await self.changes(since) == [], row.path
            return
        await self.until_wire(lambda instance: next(iter(row.struck)) in _queue_names(instance))
        calls = await self.changes(since)
        assert [(call["action"], call["params"]["ApplyImmediately"]) for call in calls] == [("ModifyDBInstance", False)]


def _named(instance: JsonObject, key: str) -> Any:
    """Return a value of the wire; of a list of members, in no order, what they are called."""
    value = instance.get(key)
    if not isinstance(value, list):
        return value
    return {next(iter(member.values())) if isinstance(member, dict) else member for member in value}


def _queue_names(instance: JsonObject) -> set[str]:
    pending = set(instance["PendingModifiedValues"])
    return pending | ({"DBSubnetGroup"} if "DBSubnetGroupName" in pending else set())


def _paths(obj: JsonObject, action: str) -> set[str]:
    return {entry["path"] for entry in obj["status"].get("drift", []) if entry["action"] == action}


def _spec(rows: tuple[Row, ...]) -> JsonObject:
    spec: JsonObject = {}
    for row in rows:
        spec |= {**row.needs, row.path: row.spec}
    if "monitoringInterval" in spec:
        spec["monitoringRoleArn"] = _ROLE
    return spec


def _merged(before: Mapping[str, Any], struck: Mapping[str, Any]) -> JsonObject:
    """Return whole values: of what has members only those that are named change."""
    return {key: {**before[key], **value} if isinstance(value, dict) else value for key, value in struck.items()}


@pytest.mark.asyncio(loop_scope="session")
async def test_a_field_changed_by_hand_is_put_back_reported_or_left_by_its_rule(aws: Aws, namespace: str) -> None:
    await aws.start_provider()
    async with asyncio.TaskGroup() as group:
        for number, rows in enumerate(SHARES):
            group.create_task(Victim(aws, namespace, f"victim-{number}").suffer(rows), name=rows[0].path)
