"""Snapshots, automated backups, restores: by name over the wire, and what the databases do about it."""

from __future__ import annotations

from typing import Any

from tests.devcloud.aws.conftest import PASSWORD, Cloud, refusal
from tests.devcloud.recorded import Recorded

DAY_S = 24 * 3600


def _snapshots(cloud: Cloud, **request: Any) -> list[dict[str, Any]]:
    snapshots: list[dict[str, Any]] = cloud.rds.describe_db_snapshots(**request)["DBSnapshots"]
    return snapshots


def _take(cloud: Cloud, name: str, **request: Any) -> dict[str, Any]:
    cloud.rds.create_db_snapshot(DBInstanceIdentifier="db-1", DBSnapshotIdentifier=name, **request)
    waiter = cloud.rds.get_waiter("db_snapshot_completed")
    waiter.wait(DBSnapshotIdentifier=name, WaiterConfig={"Delay": 0.02, "MaxAttempts": 3000})
    cloud.rest()
    return _snapshots(cloud, DBSnapshotIdentifier=name)[0]


def test_a_snapshot_is_creating_first_and_keeps_tags_when_asked(cloud: Cloud) -> None:
    cloud.created(CopyTagsToSnapshot=True, Tags=[{"Key": "team", "Value": "a"}])
    cloud.at_real_length()
    tags = [{"Key": "why", "Value": "b"}]
    first = cloud.rds.create_db_snapshot(DBInstanceIdentifier="db-1", DBSnapshotIdentifier="S-1", Tags=tags)

    assert first["DBSnapshot"]["DBSnapshotIdentifier"] == "s-1"
    assert first["DBSnapshot"]["Status"] == "creating"
    assert "SnapshotCreateTime" not in first["DBSnapshot"]
    assert cloud.look()["DBInstanceStatus"] == "backing-up"
    assert refusal(lambda: cloud.rds.delete_db_snapshot(DBSnapshotIdentifier="s-1"))[0] == "InvalidDBSnapshotState"
    copy = {"SourceDBSnapshotIdentifier": "s-1", "TargetDBSnapshotIdentifier": "s-2"}
    assert refusal(lambda: cloud.rds.copy_db_snapshot(**copy)) == ("InvalidDBSnapshotState", 400)
    restore = {"DBInstanceIdentifier": "db-2", "DBSnapshotIdentifier": "s-1"}
    assert refusal(lambda: cloud.rds.restore_db_instance_from_db_snapshot(**restore)) == ("InvalidDBSnapshotState", 400)
    cloud.advance(61)
    cloud.rest()
    after = _snapshots(cloud, DBSnapshotIdentifier="s-1")[0]
    assert (after["Status"], after["PercentProgress"]) == ("available", 100)
    assert after["TagList"] == [*tags, {"Key": "team", "Value": "a"}]


def test_automated_snapshots_come_daily_and_go_after_their_days(cloud: Cloud) -> None:
    cloud.created(BackupRetentionPeriod=2, AutoMinorVersionUpgrade=False)
    for _ in range(4):
        cloud.advance(DAY_S)
        cloud.until(lambda shown: shown["DBInstanceStatus"] == "available")
    cloud.until(lambda _: all(snapshot["Status"] == "available" for snapshot in _snapshots(cloud)))

    automated = _snapshots(cloud, SnapshotType="automated")
    assert 2 <= len(automated) <= 3
    assert all(snapshot["DBSnapshotIdentifier"].startswith("rds:db-1-") for snapshot in automated)
    own = {"DBSnapshotIdentifier": automated[0]["DBSnapshotIdentifier"]}
    assert refusal(lambda: cloud.rds.delete_db_snapshot(**own)) == ("InvalidDBSnapshotState", 400)


def test_a_final_snapshot_outlives_the_instance_and_a_name_is_reused(cloud: Cloud) -> None:
    before = cloud.created()
    cloud.rds.delete_db_instance(DBInstanceIdentifier="db-1", FinalDBSnapshotIdentifier="last-1")
    cloud.gone()

    snapshots = _snapshots(cloud)
    assert [
        (snapshot["DBSnapshotIdentifier"], snapshot["Status"], snapshot["SnapshotType"]) for snapshot in snapshots
    ] == [("last-1", "available", "manual")]
    assert snapshots[0]["DbiResourceId"] == before["DbiResourceId"]
    assert cloud.created()["DbiResourceId"] != before["DbiResourceId"]


def test_a_restore_has_the_sources_storage_and_login_and_a_copy_outlives_its_source(
    cloud: Cloud,
) -> None:
    before = cloud.created(AllocatedStorage=40, DBName="shop", MultiAZ=True)
    _take(cloud, "s-1")

    reply = cloud.rds.restore_db_instance_from_db_snapshot(DBInstanceIdentifier="db-2", DBSnapshotIdentifier="s-1")

    assert reply["DBInstance"]["DBInstanceStatus"] == "creating"
    assert reply["DBInstance"]["PendingModifiedValues"] == {}
    after = cloud.rest("db-2")
    assert after["DbiResourceId"] != before["DbiResourceId"]
    same = ("AllocatedStorage", "StorageType", "EngineVersion", "MasterUsername", "BackupRetentionPeriod")
    assert [after[name] for name in same] == [before[name] for name in same]
    assert (after["MultiAZ"], after["TagList"]) == (False, [])
    assert "RDS-EVENT-0043" in [event["EventID"] for event in cloud.control("GET", "events")]

    cloud.rds.copy_db_snapshot(SourceDBSnapshotIdentifier="s-1", TargetDBSnapshotIdentifier="s-2")
    cloud.rds.delete_db_snapshot(DBSnapshotIdentifier="s-1")

    assert [snapshot["DBSnapshotIdentifier"] for snapshot in _snapshots(cloud, SnapshotType="manual")] == ["s-2"]


