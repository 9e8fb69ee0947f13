"""What tests do behind the API's back, and what outlives the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devcloud.azure.server import Options, Served, running
from devcloud.postgres.access import Access
from tests.devcloud.azure.conftest import COPY, PASSWORD, Arm, Reply, send, token_of
from tests.devcloud.recorded import Recorded
from tests.support.waiting import eventually


def client_of(served: Served) -> Arm:
    arm = Arm(served, token_of(served))
    arm.call("PUT", arm.group_path, {"location": "uksouth"}, version="2020-06-01")
    return arm


def test_operations_work_on_the_databases() -> None:
    databases = Recorded()
    with running(Options(databases=databases)) as served:
        arm = client_of(served)
        source = arm.created()["id"]
        for change in (
            {"administratorLoginPassword": "Another-Pass-2"},
            {"version": "17"},
            {"storage": {"storageSizeGB": 256}},
        ):
            arm.until_done(arm.patch(change))
        for verb in ("stop", "start", "restart"):
            arm.until_done(arm.call("POST", arm.path(f"pg1/{verb}")))
        copy = {**COPY, "createMode": "PointInTimeRestore", "sourceServerResourceId": source}
        arm.created("pg2", **copy, storage={"storageSizeGB": 256})
        arm.until_done(arm.call("DELETE", arm.path("pg1")))

    assert databases.calls == [
        f"created pg1 5432 None myadmin {PASSWORD}",
        "password pg1 Another-Pass-2",
        "rebooted pg1",
        "stopped pg1",
        "started pg1",
        "rebooted pg1",
        "cloned pg2 of pg1",
        "stopped pg1",
    ]


def test_rules_and_parameters_become_the_firewall() -> None:
    databases = Recorded()
    with running(Options(databases=databases)) as served:
        arm = client_of(served)
        arm.created()
        assert databases.access["pg1"] == Access(networks=())
        arm.until_done(arm.child("pg1/firewallRules/r", startIpAddress="127.0.0.1", endIpAddress="127.0.0.2"))
        assert databases.access["pg1"] == Access(networks=("127.0.0.1/32", "127.0.0.2/32"))
        arm.until_done(arm.child("pg1/configurations/require_secure_transport", value="OFF"))
        assert databases.access["pg1"] == Access(networks=("127.0.0.1/32", "127.0.0.2/32"), requires_tls=False)
        arm.until_done(arm.patch({"network": {"publicNetworkAccess": "Disabled"}}))
        assert databases.access["pg1"] == Access(networks=(), requires_tls=False)
        # A creation that the databases cannot make fails and leaves nothing.
        ended = arm.until_done(arm.put("broken-1"))
        assert (ended["status"], ended["error"]["code"]) == ("Failed", "InternalServerError")
        assert arm.call("GET", arm.path("broken-1")).refusal == (404, "ResourceNotFound")


@pytest.mark.parametrize(
    ("change", "path", "expected"),
    [
        ({"properties": {"backup": {"backupRetentionDays": 30}}}, "backup.backupRetentionDays", 30),
        ({"autogrow": True}, "storage.storageSizeGB", 256),
        ({"minor": "99"}, "minorVersion", "99"),
        ({"state": "Inaccessible"}, "state", "Inaccessible"),
    ],
)
def test_server_changes_behind_the_apis_back(change: object, path: str, expected: object, arm: Arm) -> None:
    arm.created()

    arm.control("POST", "servers/pg1", change)

    value: Any = arm.get()["properties"]
    for part in path.split("."):
        value = value[part]
    assert value == expected


def test_server_vanishes_and_is_replaced_behind_the_apis_back(arm: Arm) -> None:
    first = arm.created()
    arm.until_done(arm.patch({}, tags={"owner": "a"}))
    arm.control("POST", "servers/pg1", {"replace": True})
    second = arm.get()

    assert first["systemData"] != second["systemData"]
    assert "tags" not in second
    arm.control("POST", "servers/pg1", {"tags": {"owner": "b"}})
    assert arm.get()["tags"] == {"owner": "b"}
    arm.control("POST", "servers/pg1", {"vanish": True})
    assert arm.call("GET", arm.path()).refusal == (404, "ResourceNotFound")
    assert arm.control("GET", "dropped") == {}


def test_children_change_behind_the_apis_back_and_are_shown_without_lag(arm: Arm) -> None:
    created = arm.created()
    arm.control("POST", "servers/pg1/configurations/work_mem", {"value": "16384"})
    arm.control("POST", "servers/pg1/firewallRules/r", {"startIpAddress": "10.0.0.1", "endIpAddress": "10.0.0.1"})

    assert arm.get("pg1/configurations/work_mem")["properties"]["value"] == "16384"
    assert arm.get("pg1/firewallRules/r")["name"] == "r"
    arm.control("DELETE", "servers/pg1/firewallRules/r")
    assert arm.get("pg1/firewallRules") == {"value": []}

    arm.behave(get_lag_s=10_000)
    arm.control("POST", "servers/pg1", {"sku": {"name": "Standard_E2ds_v5", "tier": "MemoryOptimized"}})
    arm.control("POST", "servers/pg1/firewallRules/r", {"startIpAddress": "10.0.0.1", "endIpAddress": "10.0.0.1"})

    shown = arm.control("GET", "servers/pg1")

    assert (shown["id"], shown["systemData"]) == (created["id"], created["systemData"])
    assert shown["sku"] == {"name": "Standard_E2ds_v5", "tier": "MemoryOptimized"}
    assert shown["children"]["configurations"] == {"work_mem": "16384"}
    assert list(shown["children"]["firewallRules"]) == ["r"]
    assert "postgres" in shown["children"]["databases"]
    assert arm.control("GET", "views") == [shown]


def test_robot_takes_tags_away(arm: Arm) -> None:
    arm.created()
    arm.until_done(arm.patch({}, tags={"fairlead-owner": "a", "team": "b"}))

    arm.behave(tag_robot={"strip": ["fairlead-*"], "every_s": 1})
    arm.advance(2)

    assert arm.get()["tags"] == {"team": "b"}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "servers/none", {"vanish": True}),
        ("POST", "servers/pg1", {"colour": "red"}),
        ("PATCH", "servers/pg1", {}),
        ("POST", "principals", {"client_id": "x"}),
        ("PATCH", "tokens", {}),
        ("POST", "nothing", {}),
    ],
)
def test_control_call_that_makes_no_sense_is_refused(method: str, path: str, body: object, arm: Arm) -> None:
    arm.created()

    with pytest.raises(AssertionError, match="status=400"):
        arm.control(method, path, body)


def test_restarted_simulator_knows_everything_and_goes_on(tmp_path: Path) -> None:
    state, first, databases = tmp_path / "state.json", Recorded(), Recorded()
    with running(Options(state=state, databases=first)) as served:
        arm = client_of(served)
        before = arm.created()
        arm.created("stopped")
        arm.until_done(arm.call("POST", arm.path("stopped/stop")))
        arm.created("gone")
        arm.until_done(arm.call("DELETE", arm.path("gone")))
        accepted = arm.patch({"administratorLoginPassword": "Another-Pass-2"}, tags={"team": "a"})
        url = accepted.headers["azure-asyncoperation"]

    with running(Options(state=state, databases=databases)) as served:
        # The token of before still counts.
        arm = Arm(served, arm.token)
        assert arm.get()["properties"]["state"] == "Updating"
        assert arm.patch({}).refusal == (409, "ServerIsBusy")
        assert arm.get("stopped")["properties"]["state"] == "Stopped"
        assert list(arm.control("GET", "dropped")) == [arm.path("gone")]
        path = url.partition("/subscriptions/")[2].partition("?")[0]
        accepted = Reply(
            202, {"azure-asyncoperation": f"{served.url}/subscriptions/{path}?api-version=2025-08-01"}, None
        )
        assert arm.until_done(accepted)["status"] == "Succeeded"
        after = arm.get()
        assert (after["tags"], after["systemData"]) == ({"team": "a"}, before["systemData"])
        # The first process may have set it before it ended, while the operation went on.
        password = "password pg1 Another-Pass-2"
        _until(lambda: password in (*first.calls, *databases.calls))
        _until(lambda: "stopped stopped" in databases.calls)
    assert state.stat().st_mode & 0o777 == 0o600
    assert databases.calls.count(password) <= 1
    assert sorted(call for call in databases.calls if call != password) == [
        "created pg1 5432 None myadmin ",
        "created stopped 5432 None myadmin ",
        "stopped stopped",
    ]


def test_control_is_closed_without_its_token(arm: Arm) -> None:
    headers = {"Authorization": "Bearer wrong", "Content-Type": "application/json"}

    assert send(f"{arm.served.url}/_control/servers", headers=headers).status == 403


def _until(holds: Callable[[], bool]) -> None:
    """Wait for what the simulator's jobs do after an operation's end."""

    async def probe() -> bool:
        return holds()

    asyncio.run(eventually(probe, "what the simulator's jobs do"))
