"""The life of a flexible server: created, changed, stopped, deleted, revived; and what is shown of it meanwhile."""

from __future__ import annotations

import pytest

from tests.devcloud.azure.conftest import VERSION, Arm


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


@pytest.mark.parametrize("state", ["Disabled", "Inaccessible"])
def test_server_in_a_state_of_somebody_elses_making_takes_no_change(state: str, arm: Arm) -> None:
    arm.created()
    arm.control("POST", "servers/pg1", {"state": state})

    assert arm.get(version=VERSION)["properties"]["state"] == state
    assert arm.patch({"backup": {"backupRetentionDays": 8}}).refusal == (409, "ServerIsNotReady")
