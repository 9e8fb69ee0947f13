"""Flexible servers by the generic reconciler, over ARM's wire: what is sent, in which order, how often."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from providers.azure import FLEXIBLE_SERVERS
from providers.azure.servers.client import clients
from providers.external.ownership import identity_of
from runtime.objects import Object
from tests.providers.azure.arm_stub import ArmStub
from tests.providers.azure.azure_world import AzureWorld, connected


def _server(stub: ArmStub) -> Object:
    (server,) = stub.servers.values()
    return server


async def _made(stub: ArmStub, **fields: Any) -> AzureWorld:
    world = AzureWorld(stub, **fields)
    world.ask()
    await world.settle()
    assert (world.reason("Ready"), world.reason()) == ("Available", "InSync")
    return world


async def test_operation_is_remembered_by_its_url_alone(stub: ArmStub) -> None:
    stub.polls = 5
    world = AzureWorld(stub)
    world.ask()
    await world.step()

    operation = world.status["operation"]
    assert operation["id"].startswith(f"{stub.url}/subscriptions/")
    assert len(operation["id"]) > 3000
    assert operation["server"] == world.external_name
    assert "Bearer" not in json.dumps(world.status)


async def test_name_that_anybody_in_azure_has_is_taken(stub: ArmStub) -> None:
    world = AzureWorld(stub)
    world.ask()
    stub.foreign = {f"fl-db-{identity_of(world.get() or {}).hash}"}
    await world.step()

    assert world.reason() == "NameTaken"
    assert stub.changing == []


async def test_state_that_nobody_knows_is_waited_out(stub: ArmStub) -> None:
    world = await _made(stub)
    _server(stub)["properties"]["state"] = "Contemplating"
    world.ask(parameters={"backupRetentionDays": 20})
    await world.step()

    assert world.reason() in {"CloudBusy", "Updating"}
    assert "Contemplating" in str(world.condition()["message"])
    assert len(stub.changing) == 1


@pytest.mark.parametrize(("status", "code"), [(500, "InternalServerError"), (403, "AuthorizationFailed"), (404, "")])
async def test_look_that_failed_creates_and_releases_nothing(stub: ArmStub, status: int, code: str) -> None:
    world = await _made(stub)
    stub.faults = [("GET", status, code)] * 6
    world.delete()
    await world.step()

    assert world.get() is not None
    assert len(stub.servers) == 1
    assert len(stub.changing) == 1


async def test_server_that_was_moved_is_not_lost(stub: ArmStub) -> None:
    world = await _made(stub)
    (key,) = stub.servers
    moved = stub.servers.pop(key)
    moved["id"] = moved["id"].replace("/databases/", "/Elsewhere/")
    stub.servers[key.replace("databases/", "elsewhere/")] = moved
    await world.step()

    assert world.reason() == "DatabaseRenamed"
    assert "elsewhere/fl-" in str(world.condition()["message"])


async def test_list_shows_what_was_seen_and_whose_it_is(stub: ArmStub) -> None:
    await _made(stub)
    async with connected(stub) as account:
        served = clients(account)
        listing = await served.account.list()
        (name,) = listing.items
        _server(stub)["properties"]["backup"]["earliestRestoreDate"] = "2026-02-01T00:00:00Z"
        again = await served.account.list()
        _server(stub)["properties"]["version"] = "17"
        changed = await served.account.list()
        former = replace(listing.owners[name], identity="uid-0")

        assert (await served.account.find_predecessors(former))[0].name == name
        assert await served.account.find_predecessors(listing.owners[name]) == ()

    assert listing.complete
    assert again.items == listing.items
    assert changed.items != listing.items


def test_servers_have_no_snapshot() -> None:
    assert FLEXIBLE_SERVERS.stateful
    with pytest.raises(ValueError, match="Snapshot"):
        _decoded("Snapshot")
    assert _decoded("Delete") == "Delete"


def _decoded(policy: str) -> str:
    spec = {"forProvider": {"resourceGroupName": "r", "location": "l", "administratorLogin": "a", "skuName": "s",
            "skuTier": "Burstable"}, "deletionPolicy": policy}  # fmt: skip
    return str(msgspec.convert(spec, FLEXIBLE_SERVERS.spec_type).deletion_policy)
