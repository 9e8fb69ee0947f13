"""The life of an instance: operations, what its settings become, stop and start, backups, its end."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.devcloud.gcp.conftest import Cloud, Json, Reply, query


def test_put_sets_back_what_is_not_sent(cloud: Cloud) -> None:
    cloud.created(dataDiskSizeGb="20", deletionProtectionEnabled=True, userLabels={"team": "a"})

    body = {"settings": {"tier": "db-custom-2-7680", "settingsVersion": "1"}}
    cloud.done(cloud.call("PUT", "instances/db-1", body))

    settings = cloud.look()["settings"]
    assert (settings["tier"], settings["deletionProtectionEnabled"]) == ("db-custom-2-7680", False)
    assert (settings["dataDiskSizeGb"], "userLabels" in settings) == ("20", False)


def test_authority_rotates(cloud: Cloud) -> None:
    before = cloud.created()["serverCaCert"]
    assert cloud.created("db-2")["serverCaCert"]["cert"] != before["cert"]
    # Instances.addServerCa: "Required to prepare for a certificate rotation".
    assert cloud.call("POST", "instances/db-1/rotateServerCa", {}).refusal == (400, "invalid")

    cloud.done(cloud.call("POST", "instances/db-1/addServerCa"))
    added = cloud.call("GET", "instances/db-1/listServerCas").body
    assert (added["certs"][0], added["activeVersion"]) == (before, before["sha1Fingerprint"])
    assert cloud.look()["serverCaCert"] == before

    cloud.done(cloud.call("POST", "instances/db-1/rotateServerCa", {}))
    after = cloud.look()["serverCaCert"]
    assert after == added["certs"][1]
    listed = cloud.call("GET", "instances/db-1/listServerCas").body
    assert (listed["certs"], listed["activeVersion"]) == ([after, before], after["sha1Fingerprint"])
    assert cloud.call("POST", "instances/db-1/rotateServerCa", {}).refusal == (400, "invalid")
    assert cloud.call("GET", "instances/db-1/connectSettings").body["serverCaCert"] == after


def backup_names(cloud: Cloud, **parameters: Any) -> list[Json]:
    return list(cloud.call("GET", f"backups{query(**parameters)}").body.get("backups", []))


def test_final_backup_outlives_its_instance_and_makes_another(cloud: Cloud) -> None:
    first = cloud.created(userLabels={"team": "a"})
    cloud.done(cloud.call("POST", "instances/db-1/databases", {"name": "app"}))
    cloud.done(cloud.call("POST", "instances/db-1/backupRuns", {"description": "before"}))
    (run,) = cloud.call("GET", "instances/db-1/backupRuns").body["items"]
    assert (run["status"], run["type"], run["description"]) == ("SUCCESSFUL", "ON_DEMAND", "before")

    final = query(enableFinalBackup="true", finalBackupTtlDays=30, finalBackupDescription="last")
    cloud.done(cloud.call("DELETE", f"instances/db-1{final}"))

    (backup,) = backup_names(cloud, filter="instance:db-1 AND type:FINAL")
    assert (backup["state"], backup["description"], backup["instance"]) == ("SUCCESSFUL", "last", "db-1")
    assert "instanceDeletionTime" in backup
    # The instance as it was, its creation too: it distinguishes two incarnations of a name.
    assert backup["instanceSettings"]["createTime"] == first["createTime"]
    assert backup_names(cloud) == [backup]
    body = {"backup": backup["name"], "restoreInstanceSettings": {"settings": {"dataDiskSizeGb": "30"}}}
    cloud.done(cloud.call("POST", "instances/db-2/restoreBackup", body))
    restored = cloud.look("db-2")
    assert (restored["settings"]["dataDiskSizeGb"], restored["settings"]["userLabels"]) == ("30", {"team": "a"})
    assert (restored["name"], restored["connectionName"].rpartition(":")[2]) == ("db-2", "db-2")
    assert restored["createTime"] > first["createTime"]
    names = [item["name"] for item in cloud.call("GET", "instances/db-2/databases").body["items"]]
    assert names == ["app", "postgres"]
    cloud.advance(31 * 86_400)
    assert backup_names(cloud) == []


def test_backups_of_runs_stay_where_the_instance_retains_them(cloud: Cloud) -> None:
    kept = {"enabled": True, "pointInTimeRecoveryEnabled": True}
    cloud.created(retainBackupsOnDelete=True, backupConfiguration=kept)
    cloud.done(cloud.call("POST", "instances/db-1/databases", {"name": "app"}))
    cloud.done(cloud.call("POST", "instances/db-1/backupRuns", {}))
    cloud.done(cloud.call("DELETE", "instances/db-1"))

    (backup,) = backup_names(cloud)
    assert (backup["type"], backup["state"]) == ("ON_DEMAND", "SUCCESSFUL")
    # It is what the instance is restored from to a time, where its logs were kept.
    times = {"sourceInstanceDeletionTime": backup["instanceDeletionTime"]}
    for time, answer in ((backup["instanceDeletionTime"], 200), ("2020-01-01T00:00:00Z", 400)):
        context = {"destinationInstanceName": "db-2", "pointInTime": time, **times}
        assert cloud.call("POST", "instances/db-1/clone", {"cloneContext": context}).status == answer
    cloud.advance(3600)
    assert [item["name"] for item in cloud.call("GET", "instances/db-2/databases").body["items"]] == ["app", "postgres"]
    cloud.done(cloud.call("DELETE", backup["name"].partition("/")[2].partition("/")[2]))
    assert backup_names(cloud) == []


def test_final_backup_that_fails_keeps_the_instance(cloud: Cloud) -> None:
    cloud.created(finalBackupConfig={"enabled": True, "retentionDays": 10})
    cloud.control("POST", "behaviour", {"failing_backups": ["db-*"]})

    assert "error" in cloud.ended(cloud.call("DELETE", "instances/db-1"))

    assert cloud.look()["state"] == "RUNNABLE"
    (backup,) = backup_names(cloud)
    assert (backup["type"], backup["state"]) == ("FINAL", "FAILED")
    no_backup = query(enableFinalBackup="false")
    cloud.done(cloud.call("DELETE", f"instances/db-1{no_backup}"))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"backup": "projects/p"}, "Invalid backup name"),
        ({"backup": "projects/fairlead-devcloud/backups/1"}, "does not exist"),
    ],
)
def test_restore_from_nothing_is_refused(body: Json, says: str, cloud: Cloud) -> None:
    assert says in cloud.call("POST", "instances/db-2/restoreBackup", body).message


def test_clone_is_its_source_as_of_a_time(cloud: Cloud) -> None:
    kept = {"enabled": True, "pointInTimeRecoveryEnabled": True}
    cloud.created(userLabels={"team": "a"}, backupConfiguration=kept)
    cloud.created("plain")
    cloud.done(cloud.call("POST", "instances/db-1/databases", {"name": "app"}))

    def cloned(name: str, source: str = "db-1", **context: str) -> Reply:
        context = {"kind": "sql#cloneContext", "destinationInstanceName": name, **context}
        return cloud.call("POST", f"instances/{source}/clone", {"cloneContext": context})

    cloud.advance(3600)
    now = datetime.fromisoformat(cloud.control("GET", "clock")["now"])
    before, then, later = ((now + timedelta(minutes=by)).isoformat() for by in (-90, -30, 10))
    assert "not enabled" in cloned("db-2", "plain", pointInTime=then).message
    for time in (before, later):
        assert "Successful backup required" in cloned("db-2", pointInTime=time).message
    assert cloned("plain").refusal == (409, "instanceAlreadyExists")
    assert cloned("db-2", "none").refusal == (404, "instanceDoesNotExist")

    operation = cloud.done(cloned("db-2", pointInTime=then))
    assert (operation["operationType"], operation["targetId"]) == ("CLONE", "db-2")
    assert cloud.look("db-2")["settings"]["userLabels"] == {"team": "a"}
    names = [item["name"] for item in cloud.call("GET", "instances/db-2/databases").body["items"]]
    assert names == ["app", "postgres"]
    cloud.done(cloud.patch({"settings": {"backupConfiguration": {"pointInTimeRecoveryEnabled": False}}}))
    assert "not enabled" in cloned("db-3", pointInTime=then).message
