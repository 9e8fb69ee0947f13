"""The life of a flexible server: created, changed, stopped, deleted, revived; and what is shown of it meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from tests.devcloud.azure.conftest import COPY, VERSION, Arm


@pytest.mark.parametrize(
    ("changes", "path", "expected"),
    [
        ({"storage": {"storageSizeGB": 256}}, "storage.storageSizeGB", 256),
        ({"storage": {"storageSizeGB": 256}}, "storage.tier", "P15"),
        ({"storage": {"tier": "P30"}}, "storage.iops", 5000),
        ({"storage": {"autoGrow": "enabled"}}, "storage.autoGrow", "Enabled"),
        ({"backup": {"backupRetentionDays": 21}}, "backup.backupRetentionDays", 21),
        ({"highAvailability": {"mode": "ZoneRedundant"}}, "highAvailability.state", "Healthy"),
        ({"highAvailability": {"mode": "zoneredundant"}}, "highAvailability.standbyAvailabilityZone", "2"),
        ({"highAvailability": {"mode": "SameZone"}}, "highAvailability.standbyAvailabilityZone", "1"),
        ({"maintenanceWindow": {"customWindow": "Enabled", "startHour": 3}}, "maintenanceWindow.startHour", 3),
        ({"version": "17"}, "version", "17"),
        ({"version": "17"}, "minorVersion", "7"),
        ({"authConfig": {"activeDirectoryAuth": "Enabled"}}, "authConfig.activeDirectoryAuth", "Enabled"),
        ({"network": {"publicNetworkAccess": "disabled"}}, "network.publicNetworkAccess", "Disabled"),
    ],
)
def test_change_is_there_when_its_operation_has_ended(
    changes: dict[str, Any], path: str, expected: object, arm: Arm
) -> None:
    before = arm.created()["properties"]

    accepted = arm.patch(changes)

    during = arm.get()["properties"]
    assert {**during, "state": "Ready"} == before
    assert during["state"] == "Updating"
    assert arm.until_done(accepted)["status"] == "Succeeded"
    value: Any = arm.get()["properties"]
    for part in path.split("."):
        value = value[part]
    assert value == expected


def test_dropped_server_can_be_revived_for_five_days(arm: Arm) -> None:
    source = arm.created(version="15")["id"]
    arm.until_done(arm.child("pg1/databases/app"))
    arm.until_done(arm.call("DELETE", arm.path()))
    copy = {**COPY, "createMode": "ReviveDropped", "sourceServerResourceId": source.upper()}

    arm.advance(4 * 86_400)
    shown = arm.created("pg2", **copy)

    assert shown["properties"]["version"] == "15"
    assert shown["properties"]["administratorLogin"] == "myadmin"
    assert arm.get("pg2/databases/app")["name"] == "app"
    arm.advance(86_400)
    assert arm.put("pg3", **copy).refusal == (404, "SourceServerNotFound")


def test_copy_of_a_point_in_time_has_what_its_source_has(arm: Arm) -> None:
    source = arm.created(storage={"storageSizeGB": 256}, backup={"backupRetentionDays": 14})
    copy = {**COPY, "createMode": "pointInTimeRestore", "sourceServerResourceId": source["id"]}

    assert arm.put("less", **copy).refusal == (400, "InvalidParameterValue")
    shown = arm.created("pg2", **{**copy, "storage": {"storageSizeGB": 512}})["properties"]

    assert (shown["version"], shown["storage"]["storageSizeGB"]) == ("16", 512)
    assert (shown["backup"]["backupRetentionDays"], shown["administratorLogin"]) == (14, "myadmin")
    assert "createMode" not in shown
    assert arm.put("pg2", **copy).refusal == (409, "ServerNameAlreadyExists")


def test_backups_are_made_each_day_and_kept_as_long_as_is_said(arm: Arm) -> None:
    arm.created()
    counts = []
    for days in (0, 3, 30):
        arm.advance(days * 86_400)
        counts.append(len(arm.get("pg1/backups")["value"]))

    assert counts == [1, 4, 7]


def test_backup_keeps_a_server_busy_and_fails_what_is_accepted_meanwhile(arm: Arm) -> None:
    arm.put()
    assert arm.get()["properties"]["highAvailability"]["state"] == ""
    arm.created("pg2")
    taken = arm.child("pg2/backups/mine")
    assert arm.get("pg2")["properties"]["state"] == "Updating"
    rule = arm.child("pg2/firewallRules/r", startIpAddress="10.0.0.1", endIpAddress="10.0.0.9")
    assert (rule.status, arm.until_done(rule)["error"]["code"]) == (202, "ServerIsBusy")
    assert arm.until_done(taken)["status"] == "Succeeded"
    types = {entry["name"]: entry["properties"]["backupType"] for entry in arm.get("pg2/backups")["value"]}
    assert types.pop("mine") == "Customer On-Demand"
    assert set(types.values()) == {"Full"}


def test_group_is_deleted_with_its_servers(arm: Arm) -> None:
    arm.created()
    accepted = arm.call("DELETE", arm.group_path, version="2020-06-01")

    assert (accepted.status, accepted.body) == (202, None)
    while (shown := arm.call("GET", accepted.headers["location"])).status == 202:
        assert shown.headers["location"].partition("?")[0] == accepted.headers["location"].partition("?")[0]
        arm.advance(30)
    assert (shown.status, shown.body) == (200, None)
    assert arm.call("GET", arm.group_path, version="2020-06-01").refusal == (404, "ResourceGroupNotFound")
    assert arm.call("GET", arm.path()).refusal == (404, "ResourceGroupNotFound")
    assert arm.control("GET", "servers") == {}


@pytest.mark.parametrize(
    ("version", "name", "available", "reason"),
    [
        ("2021-06-01", "free", True, None),
        ("2025-08-01", "pg1", False, "AlreadyExists"),
        ("2025-08-01", "Not_A_Name", False, "Invalid"),
    ],
)
def test_names_are_checked_for_all_of_azure(
    *, version: str, name: str, available: bool, reason: str | None, arm: Arm
) -> None:
    arm.created()
    path = f"/subscriptions/{arm.served.subscription}/providers/Microsoft.DBforPostgreSQL/checkNameAvailability"

    body = {"name": name, "type": "Microsoft.DBforPostgreSQL/flexibleServers"}
    shown = arm.call("POST", path, body, version=version).body

    assert (shown["nameAvailable"], shown.get("reason")) == (available, reason)


@pytest.mark.parametrize("state", ["Disabled", "Inaccessible"])
def test_server_in_a_state_of_somebody_elses_making_takes_no_change(state: str, arm: Arm) -> None:
    arm.created()
    arm.control("POST", "servers/pg1", {"state": state})

    assert arm.get(version=VERSION)["properties"]["state"] == state
    assert arm.patch({"backup": {"backupRetentionDays": 8}}).refusal == (409, "ServerIsNotReady")
