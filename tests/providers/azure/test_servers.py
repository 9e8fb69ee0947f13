"""Flexible servers by the generic reconciler, over ARM's wire: what is sent, in which order, how often."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
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


@pytest.mark.parametrize("polls", [0, 3])
async def test_server_is_made_by_one_put(stub: ArmStub, polls: int) -> None:
    stub.polls = polls
    world = await _made(stub)

    assert len(stub.changing) == len(stub.sent("PUT")) == 1
    assert world.external_name.startswith("databases/fl-")
    assert world.status["atProvider"]["state"] == "Ready"
    assert world.status["connection"]["sslmode"] == "verify-full"
    assert "caRef" not in world.status["connection"]
    assert world.status["incarnation"].startswith("2026-01-13T05:56:01")


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


async def test_next_process_goes_on_polling_and_repeats_no_write(stub: ArmStub) -> None:
    stub.polls = 5
    first = AzureWorld(stub)
    first.ask()
    await first.step()

    second = AzureWorld(stub, kube=first.kube, process="process-2")
    second.now = first.now
    await second.settle(most=60)

    assert (second.reason("Ready"), second.reason()) == ("Available", "InSync")
    assert len(stub.changing) == 1


@pytest.mark.parametrize("url", ["gone", "https://evil.example/op1"])
async def test_lost_or_foreign_handle_leaves_it_to_the_state(stub: ArmStub, url: str) -> None:
    stub.polls = 1
    world = AzureWorld(stub)
    world.ask()
    await world.step()
    stub._end(next(iter(stub.operations)))
    obj = world.get() or {}
    obj["status"]["operation"]["id"] = url if "://" in url else obj["status"]["operation"]["id"]
    world.kube.store(world.kind.resource, obj)
    stub.operations.clear()
    await world.settle(most=60)

    assert (world.reason("Ready"), world.reason()) == ("Available", "InSync")
    assert len(stub.changing) == 1


async def test_hundred_passes_without_a_difference_write_nothing(stub: ArmStub) -> None:
    world = await _made(stub)
    _server(stub)["location"] = "UK SOUTH"
    _server(stub)["sku"] = {"name": "STANDARD_D2DS_V5", "tier": "generalpurpose"}
    before = len(stub.changing)

    for _ in range(100):
        await world.step()

    assert len(stub.changing) == before


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("properties", "storage", "storageSizeGB"), 32),
        (("properties", "backup", "backupRetentionDays"), 9),
        (("properties", "highAvailability", "mode"), "SameZone"),
        (("properties", "storage", "autoGrow"), "Disabled"),
        (("properties", "maintenanceWindow", "startHour"), 9),
        (("properties", "storage", "tier"), "P50"),
        (("properties", "storage", "iops"), 100),
        (("properties", "storage", "throughput"), 10),
    ],
)
async def test_drift_that_interrupts_nobody_is_put_back_at_once(stub: ArmStub, path: Any, value: Any) -> None:
    world = AzureWorld(stub)
    wanted = {
        "backupRetentionDays": 14, "highAvailabilityMode": "Disabled", "autoGrow": "Enabled", "customWindow": "Enabled",
        "startHour": 3, "storageTier": "P10", "iops": 4000, "throughput": 250,
    }  # fmt: skip
    world.ask(parameters=wanted)
    await world.settle()
    part = _server(stub)
    for name in path[:-1]:
        part = part[name]
    former, part[path[-1]] = part[path[-1]], value

    await world.settle()

    assert part[path[-1]] == former
    assert len(stub.sent("PATCH")) == 1


@pytest.mark.parametrize(
    "edited",
    [{"skuName": "Standard_D4ds_v5"}, {"publicNetworkAccess": "Disabled"}, {"passwordAuth": "Disabled"}],
)
async def test_edit_that_interrupts_waits_for_the_window_or_is_made_now(stub: ArmStub, edited: Any) -> None:
    world = await _made(stub)
    world.ask(parameters=edited)
    await world.step()
    assert world.reason() == "WaitingForWindow"
    assert stub.sent("PATCH") == []

    world.ask(parameters=edited, maintenance={"apply": "Immediate"})
    await world.settle()
    assert len(stub.sent("PATCH")) == 1


async def test_upgrade_wants_a_consent(stub: ArmStub) -> None:
    world = await _made(stub)
    world.ask(parameters={"version": "17"}, maintenance={"apply": "Immediate"})
    await world.step()

    assert world.reason() == "HeldChange"
    world.annotate(consent="version=17")
    await world.settle()
    assert _server(stub)["properties"]["version"] == "17"
    assert stub.bodies[-1] == {"properties": {"version": "17"}}


async def test_name_that_anybody_in_azure_has_is_taken(stub: ArmStub) -> None:
    world = AzureWorld(stub)
    world.ask()
    stub.foreign = {f"fl-db-{identity_of(world.get() or {}).hash}"}
    await world.step()

    assert world.reason() == "NameTaken"
    assert stub.changing == []


async def test_foreign_server_that_appears_before_the_put_stays_untouched(stub: ArmStub) -> None:
    world = AzureWorld(stub)
    world.ask()
    stub.faults = [("PUT", 409, "ServerNameAlreadyExists")]
    await world.step()

    assert stub.servers == {}
    assert world.reason() != "Available"
    await world.settle()
    assert len(stub.servers) == 1


async def test_create_whose_operation_was_never_recorded_makes_one(stub: ArmStub) -> None:
    world = AzureWorld(stub)
    world.ask()
    world.feed()
    await world.step()
    status = (world.get() or {})["status"]
    status.pop("operation", None)
    obj = world.get() or {}
    obj["status"] = status
    world.kube.store(world.kind.resource, obj)
    await world.settle()

    assert len(stub.sent("PUT")) == 1


async def test_server_without_our_tags_is_only_read(stub: ArmStub) -> None:
    world = await _made(stub)
    _server(stub)["tags"] = {"fairlead-installation": "elsewhere", "fairlead-identity": "x", "fairlead-claim": "y"}
    world.ask(parameters={"backupRetentionDays": 20})
    await world.step()

    assert world.reason() == "NotOwned"
    assert len(stub.changing) == 1


@pytest.mark.parametrize("code", ["ServerIsBusy", "OperationCancelled", "InternalServerError"])
async def test_operation_that_others_pushed_aside_is_sent_again(stub: ArmStub, code: str) -> None:
    world = await _made(stub)
    stub.polls, stub.failing = 1, [(code, "Failed")]
    world.ask(parameters={"backupRetentionDays": 20})
    await _until_ready_again(stub, world)

    assert _server(stub)["properties"]["backup"]["backupRetentionDays"] == 20
    assert len(stub.sent("PATCH")) == 2


async def _until_ready_again(stub: ArmStub, world: AzureWorld) -> None:
    """Make passes as they are due; whatever a failed operation left is Ready again, as ARM shows it."""
    for _ in range(40):
        await world.step()
        if stub.operations and not any(operation.effect for operation in stub.operations.values()):
            _server(stub)["properties"]["state"] = "Ready"
        world.now += timedelta(minutes=1)
        if world.reason() == "InSync":
            return
    raise AssertionError(f"not settled: {world.reason()} {world.condition()}")


async def test_operation_that_failed_for_good_is_said_and_not_repeated(stub: ArmStub) -> None:
    world = await _made(stub)
    stub.polls, stub.failing = 1, [("InvalidParameterValue", "Failed")]
    world.ask(parameters={"backupRetentionDays": 20})
    for _ in range(20):
        await world.step()
        _server(stub)["properties"]["state"] = "Ready"

    assert world.reason() == "InvalidValue"
    assert len(stub.sent("PATCH")) == 1


@pytest.mark.parametrize(
    ("state", "reason"),
    [("Stopped", "DatabaseStopped"), ("Disabled", "DatabaseFailed"), ("Inaccessible", "DatabaseFailed")],
)
async def test_state_in_which_nobody_gets_in_is_reported(stub: ArmStub, state: str, reason: str) -> None:
    world = await _made(stub)
    _server(stub)["properties"]["state"] = state
    world.ask(parameters={"backupRetentionDays": 20})
    await world.step()

    assert world.reason() == reason
    assert len(stub.changing) == 1


async def test_state_that_nobody_knows_is_waited_out(stub: ArmStub) -> None:
    world = await _made(stub)
    _server(stub)["properties"]["state"] = "Contemplating"
    world.ask(parameters={"backupRetentionDays": 20})
    await world.step()

    assert world.reason() in {"CloudBusy", "Updating"}
    assert "Contemplating" in str(world.condition()["message"])
    assert len(stub.changing) == 1


async def test_deletion_deletes_and_orphan_says_so(stub: ArmStub) -> None:
    world = await _made(stub)
    world.delete()
    await world.settle()
    assert (stub.servers, world.get()) == ({}, None)

    orphan = AzureWorld(stub)
    orphan.ask(deletionPolicy="Orphan")
    await orphan.settle()
    orphan.delete()
    await orphan.settle()
    assert "fairlead-released" in _server(stub)["tags"]
    assert orphan.get() is None


async def test_lock_holds_a_deletion_in_words(stub: ArmStub) -> None:
    world = await _made(stub)
    stub.faults = [("DELETE", 409, "ScopeLocked")] * 3
    world.delete()
    await world.step()

    assert world.reason() == "DeleteBlocked"
    assert len(stub.servers) == 1


@pytest.mark.parametrize(("status", "code"), [(500, "InternalServerError"), (403, "AuthorizationFailed"), (404, "")])
async def test_look_that_failed_creates_and_releases_nothing(stub: ArmStub, status: int, code: str) -> None:
    world = await _made(stub)
    stub.faults = [("GET", status, code)] * 6
    world.delete()
    await world.step()

    assert world.get() is not None
    assert len(stub.servers) == 1
    assert len(stub.changing) == 1


async def test_lost_server_is_never_replaced_by_an_empty_one(stub: ArmStub) -> None:
    world = await _made(stub)
    stub.servers.clear()
    for _ in range(4):
        await world.step()
        world.now += timedelta(minutes=2)

    assert world.reason("Ready") == "DatabaseLost"
    assert len(stub.sent("PUT")) == 1


async def test_server_that_was_moved_is_not_lost(stub: ArmStub) -> None:
    world = await _made(stub)
    (key,) = stub.servers
    moved = stub.servers.pop(key)
    moved["id"] = moved["id"].replace("/databases/", "/Elsewhere/")
    stub.servers[key.replace("databases/", "elsewhere/")] = moved
    await world.step()

    assert world.reason() == "DatabaseRenamed"
    assert "elsewhere/fl-" in str(world.condition()["message"])


async def test_rotation_is_one_patch_of_the_password(stub: ArmStub) -> None:
    world = await _made(stub)
    world.ask(passwordRotation={"token": "1"})
    await world.settle()

    passwords = [
        body["properties"]["administratorLoginPassword"]
        for body in stub.bodies
        if "administratorLoginPassword" in body.get("properties", {})
    ]
    assert len(stub.sent("PATCH")) == 1
    assert len(set(passwords)) == 2
    assert not any(password in json.dumps(world.get()) for password in passwords)


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
