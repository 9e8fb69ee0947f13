"""The life of an instance: operations, what its settings become, stop and start, backups, its end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.devcloud.gcp.conftest import Cloud, Json, query


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


def test_backups_of_runs_stay_where_the_instance_retains_them(cloud: Cloud) -> None:
    cloud.created(retainBackupsOnDelete=True)
    cloud.done(cloud.call("POST", "instances/db-1/backupRuns", {}))
    cloud.done(cloud.call("DELETE", "instances/db-1"))

    (backup,) = backup_names(cloud)
    assert (backup["type"], backup["state"]) == ("ON_DEMAND", "SUCCESSFUL")
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
