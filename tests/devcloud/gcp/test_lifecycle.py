"""The life of an instance: operations, what its settings become, stop and start, backups, its end."""

from __future__ import annotations

from datetime import datetime, timedelta

from tests.devcloud.gcp.conftest import Cloud, Reply


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


def test_upgrade_that_the_database_refuses_fails_and_changes_nothing(cloud: Cloud) -> None:
    cloud.created()

    operation = cloud.ended(cloud.patch({"databaseVersion": "POSTGRES_18"}))

    assert operation["error"]["errors"][0]["code"] == "INTERNAL_ERROR"
    assert cloud.look()["databaseVersion"] == "POSTGRES_16"
    cloud.done(cloud.patch({"databaseVersion": "POSTGRES_17"}))
    assert cloud.look()["databaseVersion"] == "POSTGRES_17"
