"""The shipped role definitions allow each request that the provider makes, and nothing that it does not make."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from devcloud.azure.api.routes import _TABLE
from tests.providers.azure.arm_world import INSIDE, inside_of, server_at_rest
from tests.providers.azure.simulated_arm import Arm

ROLES = Path(__file__).resolve().parents[3] / "deploy" / "iam" / "azure"
_ALL = "fairlead-provider-azure"


@pytest.mark.slow
async def test_roles_allow_what_is_asked_for_and_no_more(arm: Arm) -> None:
    server = await server_at_rest(arm)
    for kind, spec in INSIDE:
        child = inside_of(server, kind, spec)
        child.ask()
        await child.rest()
        child.delete()
        await child.until(lambda child=child: child.get() is None)  # type: ignore[misc]  # a lambda of this round
        server.now = child.now
    server.ask(parameters={"backupRetentionDays": 20})
    await server.rest()
    server.delete()
    await server.until(lambda: server.get() is None)
    calls = arm.calls(since=0)
    of_group = {str(call["action"]) for call in calls if "group" in call["params"]}
    called = {str(call["action"]) for call in calls}

    rights = {action: {row.action for *_, name, row in _TABLE if name == action} for action in called}
    allowed = {path.stem: set(json.loads(path.read_text())["Actions"]) for path in ROLES.glob("*.json")}
    every = set().union(*allowed.values())
    assert [action for action, needed in rights.items() if not needed & every] == []
    assert every <= set().union(*rights.values())
    assert len(every) == sum(map(len, allowed.values()))
    for action in called - of_group:
        assert rights[action] & allowed[f"{_ALL}-subscription"], action
    data = {"flexibleServers/delete", "flexibleServers/databases/delete"}
    assert allowed[f"{_ALL}-delete"] == {f"Microsoft.DBforPostgreSQL/{right}" for right in data}
