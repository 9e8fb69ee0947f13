"""Ends of claims on Azure: what an orphan, a refused snapshot and a dropped server leave, and how it is revived."""

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


async def test_a_dropped_server_is_lost_and_its_status_says_until_when_it_can_be_revived(fenced_azure: Azure) -> None:
    system = fenced_azure.system
    async with fenced_azure.namespace() as namespace:
        await system.create(CLAIM, claim(namespace, "orders", deletionPolicy="Delete"))
        await system.until(CLAIM, namespace, "orders", is_ready, limit_s=180)
        server = await fenced_azure.server_of(namespace, "orders")
        name, since = await fenced_azure.name_of(namespace, "orders"), await fenced_azure.mark()
        await fenced_azure.person("DELETE", name)
        lost = await system.until(
            FLEXIBLE_SERVER, namespace, server["metadata"]["name"], in_trouble("DatabaseLost"), limit_s=90
        )

        until = lost["status"]["revivableUntil"]
        text = condition(lost, "Synced")["message"]
        assert f"until {until}" in text
        assert "az postgres flexible-server revive-dropped" in text
        shown = await system.until(CLAIM, namespace, "orders", lambda obj: until in str(obj["status"]["conditions"]))
        assert condition(shown, "Ready")["status"] == "False"
        assert await actions_of(fenced_azure, since) == []


async def test_a_revived_server_is_taken_over_by_the_commands_of_its_messages(fenced_azure: Azure) -> None:
    system = fenced_azure.system
    async with fenced_azure.namespace() as namespace, _adoption(system):
        await system.create(CLAIM, claim(namespace, "orders", deletionPolicy="Delete"))
        await system.until(CLAIM, namespace, "orders", is_ready, limit_s=180)
        async with await system.login(namespace, "orders") as connection:
            await connection.execute("CREATE TABLE goods AS SELECT 'canary' AS name")
        name = await fenced_azure.name_of(namespace, "orders")
        arm_id = (await fenced_azure.person("GET", name))["id"]
        await fenced_azure.person("DELETE", name)
        child = (await fenced_azure.server_of(namespace, "orders"))["metadata"]["name"]
        await system.until(FLEXIBLE_SERVER, namespace, child, in_trouble("DatabaseLost"), limit_s=90)

        since = await fenced_azure.mark()
        await fenced_azure.person("PUT", name, _revival(arm_id))
        for kind in (FLEXIBLE_SERVER, SERVER_DATABASE):
            await _adopt(system, kind, namespace)
        await system.until(CLAIM, namespace, "orders", is_ready, limit_s=120)
        async with await system.login(namespace, "orders") as connection:
            rows = await (await connection.execute("SELECT name FROM goods")).fetchall()

    assert rows == [("canary",)]
    assert not {"flexibleServers.put", "databases.put"} & set(await actions_of(fenced_azure, since))


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
