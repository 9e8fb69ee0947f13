"""The life of an instance: operations, what its settings become, stop and start, backups, its end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.devcloud.gcp.conftest import Cloud, Json, query


def test_creation_is_an_operation_that_ends_with_an_address_and_an_authority(cloud: Cloud) -> None:
    cloud.at_real_length()
    operation = cloud.insert().body
    path = f"operations/{operation['name']}"

    assert (operation["status"], operation["operationType"], operation["targetId"]) == ("PENDING", "CREATE", "db-1")
    assert "startTime" not in operation
    pending = cloud.look()
    assert (pending["state"], "ipAddresses" in pending, "rootPassword" in pending) == ("PENDING_CREATE", False, False)
    cloud.advance(5)
    assert cloud.call("GET", path).body["status"] == "RUNNING"
    cloud.advance(300)
    assert "error" not in cloud.ended(cloud.call("GET", path))
    shown = cloud.look()
    assert [(item["type"], item["ipAddress"]) for item in shown["ipAddresses"]] == [
        ("PRIMARY", "192.0.2.1"),
        ("OUTGOING", "192.0.2.1"),
    ]
    assert shown["state"] == "RUNNABLE"
    assert shown["serverCaCert"]["cert"].startswith("-----BEGIN CERTIFICATE-----")


def test_settings_that_nobody_sent_or_a_null_clears_have_defaults_in_both_versions(
    cloud: Cloud,
) -> None:
    settings = cloud.created()["settings"]

    assert (settings["dataDiskSizeGb"], settings["edition"], settings["activationPolicy"]) == (
        "10",
        "ENTERPRISE",
        "ALWAYS",
    )
    assert settings["backupConfiguration"]["backupRetentionSettings"] == {
        "retainedBackups": 7,
        "retentionUnit": "COUNT",
    }
    assert (settings["authorizedGaeApplications"], settings["settingsVersion"]) == ([], "1")

    ours = cloud.look()
    beta = cloud.send("GET", "sql/v1beta4/{p}/instances/db-1").body
    by_number = cloud.send("GET", "v1/projects/123456789012/instances/db-1").body

    assert beta["selfLink"].startswith("https://sqladmin.googleapis.com/sql/v1beta4/projects/")
    assert {**beta, "selfLink": ""} == {**ours, "selfLink": ""} == {**by_number, "selfLink": ""}

    usual = cloud.look()["settings"]["ipConfiguration"]
    networks = {"authorizedNetworks": [{"value": "10.0.0.0/8"}], "sslMode": "ENCRYPTED_ONLY"}
    cloud.done(cloud.patch({"settings": {"ipConfiguration": networks}}))
    assert cloud.look()["settings"]["ipConfiguration"]["sslMode"] == "ENCRYPTED_ONLY"

    cloud.done(cloud.patch({"settings": {"ipConfiguration": None}}))

    assert cloud.look()["settings"]["ipConfiguration"] == usual


def test_patch_merges_and_null_clears(cloud: Cloud) -> None:
    cloud.created(userLabels={"team": "a", "tier": "gold"}, databaseFlags=[{"name": "work_mem", "value": "4096"}])
    before = cloud.look()

    change = {"settings": {"userLabels": {"tier": None, "more": "b"}, "databaseFlags": []}}
    cloud.done(cloud.patch(change))

    after = cloud.look()
    assert after["settings"]["userLabels"] == {"team": "a", "more": "b"}
    assert after["settings"]["databaseFlags"] == []
    assert after["settings"]["settingsVersion"] == "2"
    assert after["etag"] != before["etag"]
    unchanged = {"userLabels", "databaseFlags", "settingsVersion"}
    assert {name: value for name, value in after["settings"].items() if name not in unchanged} == {
        name: value for name, value in before["settings"].items() if name not in unchanged
    }


def test_put_sets_back_what_is_not_sent(cloud: Cloud) -> None:
    cloud.created(dataDiskSizeGb="20", deletionProtectionEnabled=True, userLabels={"team": "a"})

    body = {"settings": {"tier": "db-custom-2-7680", "settingsVersion": "1"}}
    cloud.done(cloud.call("PUT", "instances/db-1", body))

    settings = cloud.look()["settings"]
    assert (settings["tier"], settings["deletionProtectionEnabled"]) == ("db-custom-2-7680", False)
    assert (settings["dataDiskSizeGb"], "userLabels" in settings) == ("20", False)


def test_stopped_instance_is_runnable_and_an_upgrade_and_a_change_show_at_their_end(cloud: Cloud) -> None:
    cloud.created()
    cloud.done(cloud.patch({"settings": {"activationPolicy": "NEVER"}}))

    stopped = cloud.look()
    assert (stopped["state"], stopped["settings"]["activationPolicy"]) == ("RUNNABLE", "NEVER")
    assert cloud.call("POST", "instances/db-1/restart").refusal == (400, "invalid")
    cloud.done(cloud.patch({"settings": {"activationPolicy": "ALWAYS"}}))
    assert cloud.call("GET", "instances/db-1/users").status == 200

    cloud.done(cloud.patch({"databaseVersion": "POSTGRES_17"}))

    shown = cloud.look()
    assert shown["databaseVersion"] == "POSTGRES_17"
    assert shown["databaseInstalledVersion"].startswith("POSTGRES_17_")
    assert shown["maintenanceVersion"].startswith("POSTGRES_17_")
    assert [item["name"] for item in shown["upgradableDatabaseVersions"]] == ["POSTGRES_18"]

    cloud.at_real_length()
    operation = cloud.patch({"settings": {"tier": "db-custom-2-7680"}})

    assert cloud.look()["settings"]["tier"] == "db-custom-1-3840"
    cloud.advance(200)
    cloud.done(operation)
    assert cloud.look()["settings"]["tier"] == "db-custom-2-7680"


def test_failover_is_of_a_regional_instance_and_a_failed_operation_has_an_error(
    cloud: Cloud,
) -> None:
    cloud.created()
    assert cloud.call("POST", "instances/db-1/failover", {}).refusal == (400, "invalid")
    regional = {"availabilityType": "REGIONAL", "backupConfiguration": {"enabled": True}}
    cloud.done(cloud.patch({"settings": regional}))

    assert cloud.done(cloud.call("POST", "instances/db-1/failover", {}))["operationType"] == "FAILOVER"
    assert cloud.done(cloud.call("POST", "instances/db-1/restart"))["operationType"] == "RESTART"

    before = cloud.look()
    failure = {"kind": "UPDATE", "code": "INTERNAL_ERROR", "message": "It did not work."}
    cloud.control("POST", "operations", failure)

    operation = cloud.ended(cloud.patch({"settings": {"tier": "db-custom-2-7680"}}))

    assert operation["status"] == "DONE"
    assert operation["error"] == {
        "kind": "sql#operationErrors",
        "errors": [{"kind": "sql#operationError", "code": "INTERNAL_ERROR", "message": "It did not work."}],
    }
    assert cloud.look() == before


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


def test_creation_that_fails_leaves_a_failed_instance_and_a_deletion_that_fails_the_instance(cloud: Cloud) -> None:
    cloud.control("POST", "operations", {"kind": "CREATE"})
    assert "error" in cloud.ended(cloud.insert())
    assert cloud.look()["state"] == "FAILED"
    cloud.control("POST", "operations", {"kind": "DELETE"})
    cloud.created("db-2")
    assert "error" in cloud.ended(cloud.call("DELETE", "instances/db-2"))
    assert cloud.look("db-2")["state"] == "RUNNABLE"


def test_deleted_instance_is_gone_and_its_operations_stay(cloud: Cloud) -> None:
    cloud.created()
    cloud.at_real_length()
    deletion = cloud.call("DELETE", "instances/db-1")

    assert cloud.look()["state"] == "PENDING_DELETE"
    cloud.advance(100)
    cloud.done(deletion)
    assert cloud.call("GET", "instances/db-1").refusal == (404, "instanceDoesNotExist")
    listed = cloud.call("GET", f"operations{query(instance='db-1')}").body["items"]
    assert [item["operationType"] for item in listed] == ["DELETE", "CREATE"]


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
