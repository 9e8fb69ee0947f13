"""What is inside one server, and the server itself, take turns whatever their kinds, whoever else is at work there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.api import JsonObject
from tests.support.azure import (
    AZURE_CONFIG,
    CONFIGURATION,
    FIREWALL_RULE,
    FLEXIBLE_SERVER,
    SERVER_DATABASE,
    Azure,
    flexible_server,
)
from tests.support.kinds import Kind, is_ready

pytestmark = pytest.mark.asyncio(loop_scope="session")
_LIMIT_S = 180.0
_INSIDE: tuple[tuple[Kind, str, JsonObject], ...] = (
    (SERVER_DATABASE, "goods", {"name": "goods"}),
    (FIREWALL_RULE, "home", {"cidr": "203.0.113.0/24"}),
    (FIREWALL_RULE, "office", {"cidr": "198.51.100.0/24"}),
    (CONFIGURATION, "memory", {"name": "work_mem", "value": "8MB"}),
    (CONFIGURATION, "timeout", {"name": "statement_timeout", "value": "5min"}),
)
_EDITS: tuple[tuple[Kind, str, JsonObject], ...] = (
    (FIREWALL_RULE, "home", {"cidr": "203.0.113.0/25"}),
    (FIREWALL_RULE, "office", {"cidr": "198.51.100.0/25"}),
    (CONFIGURATION, "memory", {"value": "16MB"}),
    (CONFIGURATION, "timeout", {"value": "6min"}),
)


async def _busy(azure: Azure) -> list[str]:
    """Return what was sent to a busy server: refused at once, or accepted and then failed."""
    failed = [operation for operation in await azure.control("GET", "operations") if operation["error"]]
    refused = [str(call["action"]) for call in await azure.calls() if call["outcome"] == "ServerIsBusy"]
    return refused + [f"{operation['target']} {operation['error']['code']}" for operation in failed]


async def _all_ready(azure: Azure, namespace: str) -> None:
    objects = ((FLEXIBLE_SERVER, "orders"), *((kind, name) for kind, name, _ in _INSIDE))
    await asyncio.gather(
        *(azure.system.until(kind, namespace, name, is_ready, limit_s=_LIMIT_S) for kind, name in objects)
    )


async def _edit_all(azure: Azure, namespace: str, **server: Any) -> None:
    edits = [
        *((kind, name, {"spec": {"forProvider": fields}}) for kind, name, fields in _EDITS),
        (FLEXIBLE_SERVER, "orders", {"spec": server}),
    ]
    await asyncio.gather(*(azure.system.edit(kind, namespace, name, patch) for kind, name, patch in edits))


async def test_a_server_and_five_children_at_once_provoke_no_server_is_busy(azure: Azure) -> None:
    provider = await azure.start_provider()
    await azure.system.until(AZURE_CONFIG, "", "default", is_ready)
    async with azure.namespace() as namespace:
        since = await azure.mark()
        for kind, name, fields in _INSIDE:
            spec = {"forProvider": {**fields, "serverRef": {"name": "orders"}}, "deletionPolicy": "Delete"}
            await azure.system.create(kind, kind.new(namespace, name, spec=spec))
        await azure.system.create(FLEXIBLE_SERVER, flexible_server(namespace, "orders"))
        await _all_ready(azure, namespace)
        assert len(await azure.changes(since)) == 1 + len(_INSIDE)

        since = await azure.mark()
        await _edit_all(azure, namespace, passwordRotation={"token": "1"}, forProvider={"backupRetentionDays": 9})
        await _all_ready(azure, namespace)
        assert len(await azure.changes(since)) >= len(_EDITS) + 1
        assert await _busy(azure) == []

        for kind, name in ((FLEXIBLE_SERVER, "orders"), *((kind, name) for kind, name, _ in _INSIDE)):
            await azure.system.api.delete(kind.path(namespace, name))
        for kind, name in ((FLEXIBLE_SERVER, "orders"), *((kind, name) for kind, name, _ in _INSIDE)):
            await azure.system.api.until_gone(kind.path(namespace, name), limit_s=_LIMIT_S)
        assert await azure.states() == {}
    await provider.terminate()
