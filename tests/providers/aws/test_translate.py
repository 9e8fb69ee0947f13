"""RDS's answers in the spec's model, classes of change, requests, states, windows: each a row."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from providers.aws import INSTANCES
from providers.aws.instances import states
from providers.aws.instances.changes import request
from providers.aws.instances.create import missing_database
from providers.aws.instances.final_snapshots import names_for, stem_of
from providers.aws.instances.listing import digest_of, tags_digest
from providers.aws.instances.translate import alternates, invariants, login_versions, observed
from providers.aws.models import RDSInstanceParameters, RDSInstanceSpec, RestoreFrom
from providers.aws.tag_lists import tags_of
from providers.external.client import Target
from providers.external.observation import Change, Class, Phase, Queue
from providers.external.ownership import Owner
from providers.managed.inputs import differences

OWNER = Owner("home", "uid-1", "0123456789abcdef", "team", "orders", "db")
BASE = RDSInstanceParameters(db_instance_class="db.t4g.micro", allocated_storage=100, master_username="boss")
ANSWER: dict[str, Any] = {
    "DBInstanceIdentifier": "fl-orders-aaaaaaaaaa",
    "DbiResourceId": "db-ONE",
    "DBInstanceArn": "arn:aws:rds:eu-central-1:123456789012:db:fl-orders-aaaaaaaaaa",
    "DBInstanceStatus": "available",
    "DBInstanceClass": "db.t4g.micro",
    "AllocatedStorage": 100,
    "MasterUsername": "boss",
    "EngineVersion": "16.4",
    "StorageType": "gp3",
    "Iops": 3000,
    "MultiAZ": False,
    "BackupRetentionPeriod": 7,
    "PreferredMaintenanceWindow": "sun:05:00-sun:06:00",
    "PreferredBackupWindow": "03:00-04:00",
    "PubliclyAccessible": False,
    "DeletionProtection": False,
    "Endpoint": {"Address": "x.rds.example", "Port": 5432, "HostedZoneId": "Z1"},
    "DbInstancePort": 0,
    "VpcSecurityGroups": [
        {"VpcSecurityGroupId": "sg-b", "Status": "active"},
        {"VpcSecurityGroupId": "sg-a", "Status": "adding"},
        {"VpcSecurityGroupId": "sg-c", "Status": "removing"},
    ],
    "DBSubnetGroup": {"DBSubnetGroupName": "orders-net"},
    "DBParameterGroups": [{"DBParameterGroupName": "orders-pg", "ParameterApplyStatus": "in-sync"}],
    "PendingModifiedValues": {},
}
TAGS = {change["Key"]: change["Value"] for change in tags_of(OWNER)}
STATIC = [{"DBParameterGroupName": "orders-pg", "ParameterApplyStatus": "pending-reboot"}]


def target(**spec: Any) -> Target[RDSInstanceParameters]:
    return Target("fl-orders-aaaaaaaaaa", msgspec.structs.replace(BASE, **spec), OWNER, "aaaaaaaaaa")


def changes(spec: dict[str, Any], answer: dict[str, Any], tags: dict[str, str] | None = None) -> tuple[Change, ...]:
    where = target(**spec)
    seen = observed({**ANSWER, **answer}, TAGS if tags is None else tags, where)
    return differences(INSTANCES, RDSInstanceSpec(for_provider=where.spec), where, seen, {})


@dataclass(frozen=True)
class Row:
    """A spec, an answer, and the one difference (path, class, queue, reason of its veto); None is no difference."""

    spec: dict[str, Any] = field(default_factory=dict)
    answer: dict[str, Any] = field(default_factory=dict)
    path: str | None = None
    kind: Class = Class.ONLINE
    queue: Queue = Queue.NONE
    veto: str = ""


def waiting(**values: Any) -> dict[str, Any]:
    return {"PendingModifiedValues": values}


ROWS = {
    "nothing is asked for": Row(),
    "a major covers its minors": Row({"engine_version": "16"}),
    "a dotted prefix is no prefix of digits": Row(
        {"engine_version": "1"}, path="engineVersion", kind=Class.LOSS, queue=Queue.OPEN, veto="InvalidValue"
    ),
    "a later minor is no drift": Row({"engine_version": "16.2"}),
    "a minor upgrade restarts": Row(
        {"engine_version": "16.9"}, path="engineVersion", kind=Class.RESTART, queue=Queue.OPEN
    ),
    "a major upgrade is a loss that must be allowed": Row(
        {"engine_version": "17"}, path="engineVersion", kind=Class.LOSS, queue=Queue.OPEN, veto="HeldChange"
    ),
    "an allowed major upgrade": Row(
        {"engine_version": "17", "allow_major_version_upgrade": True},
        path="engineVersion", kind=Class.LOSS, queue=Queue.OPEN,
    ),
    "a downgrade is refused": Row(
        {"engine_version": "15"}, path="engineVersion", kind=Class.LOSS, queue=Queue.OPEN, veto="InvalidValue"
    ),
    "an upgrade that waits": Row(
        {"engine_version": "16.9"}, waiting(EngineVersion="16.9"),
        path="engineVersion", kind=Class.RESTART, queue=Queue.WAITING,
    ),
    "storage that has grown by itself": Row({"allocated_storage": 100}, {"AllocatedStorage": 140}),
    "a limit of growth not above what was restored": Row({"max_allocated_storage": 140}, {"AllocatedStorage": 140}),
    "storage to grow": Row({"allocated_storage": 200}, path="allocatedStorage", queue=Queue.OPEN),
    "storage that waits, rounded up": Row(
        {"allocated_storage": 105}, waiting(AllocatedStorage=110), path="allocatedStorage", queue=Queue.WAITING
    ),
    "storage under optimization": Row(
        {"allocated_storage": 200}, {"DBInstanceStatus": "storage-optimization"},
        path="allocatedStorage", queue=Queue.OPEN, veto="CloudBusy",
    ),
    "another class under optimization": Row(
        {"db_instance_class": "db.m7g.large"}, {"DBInstanceStatus": "storage-optimization"},
        path="dbInstanceClass", kind=Class.RESTART, queue=Queue.OPEN,
    ),
    "a full storage grows": Row(
        {"allocated_storage": 200}, {"DBInstanceStatus": "storage-full"}, path="allocatedStorage", queue=Queue.OPEN
    ),
    "a full storage takes nothing else": Row(
        {"multi_az": True}, {"DBInstanceStatus": "storage-full"}, path="multiAZ", queue=Queue.OPEN, veto="CloudBusy"
    ),
    "a reverted edit leaves the queue": Row(
        {}, waiting(DBInstanceClass="db.m7g.large"), path="dbInstanceClass", queue=Queue.CANCEL
    ),
    "growth that somebody queued is not taken back": Row({"allocated_storage": 100}, waiting(AllocatedStorage=200)),
    "a version that waits and is the wanted one stays": Row({"engine_version": "16"}, waiting(EngineVersion="16.8")),
    "a version that waits and is not the wanted one leaves the queue": Row(
        {"engine_version": "16.4"}, waiting(EngineVersion="17.1"), path="engineVersion", queue=Queue.CANCEL
    ),
    "what waits in other letters stays": Row(
        {"db_subnet_group_name": "orders-net"}, waiting(DBSubnetGroupName="Orders-Net")
    ),
    "what is not managed may wait": Row({}, waiting(MultiAZ=True, LicenseModel="x")),
    "a window in other letters": Row({"preferred_maintenance_window": "Sun:05:00-Sun:06:00"}),
    "groups in another order": Row({"vpc_security_group_ids": ("sg-b", "sg-a")}),
    "another network": Row({"db_subnet_group_name": "other"}, path="dbSubnetGroupName", kind=Class.RESTART,
                           queue=Queue.OPEN),
    "names in other letters": Row({"db_subnet_group_name": "Orders-Net", "db_parameter_group_name": "ORDERS-PG"}),
    "another port locks out": Row({"port": 6432}, path="port", kind=Class.LOCKOUT),
    "security groups lock out": Row({"vpc_security_group_ids": ("sg-a",)}, path="vpcSecurityGroupIds",
                                    kind=Class.LOCKOUT),
    "no more backups is a loss": Row({"backup_retention_period": 0}, path="backupRetentionPeriod", kind=Class.LOSS,
                                     queue=Queue.OPEN),
    "the first backups restart": Row({"backup_retention_period": 7}, {"BackupRetentionPeriod": 0},
                                     path="backupRetentionPeriod", kind=Class.RESTART, queue=Queue.OPEN),
    "more days of backups": Row({"backup_retention_period": 14}, path="backupRetentionPeriod"),
    "backups that AWS Backup owns": Row({"backup_retention_period": 14, "preferred_backup_window": "01:00-02:00"},
                                        {"AwsBackupRecoveryPointArn": "arn"}),
    "logs that are being switched on": Row(
        {"enable_cloudwatch_logs_exports": ("postgresql",)},
        waiting(PendingCloudwatchLogsExports={"LogTypesToEnable": ["postgresql"]}),
    ),
    "logs to export": Row({"enable_cloudwatch_logs_exports": ("postgresql",)}, path="enableCloudwatchLogsExports"),
    "no monitoring has no role": Row({"monitoring_interval": 0, "monitoring_role_arn": "arn:role"}),
    "a password under way is in nobody's way": Row({}, waiting(MasterUserPassword="****")),
    "what is set at creation is not compared": Row({"kms_key_id": "alias/x", "db_name": "other", "tags": {}}),
    "a tag to add": Row({"tags": {"team": "red"}}, path="tags.team"),
}  # fmt: skip


def test_group_of_another_major_version_is_sent_with_the_upgrade() -> None:
    wanted = {"engine_version": "17", "allow_major_version_upgrade": True, "db_parameter_group_name": "of-17"}

    upgraded = {change.shown: change.along for change in changes(wanted, {})}
    alike = {change.shown: change.along for change in changes({"db_parameter_group_name": "another"}, {})}

    assert upgraded == {"engineVersion": (), "dbParameterGroupName": ("engineVersion",)}
    assert alike == {"dbParameterGroupName": ()}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_difference_has_its_class_and_queue(row: Row) -> None:
    differences = changes(row.spec, row.answer)
    if row.path is None:
        assert differences == ()
        return
    assert [
        (change.shown, change.kind, change.queue, change.veto[0] if change.veto is not None else "")
        for change in differences
    ] == [(row.path, row.kind, row.queue, row.veto)]  # fmt: skip


def test_lost_tags_of_ours_are_drift_and_tags_of_others_are_not() -> None:
    differences = changes(
        {}, {}, {key: value for key, value in TAGS.items() if key != "fairlead-claim"} | {"mine": "x"}
    )
    assert [(change.shown, change.want) for change in differences] == [("tags.fairlead-claim", OWNER.claim)]
    seen = observed(ANSWER, {"fairlead-claim": OWNER.claim}, target())
    assert seen.owner is None


def test_observed_has_owner_incarnation_and_phase() -> None:
    seen = observed(
        {**ANSWER, "DBParameterGroups": STATIC, **waiting(MasterUserPassword="****", Iops=1)}, TAGS, target()
    )
    assert (seen.incarnation, seen.owner, seen.phase, seen.usable) == ("db-ONE", OWNER, Phase.READY, True)
    assert (seen.password_pending, seen.pending) == (True, ("iops",))
    assert "orders-pg" in seen.restart
    assert seen.at_provider["pendingModifiedValues"] == {"Iops": "1", "MasterUserPassword": "****"}
    assert seen.at_provider["endpoint"] == {"address": "x.rds.example", "port": 5432, "hostedZoneId": "Z1"}
    moved = observed({**ANSWER, "Endpoint": {"Address": "y", "Port": 1}}, TAGS, target())
    assert login_versions(seen) != login_versions(moved)
    assert login_versions(observed({**ANSWER, "Endpoint": None}, TAGS, target())) == {}


RESTORED = RestoreFrom(db_snapshot_identifier="source")
DATABASES: dict[str, tuple[dict[str, Any], str | None, str]] = {
    "made with a name": ({"db_name": "orders"}, "orders", "orders"),
    "made without one": ({}, None, "postgres"),
    "taken over": ({"db_name": "orders"}, "other", "other"),
    "restored, RDS names the source's first": ({"db_name": "second", "restore_from": RESTORED}, "first", "second"),
    "restored, RDS names none": ({"db_name": "second", "restore_from": RESTORED}, None, "second"),
    "restored without a name": ({"restore_from": RESTORED}, "first", "first"),
}


@pytest.mark.parametrize("case", DATABASES)
def test_database_that_is_published(case: str) -> None:
    spec, shown, expected = DATABASES[case]
    answer = {**ANSWER, **({"DBName": shown} if shown else {})}
    assert observed(answer, TAGS, target(**spec)).facts.database == expected


STATES = {
    "available": (Phase.READY, True),
    "storage-full": (Phase.READY, False),
    "backing-up": (Phase.BUSY, True),
    "what-nobody-knows": (Phase.BUSY, True),
    "creating": (Phase.BUSY, False),
    "stopped": (Phase.STOPPED, False),
    "failed": (Phase.FAILED, False),
    "incompatible-parameters": (Phase.READY, False),
}


@pytest.mark.parametrize("status", STATES)
def test_status_has_its_phase(status: str) -> None:
    assert (states.phase_of(status), states.usable(status)) == STATES[status]


WINDOWS = {
    # Saturday the 21st of November 2026; None where nothing is open, ever.
    ("sun:05:00-sun:06:00", "2026-11-22T05:00"): "2026-11-22T05:00",
    ("sun:05:00-sun:06:00", "2026-11-22T06:00"): "2026-11-29T05:00",
    ("sun:05:00-sun:06:00", "2026-11-21T05:30"): "2026-11-22T05:00",
    ("mon:00:00-mon:00:30", "2026-11-22T23:59:50"): "2026-11-23T00:00",
    ("sun:23:30-mon:00:30", "2026-11-23T00:10"): "2026-11-23T00:10",
    ("", "2026-11-22T05:00"): None,
}


@pytest.mark.parametrize(("window", "at"), WINDOWS)
def test_window_opens_next(window: str, at: str) -> None:
    opens = WINDOWS[window, at]
    expected = None if opens is None else datetime.fromisoformat(opens).replace(tzinfo=UTC)
    assert states.next_window(window, datetime.fromisoformat(at).replace(tzinfo=UTC)) == expected


def modification(spec: dict[str, Any], answer: dict[str, Any], *changed: Change) -> dict[str, Any]:
    where = target(**spec)
    parameters = request(where.spec, observed({**ANSWER, **answer}, TAGS, where), changed) or {}
    return {key: value for key, value in parameters.items() if key != "DBInstanceIdentifier"}


def test_request_with_due_and_waiting_changes_never_makes_the_waiting_ones() -> None:
    storage = Change(("allocatedStorage",), 200, 100, Class.ONLINE, Queue.OPEN)
    window = Change(("preferredBackupWindow",), "a", "b")
    later = Change(("dbInstanceClass",), "big", "small", Class.RESTART, Queue.OPEN, deferred=True)
    due = {"ApplyImmediately": True, "AllocatedStorage": 200, "PreferredBackupWindow": "a"}
    assert modification({}, {}, storage, window) == due
    assert modification({}, {}, storage, window, later) == due
    assert modification({}, {}, window, later) == {
        "ApplyImmediately": False, "PreferredBackupWindow": "a", "DBInstanceClass": "big",
    }  # fmt: skip
    revert = Change(("dbInstanceClass",), "small", "big", Class.ONLINE, Queue.CANCEL)
    assert modification({}, {}, revert) == {"ApplyImmediately": False, "DBInstanceClass": "small"}
    assert modification({}, {}, Change(("tags", "team"), "red", None)) == {}


def test_request_has_together_what_rds_wants_together() -> None:
    storage = Change(("allocatedStorage",), 500, 400, Class.ONLINE, Queue.OPEN)
    large = {"AllocatedStorage": 400, "Iops": 12_000}
    assert modification({}, large, storage)["Iops"] == 12_000
    assert "Iops" not in modification({}, {}, storage)
    to_gp3 = Change(("storageType",), "gp3", "io1", Class.ONLINE, Queue.OPEN)
    assert "Iops" not in modification({}, {"StorageType": "io1", "Iops": 3000}, storage, to_gp3)
    rate = Change(("iops",), 13_000, 12_000, Class.ONLINE, Queue.OPEN)
    assert modification({"allocated_storage": 300}, large, rate)["AllocatedStorage"] == 400
    role = {"monitoring_interval": 60, "monitoring_role_arn": "arn:role"}
    assert modification(role, {}, Change(("monitoringInterval",), 60, 0))["MonitoringRoleArn"] == "arn:role"
    major = Change(("engineVersion",), "17", "16.4", Class.LOSS, Queue.OPEN)
    spec = {"engine_version": "17", "allow_major_version_upgrade": True}
    assert modification(spec, {}, major)["AllowMajorVersionUpgrade"] is True
    logs = Change(("enableCloudwatchLogsExports",), ("postgresql",), ("upgrade",))
    assert modification({}, {}, logs)["CloudwatchLogsExportConfiguration"] == {
        "EnableLogTypes": ["postgresql"], "DisableLogTypes": ["upgrade"],
    }  # fmt: skip


def test_final_snapshots_are_named_by_incarnation_and_never_twice() -> None:
    stem = stem_of("fl-orders-aaaaaaaaaa", "db-ONE", None)
    assert stem == stem_of("fl-orders-aaaaaaaaaa", "db-ONE", None) != stem_of("fl-orders-aaaaaaaaaa", "db-TWO", None)
    assert names_for(stem, ())[:2] == (stem, f"{stem}-2")
    assert names_for(stem, (stem, f"{stem}-2"))[:2] == (f"{stem}-3", f"{stem}-4")
    assert all(len(name) <= 255 for name in names_for(stem_of("x" * 63, "db-ONE", "p" * 250), ("a",)))
    assert "--" not in stem_of("fl-a", "db-ONE", "mine-")


def test_digest_changes_with_the_answer_and_is_none_without_a_list_of_tags() -> None:
    assert digest_of(ANSWER) == digest_of({**ANSWER, "LatestRestorableTime": datetime(2026, 1, 1, tzinfo=UTC)})
    assert digest_of(ANSWER) != digest_of({**ANSWER, "AllocatedStorage": 101})
    assert tags_digest(ANSWER) is None
    assert tags_digest({"TagList": []}) != tags_digest({"TagList": [{"Key": "a", "Value": "b"}]}) is not None


def test_missing_database_is_reported_of_a_restored_instance_alone() -> None:
    source = RestoreFrom(db_snapshot_identifier="kept")

    assert "has no database app" in missing_database(target(restore_from=source), "app")
    assert missing_database(target(), "app") == ""


def test_instance_without_its_namespaces_uid_gets_it_by_one_change() -> None:
    wanted = replace(target(), owner=replace(OWNER, namespace_uid="team-uid"))

    (change,) = invariants(wanted, observed(ANSWER, TAGS, wanted))

    assert (change.shown, change.want, change.have) == ("tags.fairlead-namespace-uid", "team-uid", None)
    tagged = {**TAGS, "fairlead-namespace-uid": "team-uid"}
    assert invariants(wanted, observed(ANSWER, tagged, wanted)) == ()
    # Where the Namespace is not known yet nothing is taken for a difference.
    assert invariants(target(), observed(ANSWER, tagged, target())) == ()


@pytest.mark.parametrize(("version", "has_two"), [("16", True), (None, True), ("15.4", False)])
def test_logins_alternate_from_postgresql_16_on(version: str | None, *, has_two: bool) -> None:
    assert alternates(replace(target(engine_version=version), alternates=True)) is has_two
