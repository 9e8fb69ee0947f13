"""Servers and what is inside them by the generic reconciler, over ARM's wire: what is sent, and what is not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from providers.azure import FLEXIBLE_SERVERS
from providers.azure.children.kinds import CONFIGURATIONS, DATABASES, FIREWALL_RULES
from providers.azure.servers.client import clients
from providers.external.cloud_api.tags import owner_tags
from providers.external.ownership import identity_of
from providers.external.provider import Kind
from runtime.objects import Object
from tests.providers.azure.arm_stub import SUBSCRIPTION, TYPE, ArmStub, made
from tests.providers.azure.azure_world import SERVER, AzureWorld, connected
from tests.providers.world import SERVER_OWNER

NAME = "databases/fl-orders"
DATABASE: Object = {"name": "orders", "server": NAME, "charset": "UTF8"}
RULE: Object = {"cidr": "203.0.113.0/24", "server": NAME}
SETTING: Object = {"name": "work_mem", "value": "64MB", "server": NAME}
KINDS = [
    pytest.param(DATABASES, DATABASE, "databases", id="database"),
    pytest.param(FIREWALL_RULES, RULE, "firewallRules", id="rule"),
    pytest.param(CONFIGURATIONS, SETTING, "configurations", id="configuration"),
]
each_kind = pytest.mark.parametrize(("kind", "spec", "word"), KINDS)


def put_server(stub: ArmStub, number: int = 1) -> Object:
    body = {
        "location": SERVER["location"],
        "sku": {"name": SERVER["skuName"], "tier": SERVER["skuTier"]},
        "properties": {"version": "16"},
        "tags": owner_tags(SERVER_OWNER),
    }
    group, name = NAME.split("/")
    path = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/{TYPE}/{name}"
    server = stub.servers[NAME] = made(body, path, name, number)
    server["properties"]["state"] = "Ready"
    return server


async def _made(stub: ArmStub, kind: Kind[Any, Any] = FLEXIBLE_SERVERS, spec: Object | None = None) -> AzureWorld:
    world = AzureWorld(stub, kind=kind, spec=spec)
    world.ask()
    await world.settle()
    assert (world.reason("Ready"), world.reason()) == ("Available", "InSync")
    return world


@each_kind
async def test_child_goes_with_its_server(stub: ArmStub, kind: Kind[Any, Any], spec: Object, word: str) -> None:
    put_server(stub)
    world = await _made(stub, kind, spec)
    stub.servers.clear()
    world.delete()
    await world.settle()

    assert word
    assert world.get() is None
    assert len(stub.changing) == 1


async def test_value_that_somebody_set_is_only_read(stub: ArmStub) -> None:
    put_server(stub)
    known = {"value": "9", "source": "user-override", "unit": "KB", "dataType": "Integer", "defaultValue": "4096"}
    stub.children[f"{NAME}/configurations/work_mem"] = {"name": "work_mem", "properties": known}
    world = AzureWorld(stub, kind=CONFIGURATIONS, spec=SETTING)
    world.ask()
    await world.step()

    assert world.reason() == "NotOwned"
    assert stub.changing == []


async def test_default_value_is_as_it_is_wanted_without_a_write(stub: ArmStub) -> None:
    put_server(stub)
    await _made(stub, CONFIGURATIONS, {**SETTING, "value": "4MB"})

    assert stub.changing == []


async def test_database_of_a_server_that_was_made_again_is_lost(stub: ArmStub) -> None:
    put_server(stub)
    world = await _made(stub, DATABASES, DATABASE)
    put_server(stub, number=9)
    await world.step()

    assert world.reason() == "Replaced"
    assert len(stub.changing) == 1


async def test_child_of_a_server_without_a_name_is_not_looked_for(stub: ArmStub) -> None:
    spec = {"name": "orders", "serverRef": {"name": "orders"}}
    world = AzureWorld(stub, kind=DATABASES, spec=spec)
    world.ask()
    await world.step()

    assert world.reason() == "ReferenceNotFound"
    assert [line for line in stub.log if TYPE in line] == []


@each_kind
async def test_child_that_appeared_since_it_was_looked_for_is_looked_at_and_left(
    stub: ArmStub, kind: Kind[Any, Any], spec: Object, word: str
) -> None:
    put_server(stub)
    stub.appears_after = (word, 2)
    world = AzureWorld(stub, kind=kind, spec=spec)
    world.ask()
    await world.step()

    assert world.reason() == "NotOwned"
    assert "appeared before it could be created" in str(world.condition()["message"])
    assert stub.changing == []


@each_kind
async def test_nothing_is_made_in_a_server_that_is_at_something_else(
    stub: ArmStub, kind: Kind[Any, Any], spec: Object, word: str
) -> None:
    put_server(stub)["properties"]["state"] = "Updating"
    world = AzureWorld(stub, kind=kind, spec=spec)
    world.ask()
    await world.step()
    assert world.reason() == "CloudBusy"
    assert stub.changing == []

    stub.servers[NAME]["properties"]["state"] = "Ready"
    await world.settle()
    assert f"/{word}/" in stub.changing[0]


def _server(stub: ArmStub) -> Object:
    (server,) = stub.servers.values()
    return server


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