def test_automated_backups_go_with_the_instance_unless_asked_otherwise(cloud: Cloud) -> None:
    cloud.created()
    assert len(cloud.rds.describe_db_instance_automated_backups()["DBInstanceAutomatedBackups"]) == 1
    cloud.rds.delete_db_instance(DBInstanceIdentifier="db-1", SkipFinalSnapshot=True)
    cloud.gone()

    assert cloud.rds.describe_db_instance_automated_backups()["DBInstanceAutomatedBackups"] == []
    assert _snapshots(cloud) == []

    before = cloud.created()
    drop = {"DBInstanceIdentifier": "db-1", "SkipFinalSnapshot": True, "DeleteAutomatedBackups": False}
    cloud.rds.delete_db_instance(**drop)
    cloud.gone()

    backups = cloud.rds.describe_db_instance_automated_backups()["DBInstanceAutomatedBackups"]
    assert [(backup["DbiResourceId"], backup["Status"]) for backup in backups] == [
        (before["DbiResourceId"], "retained")
    ]
    cloud.rds.restore_db_instance_to_point_in_time(
        SourceDbiResourceId=before["DbiResourceId"], TargetDBInstanceIdentifier="db-2", UseLatestRestorableTime=True
    )
    assert cloud.rest("db-2")["MasterUsername"] == before["MasterUsername"]
    cloud.rds.delete_db_instance_automated_backup(DbiResourceId=before["DbiResourceId"])
    backups = cloud.rds.describe_db_instance_automated_backups()["DBInstanceAutomatedBackups"]
    assert [backup["DBInstanceIdentifier"] for backup in backups] == ["db-2"]
    living = {"DbiResourceId": backups[0]["DbiResourceId"]}
    code, _ = refusal(lambda: cloud.rds.delete_db_instance_automated_backup(**living))
    assert code == "InvalidDBInstanceAutomatedBackupState"


def test_the_databases_are_called_in_order_whatever_goes_meanwhile(rig: Cloud, databases: Recorded) -> None:
    rig.created(BackupRetentionPeriod=0, DBName="shop", Port=6432)
    change = {"DBInstanceIdentifier": "db-1", "ApplyImmediately": True}
    pending = rig.rds.modify_db_instance(**change, MasterUserPassword="Another-word-1")["DBInstance"]
    assert pending["PendingModifiedValues"] == {"MasterUserPassword": "****"}
    rig.until(lambda shown: shown["PendingModifiedValues"] == {})
    rig.rds.modify_db_instance(**change, DBPortNumber=7432)
    rig.until(lambda shown: shown["Endpoint"]["Port"] == 7432)
    rig.rds.modify_db_instance(**change, DBInstanceClass="db.m6g.large")
    rig.until(lambda shown: shown["DBInstanceClass"] == "db.m6g.large")
    rig.rds.stop_db_instance(DBInstanceIdentifier="db-1")
    rig.until(lambda shown: shown["DBInstanceStatus"] == "stopped")
    rig.rds.start_db_instance(DBInstanceIdentifier="db-1")
    rig.rest()
    rig.rds.delete_db_instance(DBInstanceIdentifier="db-1", FinalDBSnapshotIdentifier="last")
    rig.gone()
    rig.rds.restore_db_instance_from_db_snapshot(
        DBInstanceIdentifier="db-2", DBSnapshotIdentifier="last", BackupRetentionPeriod=0
    )
    rig.rds.delete_db_snapshot(DBSnapshotIdentifier="last")
    rig.rest("db-2")

    assert databases.calls == [
        f"created db-1 6432 shop app_admin {PASSWORD}",
        "password db-1 Another-word-1",
        "moved db-1 7432",
        "rebooted db-1",
        "stopped db-1",
        "started db-1",
        "taken db-1 last",
        "deleted db-1",
        "restored db-2 last",
        "dropped last",
    ]

    rig.create("broken-1")

    assert rig.until(lambda shown: shown["DBInstanceStatus"] == "failed", "broken-1")

    rig.created(BackupRetentionPeriod=0)
    _take(rig, "kept")
    rig.at_real_length()

    rig.rds.restore_db_instance_from_db_snapshot(DBInstanceIdentifier="db-3", DBSnapshotIdentifier="kept")
    rig.rds.delete_db_snapshot(DBSnapshotIdentifier="kept")

    rig.until(lambda _: "dropped kept" in databases.calls, "db-3")
    assert databases.calls[-2:] == ["restored db-3 kept", "dropped kept"]
