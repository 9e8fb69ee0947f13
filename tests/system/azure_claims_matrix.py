"""A server on Azure that was dropped: it is lost, its status says until when, and it comes back by commands."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.api import JsonObject
from tests.support.azure import (
    AZURE_CONFIG,
    FLEXIBLE_SERVER,
    SERVER_DATABASE,
    Azure,
)
from tests.support.kinds import CLAIM, Kind, claim, condition, in_trouble, is_ready
from tests.support.system import System
from tests.system.life_on_azure import actions_of

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_dropped_server_is_lost_until_it_is_revived_and_taken_over_by_the_commands_of_its_messages(
    fenced_azure: Azure,
) -> None:
    system = fenced_azure.system
    async with fenced_azure.namespace() as namespace, _adoption(system):
        await system.create(CLAIM, claim(namespace, "orders", deletionPolicy="Delete"))
        await system.until(CLAIM, namespace, "orders", is_ready, limit_s=180)
        async with await system.login(namespace, "orders") as connection:
            await connection.execute("CREATE TABLE goods AS SELECT 'canary' AS name")
        name, since = await fenced_azure.name_of(namespace, "orders"), await fenced_azure.mark()
        arm_id = (await fenced_azure.person("GET", name))["id"]
        await fenced_azure.person("DELETE", name)
        await _says_until_when_it_can_be_revived(fenced_azure, namespace)
        assert await actions_of(fenced_azure, since) == []

        await fenced_azure.person("PUT", name, _revival(arm_id))
        for kind in (FLEXIBLE_SERVER, SERVER_DATABASE):
            await _adopt(system, kind, namespace)
        await system.until(CLAIM, namespace, "orders", is_ready, limit_s=120)
        async with await system.login(namespace, "orders") as connection:
            rows = await (await connection.execute("SELECT name FROM goods")).fetchall()

    assert rows == [("canary",)]
    assert not {"flexibleServers.put", "databases.put"} & set(await actions_of(fenced_azure, since))


async def _says_until_when_it_can_be_revived(azure: Azure, namespace: str) -> None:
    name = (await azure.server_of(namespace, "orders"))["metadata"]["name"]
    lost = await azure.system.until(FLEXIBLE_SERVER, namespace, name, in_trouble("DatabaseLost"), limit_s=90)
    until, text = lost["status"]["revivableUntil"], condition(lost, "Synced")["message"]
    assert f"until {until}" in text
    assert "az postgres flexible-server revive-dropped" in text
    shown = await azure.system.until(CLAIM, namespace, "orders", lambda obj: until in str(obj["status"]["conditions"]))
    assert condition(shown, "Ready")["status"] == "False"


@asynccontextmanager
async def _adoption(system: System) -> AsyncIterator[None]:
    """Let the ProviderConfig allow adoptions for the length of a block."""
    path = AZURE_CONFIG.path("", "default")
    await system.api.merge(path, {"spec": {"allowAdoption": True}})
    try:
        yield
    finally:
        await system.api.merge(path, {"spec": {"allowAdoption": False}})


def _revival(arm_id: str) -> JsonObject:
    """Return the body of the PUT that `az postgres flexible-server revive-dropped` sends."""
    source = {"createMode": "ReviveDropped", "sourceServerResourceId": arm_id, "pointInTimeUTC": "2026-01-01T00:00:00Z"}
    return {"location": "uksouth", "properties": source}


async def _adopt(system: System, kind: Kind, namespace: str) -> None:
    """Give the one object of a kind the annotation that its message names."""
    (obj,) = await system.api.items(kind.path(namespace))
    name = obj["metadata"]["name"]
    shown = await system.until(kind, namespace, name, in_trouble("Replaced"), limit_s=120)
    command = re.search(r"(fairlead\.dev/adopt)='?([^'` ]+)", condition(shown, "Synced")["message"])
    assert command is not None, condition(shown, "Synced")["message"]
    await system.api.merge(kind.path(namespace, name), {"metadata": {"annotations": {command[1]: command[2]}}})
