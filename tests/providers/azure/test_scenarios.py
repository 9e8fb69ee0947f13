"""What is expected of whoever runs flexible servers for others, shown over ARM's wire; facts are ARM's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from providers.azure.children.kinds import CONFIGURATIONS, DATABASES, FIREWALL_RULES
from providers.external.provider import Kind
from runtime.objects import SECRETS, Key, Object
from tests.providers.azure.arm_world import ArmWorld, inside_of, server_at_rest
from tests.providers.azure.simulated_arm import Arm, path_of
from tests.providers.paced import Paced

pytestmark = pytest.mark.slow
PUT, PATCH, DELETE = "flexibleServers.put", "flexibleServers.patch", "flexibleServers.delete"
NOW: Object = {"apply": "Immediate"}
HOUR = timedelta(hours=1)


async def _inside(server: ArmWorld, kind: Kind[Any, Any], **spec: Any) -> ArmWorld:
    """Return a world of what is in a server, at rest."""
    world = inside_of(server, kind, spec)
    world.ask()
    await world.rest()
    return world


async def test_server_and_what_is_inside_are_made_by_one_call_each_and_taken_away(arm: Arm) -> None:
    server = ArmWorld(arm)
    server.ask()
    await server.rest()
    inside = [
        await _inside(server, DATABASES, name="orders"),
        await _inside(server, FIREWALL_RULES, cidr="203.0.113.0/24"),
        await _inside(server, CONFIGURATIONS, name="work_mem", value="64MB"),
    ]
    assert arm.changes() == [PUT, "databases.put", "firewallRules.put", "configurations.put"]
    assert server.shown()["children"]["configurations"] == {"work_mem": "65536"}
    for world in reversed(inside):
        world.now = max(world.now, server.now)
        world.delete()
        await world.rest()
    assert arm.changes()[4:] == ["configurations.put", "firewallRules.delete", "databases.delete"]
    assert server.shown()["children"]["configurations"] == {}
    server.delete()
    await server.rest()
    assert arm.servers() == {}


async def test_class_change_waits_for_the_window_is_sent_once_and_may_be_taken_back(arm: Arm) -> None:
    window: Object = {"customWindow": "Enabled", "dayOfWeek": 0, "startHour": 3, "startMinute": 0}
    world = await server_at_rest(arm, parameters=window)
    larger = {**window, "skuName": "Standard_D4ds_v5"}
    world.ask(parameters=larger)
    await world.until("WaitingForWindow")
    world.ask(parameters=window)
    await world.rest()
    assert arm.changes() == []

    world.ask(parameters=larger)
    await world.until("WaitingForWindow")
    assert (world.reason("Ready"), arm.changes()) == ("Available", [])
    paced = Paced(world)
    await paced.until(world.now + timedelta(days=1))
    assert (world.reason(), arm.changes(), paced.crashes) == ("InSync", [PATCH], 0)
    assert world.shown()["sku"]["name"] == "Standard_D4ds_v5"
    (call,) = arm.calls(PATCH)
    # Sunday from 03:00 on for an hour, by ARM's clock, which began with the world's.
    assert _hour_of_the_window(world, call["at"])


def _hour_of_the_window(world: ArmWorld, at: str) -> bool:
    offset = world.now - datetime.fromisoformat(world.arm.control("GET", "clock")["now"])
    moment = (datetime.fromisoformat(at) + offset).astimezone(UTC)
    return moment.isoweekday() == 7 and moment.hour == 3


RESTART = "flexibleServers.restart"
WINDOW: Object = {"customWindow": "Enabled", "dayOfWeek": 0, "startHour": 3, "startMinute": 0}


async def test_static_parameter_that_comes_or_goes_restarts_its_server_in_the_window_or_when_it_may(arm: Arm) -> None:
    server = await server_at_rest(arm, parameters=WINDOW)
    world = inside_of(server, CONFIGURATIONS, {"name": "max_connections", "value": "100"})
    world.ask()
    await world.until("PendingRestart")
    world.delete()
    await world.until(lambda: world.get() is None)
    server.now, begun = max(server.now, world.now), arm.changes()
    assert await server.for_hours(2) == {"PendingRestart"}
    assert (server.reason("Ready"), arm.changes()) == ("Available", begun)
    assert "restart is due for max_connections" in server.condition()["message"]
    paced = Paced(server)
    await paced.until(server.now + timedelta(days=1))
    assert (server.reason(), arm.changes()) == ("InSync", [*begun, RESTART])
    (call,) = arm.calls(RESTART)
    assert _hour_of_the_window(server, call["at"])

    world.now = max(server.now, world.now)
    world.ask()
    await world.until("PendingRestart")
    server.now = world.now
    server.ask(parameters=WINDOW, maintenance=NOW)
    await server.rest()
    assert len(arm.calls(RESTART)) == 2


async def test_password_rotates_by_one_patch_that_nothing_shows(arm: Arm) -> None:
    world = await server_at_rest(arm)
    secret = SECRETS, Key("team", "db-credentials")
    before = dict(world.kube.objects[secret]["data"])
    world.ask(passwordRotation={"token": "1"})
    await world.until(lambda: world.status_of().get("rotation", {}).get("token") == "1")
    await world.rest()

    assert arm.changes() == [PATCH]
    (call,) = arm.calls(PATCH)
    assert list(call["params"]["properties"]) == ["administratorLoginPassword"]
    assert world.kube.objects[secret]["data"]["current"] != before["current"]


async def test_snapshot_is_no_policy_and_never_becomes_delete(arm: Arm) -> None:
    """The CRD refuses it; what stands in an object all the same, as an older CRD may have let in, deletes nothing."""
    world = await server_at_rest(arm)
    name = world.name_of()
    world.ask(deletionPolicy="Snapshot")
    world.delete()
    paced = Paced(world)
    await paced.until(world.now + 6 * HOUR)
    assert paced.passes > 1
    assert (arm.changes(), list(arm.servers())) == ([], [name])
    assert world.get() is not None

    world.ask(deletionPolicy="Orphan")
    world.delete()
    await world.rest()
    assert (DELETE in arm.changes(), list(arm.servers())) == (False, [name])


async def test_lock_holds_a_deletion_in_words_until_it_is_lifted(arm: Arm) -> None:
    world = await server_at_rest(arm)
    lock = path_of(world.name_of(), "providers/Microsoft.Authorization/locks/keep")
    arm.person("PUT", lock, {"properties": {"level": "CanNotDelete"}}, api="2020-05-01")
    world.delete()
    await world.until("DeleteBlocked")
    assert "lock" in str(world.condition()["message"])
    assert list(arm.servers()) == [world.name_of()]

    arm.person("DELETE", lock, api="2020-05-01")
    await world.rest()
    assert (world.get(), arm.servers()) == (None, {})


@pytest.mark.parametrize("deleting", [False, True])
async def test_rights_that_are_taken_away_are_named_change_nothing_and_come_back_without_a_restart(
    arm: Arm, *, deleting: bool
) -> None:
    world = await server_at_rest(arm)
    name = world.name_of()
    arm.control("DELETE", f"roles/{arm.principal}")
    if deleting:
        world.delete()
    else:
        world.ask(parameters={"backupRetentionDays": 9})
    await world.for_hours(2)
    assert (world.reason(), list(arm.servers())) == ("AccessDenied", [name])
    assert [call for call in arm.calls() if call["mutating"] and call["outcome"] == "ok"] == []

    arm.allow(arm.principal, arm.served.subscription)
    world.annotate(**{"reconcile-requested-at": "now"})
    await world.rest()
    assert list(arm.servers()) == ([] if deleting else [name])


async def test_robot_that_strips_tags_is_named_and_sending_ends(arm: Arm) -> None:
    world = await server_at_rest(arm)
    arm.behave(tag_robot={"strip": ["fairlead-namespace*"], "every_s": 1})
    paced = Paced(world)
    await paced.until(world.now + timedelta(hours=12))
    assert len(arm.changes()) <= 12
    assert "fairlead-namespace" in str(world.condition()["message"])
    assert list(arm.servers()) == [world.name_of()]


async def test_create_mode_and_source_are_sent_by_the_put_alone(arm: Arm) -> None:
    source = await server_at_rest(arm)
    arm_id = source.shown()["id"]
    world = ArmWorld(
        arm,
        kube=source.kube,
        spec={**source.spec, "createMode": "PointInTimeRestore", "sourceServerResourceId": arm_id},
    )
    world.now = source.now
    world.ask("copy")
    await world.rest("copy")
    world.ask("copy", parameters={"backupRetentionDays": 9, "storageSizeGB": 128})
    await world.rest("copy")

    bodies = [(call["action"], set(call["params"]["properties"])) for call in arm.calls() if call["mutating"]]
    once = {"createMode", "sourceServerResourceId", "pointInTimeUTC"}
    assert [(action, once & names) for action, names in bodies if action == PUT] == [(PUT, once)]
    assert [names & once for action, names in bodies if action == PATCH] == [set()] * (len(bodies) - 1)
    assert len(bodies) >= 2


async def test_what_a_person_stops_stays_stopped_and_an_edit_waits(arm: Arm) -> None:
    world = await server_at_rest(arm)
    arm.person("POST", path_of(world.name_of(), "stop"))
    world.pass_time(HOUR)
    world.ask(parameters={"backupRetentionDays": 9})
    await world.until("DatabaseStopped")
    assert await world.for_hours(2) == {"DatabaseStopped"}
    assert (world.reason("Ready"), arm.changes()) == ("DatabaseStopped", [])

    arm.person("POST", path_of(world.name_of(), "start"))
    world.pass_time(HOUR)
    await world.rest()
    assert arm.changes() == [PATCH]


@pytest.mark.parametrize("state", ["Disabled", "Inaccessible"])
async def test_server_that_is_disabled_or_has_lost_its_key_is_reported_with_who_can_help(arm: Arm, state: str) -> None:
    world = await server_at_rest(arm)
    arm.steer(world.name_of(), state=state)
    world.ask(parameters={"backupRetentionDays": 9})
    await world.until("DatabaseFailed")
    assert await world.for_hours(2) == {"DatabaseFailed"}
    assert arm.changes() == []
    arm.steer(world.name_of(), state="Ready")
    await world.rest()
    assert arm.changes() == [PATCH]


async def test_orphan_stays_with_a_tag_that_says_so(arm: Arm) -> None:
    world = await server_at_rest(arm, deletionPolicy="Orphan")
    name, before = world.name_of(), world.now
    world.delete()
    await world.rest()
    after = world.now
    world.pass_time(HOUR)
    assert arm.changes() == [PATCH]
    assert before.timestamp() <= int(arm.server(name)["tags"]["fairlead-released"]) <= after.timestamp()
