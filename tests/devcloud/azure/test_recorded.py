"""What recordings of the real ARM prove, each as a row with its source.

2021: `Test_DBForPostgreSQL_FlexibleServer_20210601_CRUD.yaml` (recorded 2023-02). 2022: `..._20221201_CRUD.yaml`
(2026-01). Both are of Azure Service Operator (MIT); `make replay` makes them again as a whole.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.devcloud.azure.conftest import SERVER, Arm

# 2022, exchange 7: all that a new server shows, but for names, times and the minor version.
NEW_SERVER: dict[str, Any] = {
    "administratorLogin": "myadmin",
    "authConfig": {"activeDirectoryAuth": "Disabled", "passwordAuth": "Enabled"},
    "availabilityZone": "1",
    "dataEncryption": {"type": "SystemManaged"},
    "highAvailability": {"mode": "Disabled", "state": "NotEnabled"},
    "maintenanceWindow": {"customWindow": "Disabled", "dayOfWeek": 0, "startHour": 0, "startMinute": 0},
    "network": {"publicNetworkAccess": "Enabled"},
    "replicaCapacity": 5,
    "replicationRole": "Primary",
    "state": "Ready",
    "storage": {"storageSizeGB": 128},
    "version": "13",
}
PARAMETER = {
    "value": "READ",
    "description": "Specifies which classes of statements will be logged by session audit logging.",
    "defaultValue": "none",
    "dataType": "Set",
    "allowedValues": "none,read,write,function,role,ddl,misc,all",
    "source": "user-override",
    "isDynamicConfig": True,
    "isReadOnly": False,
    "isConfigPendingRestart": False,
    "documentationLink": "https://github.com/pgaudit/pgaudit/blob/master/README.md",
}


def test_new_server_shows_these_defaults(arm: Arm) -> None:
    """2022, exchange 7; 2021, exchange 10, lacks four of them."""
    arm.created(version="13")

    shown = arm.get(version="2022-12-01")["properties"]

    assert shown.pop("minorVersion").isdecimal()
    assert shown.pop("fullyQualifiedDomainName") == "pg1.postgres.database.azure.com"
    assert shown["backup"].pop("earliestRestoreDate").endswith("+00:00")
    assert shown.pop("backup") == {"backupRetentionDays": 7, "geoRedundantBackup": "Disabled"}
    assert shown == NEW_SERVER


def test_parameter_keeps_its_letter_case_and_a_put_with_the_same_content_is_an_operation_too(arm: Arm) -> None:
    """2021, exchange 24; 2022, exchange 29."""
    arm.created()
    arm.until_done(arm.child("pg1/configurations/pgaudit.log", source="user-override", value="READ"))

    assert arm.get("pg1/configurations/pgaudit.log")["properties"] == PARAMETER

    # 2021, exchange 13; 2022, exchange 10: a maintenance window in small letters.
    window = {"customWindow": "enabled", "dayOfWeek": 5}

    accepted = arm.put(maintenanceWindow=window)

    assert accepted.status == 202
    arm.until_done(accepted)
    shown = arm.get()["properties"]["maintenanceWindow"]
    assert shown == {"customWindow": "Enabled", "dayOfWeek": 5, "startHour": 0, "startMinute": 0}


REQUESTED = "The requested resource of type 'Microsoft.DBforPostgreSQL/flexibleServers"


@pytest.mark.parametrize(
    ("version", "rest", "sentence"),
    [
        ("2021-06-01", "pg1/firewallRules/r", "The specified resource r was not found."),
        ("2022-12-01", "pg1/firewallRules/r", f"{REQUESTED}' with name 'r' was not found."),
        ("2021-06-01", "pg1/databases/app", f"{REQUESTED}/databases' with name 'app' was not found."),
        (
            "2022-12-01",
            "none",
            "The Resource 'Microsoft.DBforPostgreSQL/flexibleServers/none' under resource group 'rg'",
        ),
    ],
)
def test_missing_resource_has_these_sentences(version: str, rest: str, sentence: str, arm: Arm) -> None:
    """2021, exchanges 2, 17, 19; 2022, exchanges 2, 18, 19."""
    arm.created()

    reply = arm.call("GET", arm.path(rest), version=version)

    assert reply.refusal == (404, "ResourceNotFound")
    assert reply.body["error"]["message"].startswith(sentence)


def test_creation_takes_minutes_and_a_small_update_one(arm: Arm) -> None:
    """2022: created 04:54:33, still going on 04:59, ended 05:00:43; updated 05:00:48, ended by 05:01:51."""
    arm.control("POST", "clock", {"speed": 0})
    lengths = []
    for method, body in (("PUT", SERVER), ("PUT", SERVER), ("DELETE", None)):
        accepted, seconds = arm.call(method, arm.path(), body), 0
        while arm.poll(accepted)["status"] == "InProgress":
            arm.advance(10)
            seconds += 10
        lengths.append(seconds)

    assert lengths == [380, 70, 70]
