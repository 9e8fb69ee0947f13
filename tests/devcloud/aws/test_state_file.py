"""The state outlives the process: what was asked for goes on, and the databases get again what they have."""

from __future__ import annotations

from pathlib import Path

from devcloud.aws.server import Options, running
from tests.devcloud.aws.conftest import PASSWORD, QUICK, Cloud
from tests.devcloud.recorded import Recorded


def test_a_restarted_simulator_knows_everything_and_goes_on(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    with running(Options(durations=QUICK, state=state)) as served:
        cloud = Cloud(served, Cloud(served, None).client())
        cloud.rds.create_db_parameter_group(
            DBParameterGroupName="own", DBParameterGroupFamily="postgres16", Description="d"
        )
        key = {"access_key_id": "AKIAOTHER00000000000", "secret_access_key": "other"}
        cloud.control("POST", "keys", key)
        before = cloud.created(BackupRetentionPeriod=0, Tags=[{"Key": "team", "Value": "a"}])
        cloud.created("stopped", BackupRetentionPeriod=0)
        cloud.rds.stop_db_instance(DBInstanceIdentifier="stopped")
        cloud.until(lambda shown: shown["DBInstanceStatus"] == "stopped", "stopped")
        cloud.at_real_length()
        change = {"DBInstanceIdentifier": "db-1", "ApplyImmediately": True}
        cloud.rds.modify_db_instance(**change, DBInstanceClass="db.m6g.large", DBParameterGroupName="own")
        cloud.create("unborn", BackupRetentionPeriod=0)
        cloud.advance(100)

    databases = Recorded()
    with running(Options(durations=QUICK, state=state, databases=databases)) as served:
        cloud = Cloud(served, Cloud(served, None).client())
        after = cloud.look()
        assert after["DbiResourceId"] == before["DbiResourceId"]
        assert (after["DBInstanceStatus"], after["TagList"]) == ("modifying", [{"Key": "team", "Value": "a"}])
        assert cloud.look("unborn")["DBInstanceStatus"] == "creating"
        assert "AKIAOTHER00000000000" in cloud.control("GET", "keys")
        cloud.advance(1000)
        cloud.until(lambda shown: shown["DBInstanceClass"] == "db.m6g.large")
        cloud.rest("unborn")
        assert cloud.look("stopped")["DBInstanceStatus"] == "stopped"
        own = cloud.rds.describe_db_parameter_groups(DBParameterGroupName="own")["DBParameterGroups"]
        assert own[0]["DBParameterGroupFamily"] == "postgres16"
    assert PASSWORD in state.read_text(encoding="utf-8")
    assert state.stat().st_mode & 0o777 == 0o600
    assert sorted(databases.calls) == [
        f"created db-1 5432 None app_admin {PASSWORD}",
        f"created stopped 5432 None app_admin {PASSWORD}",
        f"created unborn 5432 None app_admin {PASSWORD}",
        "rebooted db-1",
        "stopped stopped",
    ]
