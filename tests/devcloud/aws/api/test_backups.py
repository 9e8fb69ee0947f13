"""Snapshots, automated backups, restores: by name over the wire, and what the databases do about it."""

from __future__ import annotations

from typing import Any

from tests.devcloud.aws.conftest import PASSWORD, Cloud
from tests.devcloud.recorded import Recorded


def _take(cloud: Cloud, name: str, **request: Any) -> None:
    cloud.rds.create_db_snapshot(DBInstanceIdentifier="db-1", DBSnapshotIdentifier=name, **request)
    waiter = cloud.rds.get_waiter("db_snapshot_completed")
    waiter.wait(DBSnapshotIdentifier=name, WaiterConfig={"Delay": 0.02, "MaxAttempts": 3000})
    cloud.rest()


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

    rig.created(BackupRetentionPeriod=0)
    _take(rig, "kept")
    rig.at_real_length()

    rig.rds.restore_db_instance_from_db_snapshot(DBInstanceIdentifier="db-3", DBSnapshotIdentifier="kept")
    rig.rds.delete_db_snapshot(DBSnapshotIdentifier="kept")

    rig.until(lambda _: "dropped kept" in databases.calls, "db-3")
    assert databases.calls[-2:] == ["restored db-3 kept", "dropped kept"]
