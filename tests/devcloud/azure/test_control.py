"""What outlives the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from devcloud.azure.server import Options, Served, running
from tests.devcloud.azure.conftest import Arm, Reply, token_of
from tests.devcloud.recorded import Recorded
from tests.support.waiting import eventually


def client_of(served: Served) -> Arm:
    arm = Arm(served, token_of(served))
    arm.call("PUT", arm.group_path, {"location": "uksouth"}, version="2020-06-01")
    return arm


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


def _until(holds: Callable[[], bool]) -> None:
    """Wait for what the simulator's jobs do after an operation's end."""

    async def probe() -> bool:
        return holds()

    asyncio.run(eventually(probe, "what the simulator's jobs do"))
