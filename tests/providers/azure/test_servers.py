"""Servers and what is inside them by the generic reconciler: what is sent, what is not, and what that needs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from apis.teardown import Policy
from devcloud.azure.api.routes import _TABLE
from providers.azure import FLEXIBLE_SERVERS
from providers.azure.children.kinds import CONFIGURATIONS, DATABASES
from providers.azure.servers.client import clients
from providers.azure.servers.restores import source_of
from providers.external.client import Target
from providers.external.cloud_api.refusals import NotThere
from providers.external.cloud_api.tags import owner_tags
from providers.external.credential import Credential
from providers.external.observation import Present
from providers.external.ownership import identity_of
from runtime.errors import Blocked, Terminal
from tests.providers.azure.arm_stub import SUBSCRIPTION, ArmStub
from tests.providers.azure.arm_world import INSIDE, ArmWorld, inside_of, server_at_rest
from tests.providers.azure.azure_world import connected
from tests.providers.azure.simulated_arm import Arm
from tests.providers.azure.test_translate import OWNER, answer_of, target_of
from tests.providers.gates import OPEN


@pytest.mark.slow
@pytest.mark.parametrize(("theirs", "wanted", "reason"), [("9", "64MB", "NotOwned"), (None, "4MB", "InSync")])
async def test_value_that_somebody_set_is_only_read_and_a_default_one_needs_no_write(
    arm: Arm, theirs: str | None, wanted: str, reason: str
) -> None:
    server = await server_at_rest(arm)
    arm.control("POST", f"servers/{server.name_of().split('/')[1]}/configurations/work_mem", {"value": theirs})
    world = inside_of(server, CONFIGURATIONS, {"name": "work_mem", "value": wanted})
    world.ask()
    await world.until(reason)
    watched = inside_of(server, CONFIGURATIONS, {})
    watched.ask(managementPolicy="Observe")
    watched.annotate(**{"external-name": f"{server.name_of()}/work_mem"})
    await watched.until("ObserveOnly")

    shown = {"name": "work_mem", "server": server.name_of(), "value": theirs or "4096"}
    assert (watched.reason("Ready"), watched.status["observed"]["forProvider"]) == ("Available", shown)
    assert arm.changes() == []


async def test_name_that_anybody_in_azure_has_is_taken(arm: Arm) -> None:
    world = ArmWorld(arm)
    world.ask()
    arm.person("PUT", "resourceGroups/others", {"location": "uksouth"}, api="2022-09-01")
    arm.make(f"others/fl-db-{identity_of(world.get() or {}).hash}")
    await world.until("NameTaken")

    assert arm.changes() == []


@pytest.mark.slow
async def test_state_that_nobody_knows_is_waited_out(arm: Arm) -> None:
    world = await server_at_rest(arm)
    arm.steer(world.name_of(), properties={"state": "Contemplating"})
    world.ask(parameters={"backupRetentionDays": 20})
    await world.step()

    assert world.reason() in {"CloudBusy", "Updating"}
    assert "Contemplating" in str(world.condition()["message"])
    assert arm.changes() == []


async def test_server_that_was_moved_is_not_lost(stub: ArmStub) -> None:
    moved = answer_of()
    moved["id"] = moved["id"].replace("/rg/", "/Elsewhere/")
    stub.servers = {"elsewhere/pg": moved}
    async with connected(stub) as account:
        external = clients(account).external
        with pytest.raises(Blocked, match="was moved and is elsewhere/pg now") as renamed:
            await external.observe(replace(target_of(), incarnation="2026-01-13T05:56:18.123456+00:00"))

    assert renamed.value.reason == "DatabaseRenamed"


async def test_no_server_is_deleted_under_snapshot(stub: ArmStub) -> None:
    stub.servers = {"rg/pg": answer_of()}
    async with connected(stub) as account:
        external = clients(account).external
        seen = await external.observe(target_of())
        assert isinstance(seen, Present)
        with pytest.raises(Blocked) as refused:
            await external.delete(target_of(), seen.observed, Policy.SNAPSHOT, fence=OPEN)

    assert refused.value.reason == "BackupImpossible"
    assert [line for line in stub.log if line.startswith("DELETE")] == []


def test_servers_have_no_snapshot() -> None:
    assert FLEXIBLE_SERVERS.stateful
    with pytest.raises(ValueError, match="Snapshot"):
        _decoded("Snapshot")
    assert _decoded("Delete") == "Delete"


def _decoded(policy: str) -> str:
    spec = {"forProvider": {"resourceGroupName": "r", "location": "l", "administratorLogin": "a", "skuName": "s",
            "skuTier": "Burstable"}, "deletionPolicy": policy}  # fmt: skip
    return str(msgspec.convert(spec, FLEXIBLE_SERVERS.spec_type).deletion_policy)


ROLES = Path(__file__).resolve().parents[3] / "deploy" / "iam" / "azure"
_ALL = "fairlead-provider-azure"


@pytest.mark.slow
async def test_roles_allow_what_is_asked_for_and_no_more(arm: Arm) -> None:
    server = await server_at_rest(arm)
    for kind, spec in INSIDE:
        child = inside_of(server, kind, spec)
        child.ask()
        if kind is DATABASES:
            arm.fault("databases.put", "", 0, times=1)
        await child.rest()
        child.delete()
        await child.until(lambda child=child: child.get() is None)  # type: ignore[misc]  # a lambda of this round
        server.now = child.now
    static = inside_of(server, CONFIGURATIONS, {"name": "max_connections", "value": "100"})
    static.ask()
    await static.until("PendingRestart")
    server.now = static.now
    server.ask(parameters={"backupRetentionDays": 20}, maintenance={"apply": "Immediate"})
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


_ID = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg/providers/Microsoft.DBforPostgreSQL/flexibleServers/"
SOURCES = {
    "exact id": f"{_ID}theirs",
    "own id ../ neighbour": f"{_ID}pg/../theirs",
    "name#fragment": f"{_ID}theirs#pg",
    "double slash": f"{_ID}/theirs",
    "encoded": f"{_ID}%74heirs",
    "subscription in other case": f"{_ID}theirs".replace(SUBSCRIPTION, "AAAAAAAA-2222-3333-4444-555555555555"),
    "letter case": f"{_ID}theirs".upper(),
    "other subscription": f"{_ID}theirs".replace(SUBSCRIPTION, "99999999-2222-3333-4444-555555555555"),
    "bare name": "theirs",
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
async def test_no_server_of_another_namespace_is_copied(stub: ArmStub, source: str) -> None:
    theirs = answer_of() | {"tags": owner_tags(replace(OWNER, namespace="theirs", namespace_uid="uid-of-theirs"))}
    ours = answer_of() | {"tags": owner_tags(replace(OWNER, namespace_uid="uid"))}
    stub.servers = {"rg/pg": ours, "rg/theirs": theirs, "rg/THEIRS": theirs}
    async with connected(stub) as account:

        def target(name: str) -> Target[Any]:
            copied = target_of(create_mode="PointInTimeRestore", source_server_resource_id=name)
            return replace(copied, owner=replace(OWNER, namespace_uid="uid"))

        with pytest.raises((Terminal, NotThere), match=r"allowAdoption|is ResourceNotFound"):
            await source_of(account, target(source))
        assert await source_of(account, target(f"{_ID}pg")) == f"{_ID}pg"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        pytest.param({"administrator_login": "other"}, "is myadmin, and a restore keeps it", id="another-login"),
        pytest.param({"point_in_time_utc": "2025-01-01T00:00:00Z"}, "keeps nothing from before 2026", id="too-early"),
    ],
)
async def test_restore_that_its_source_cannot_serve_is_refused_before_a_server_is_made(
    stub: ArmStub, fields: dict[str, Any], says: str
) -> None:
    kept = answer_of(backup={"earliestRestoreDate": "2026-02-01T00:00:00+00:00"})
    stub.servers = {"rg/pg": kept | {"tags": owner_tags(replace(OWNER, namespace_uid="uid"))}}
    async with connected(stub) as account:
        copied = target_of(create_mode="PointInTimeRestore", source_server_resource_id=f"{_ID}pg", **fields)
        with pytest.raises(Terminal, match=says):
            await source_of(account, replace(copied, owner=replace(OWNER, namespace_uid="uid")))


async def test_create_is_refused_where_a_server_appeared_since(stub: ArmStub) -> None:
    async with connected(stub) as account:
        with pytest.raises(NotThere):
            await clients(account).external.create(target_of(), Credential("app", "secret"), OPEN)
    assert stub.preconditions == ["*"]
