"""Operations as ARM has them: accepted before they are decided, asked for by long URLs, failed in their polls, lost."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.devcloud.azure.conftest import Arm

RULE = {"startIpAddress": "10.0.0.1", "endIpAddress": "10.0.0.9"}


def test_accepted_answer_leads_to_the_operation_by_two_long_urls(arm: Arm) -> None:
    """Recorded, 2022-12-01: 3,203 characters with a host of 20 characters, signed."""
    accepted = arm.put()

    url = accepted.headers["azure-asyncoperation"]
    assert 3_150 < len(url) < 3_250
    parts = urlsplit(url)
    subscription = arm.served.subscription
    place = f"/subscriptions/{subscription}/providers/Microsoft.DBforPostgreSQL/locations/uksouth"
    handle = parts.path.rpartition("/")[2]
    assert parts.path == f"{place}/azureAsyncOperation/{handle}"
    assert urlsplit(accepted.headers["location"]).path == f"{place}/operationResults/{handle}"
    assert [part.partition("=")[0] for part in parts.query.split("&")] == ["api-version", "t", "c", "s", "h"]
    assert accepted.headers["retry-after"] == "60"
    arm.until_done(accepted)
    arm.behave(signed_urls=False)
    assert len(arm.patch({}).headers["azure-asyncoperation"]) < 250


@pytest.mark.parametrize(
    ("method", "rest", "body", "kind", "retry_after"),
    [
        ("PUT", "pg1/databases/app", {"charset": "utf8"}, "UpsertServerDatabaseManagementOperation", "10"),
        ("PUT", "pg1/firewallRules/r", RULE, "UpsertServerFirewallRulesManagementOperation", "60"),
        (
            "PUT",
            "pg1/configurations/work_mem",
            {"value": "8192"},
            "UpdateOrcasServerParameterManagementOperation",
            "10",
        ),
        ("PATCH", "pg1", {}, "UpsertServerManagementOperationV2", "60"),
        ("DELETE", "pg1", None, "DropServerManagementOperation", "15"),
    ],
)
def test_kinds_and_pauses_are_the_recorded_ones(
    *, method: str, rest: str, body: object, kind: str, retry_after: str, arm: Arm
) -> None:
    """Recorded, 2022-12-01, but for PATCH."""
    arm.created()

    accepted = arm.call(method, arm.path(rest), None if body is None else {"properties": body})

    assert (accepted.status, accepted.body["operation"]) == (202, kind)
    assert accepted.headers["retry-after"] == retry_after
    shown = arm.call("GET", accepted.headers["azure-asyncoperation"])
    assert (shown.status, shown.headers["retry-after"]) == (200, retry_after)
    assert shown.body.keys() == {"name", "status", "startTime"}


@pytest.mark.parametrize("second", ["databases/b", "firewallRules/r", "configurations/work_mem"])
def test_second_change_in_a_server_is_accepted_and_fails_in_its_poll(second: str, arm: Arm) -> None:
    """Recorded, 2025-08-01: 202, then Failed with ServerIsBusy."""
    arm.created()
    first = arm.child("pg1/databases/a")

    body = {**RULE, "value": "8192"}
    accepted = arm.child(f"pg1/{second}", **body)

    assert accepted.status == 202
    ended = arm.poll(accepted)
    assert (ended["status"], ended["error"]["code"]) == ("Failed", "ServerIsBusy")
    assert "'pg1'" in ended["error"]["message"]
    assert arm.until_done(first)["status"] == "Succeeded"
    if not second.startswith("configurations"):
        assert arm.call("GET", arm.path(f"pg1/{second}")).refusal == (404, "ResourceNotFound")
    assert arm.until_done(arm.child(f"pg1/{second}", **body))["status"] == "Succeeded"


def test_children_of_different_kinds_may_overlap_where_azure_lets_them(arm: Arm) -> None:
    """Recorded, 2021-06-01 and 2022-12-01: a parameter, a rule and a database at once, all Succeeded."""
    arm.created()
    arm.behave(children_overlap=True)

    accepted = [
        arm.child("pg1/configurations/work_mem", value="8192"),
        arm.child("pg1/firewallRules/r", **RULE),
        arm.child("pg1/databases/app"),
    ]
    second = arm.child("pg1/databases/other")

    assert arm.poll(second)["error"]["code"] == "ServerIsBusy"
    assert [arm.until_done(reply)["status"] for reply in accepted] == ["Succeeded"] * 3


@pytest.mark.parametrize(
    ("code", "status"),
    [("InternalServerError", "Failed"), ("OperationCancelled", "Canceled"), ("ServerIsBusy", "Failed")],
)
def test_accepted_change_fails_at_its_end(code: str, status: str, arm: Arm) -> None:
    """Recorded, 2025-08-01: Failed/InternalServerError, Canceled/OperationCancelled."""
    arm.created()
    arm.control("POST", "operations", {"target": "pg1", "code": code, "message": "It failed."})

    accepted = arm.patch({"backup": {"backupRetentionDays": 8}})

    assert arm.until_done(accepted) == {
        "name": accepted.headers["azure-asyncoperation"].partition("?")[0].rpartition("/")[2],
        "status": status,
        "startTime": accepted.body["startTime"],
        "error": {"code": code, "message": "It failed."},
    }
    assert arm.get()["properties"]["backup"]["backupRetentionDays"] == 7
    assert arm.until_done(arm.patch({"backup": {"backupRetentionDays": 8}}))["status"] == "Succeeded"


@pytest.mark.parametrize("status", [404, 410])
def test_lost_handle_is_answered_no_more_and_its_operation_goes_on(status: int, arm: Arm) -> None:
    arm.created()
    arm.behave(lost_status=status)
    accepted = arm.patch({"backup": {"backupRetentionDays": 8}})
    (handle,) = [entry["id"] for entry in arm.control("GET", "operations") if entry["status"] != "DONE"]

    arm.control("DELETE", f"operations/{handle}")

    for name in ("azure-asyncoperation", "location"):
        assert arm.call("GET", accepted.headers[name]).refusal == (status, "OperationNotFound")
    assert arm.get()["properties"]["state"] == "Updating"
    arm.advance(100)
    assert arm.get()["properties"]["backup"]["backupRetentionDays"] == 8
