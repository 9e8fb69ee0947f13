"""Edits that wait, that cannot be, that are taken back; what is stopped, hidden or reserved meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from devcloud.gcp.server import Served
from providers.external.ownership import identity_of
from providers.gcp import DATABASES, USERS
from providers.gcp.names import name_of
from tests.providers.gcp.simulated_sql import REGION, SimulatedSql
from tests.providers.gcp.sql_world import SqlWorld, inside_of, ready

pytestmark = pytest.mark.slow

INSERT, PATCH = "instances.insert", "instances.patch"
_WINDOW = {"maintenanceDay": 7, "maintenanceHour": 3}
_SWEEPS = 100


async def test_100_sweeps_write_nothing_whatever_the_spelling_and_whatever_google_moved_on(served: Served) -> None:
    spelled: dict[str, Any] = {
        **_WINDOW,
        "zone": "europe-west1-b",
        "secondaryZone": "europe-west1-c",
        "authorizedNetworks": ["203.0.113.0/24", "198.51.100.7/32"],
        "databaseFlags": {"work_mem": "64MB", "log_connections": "true"},
        "maintenanceVersion": "POSTGRES_16_9.R20250302.00_31",
        "userLabels": {"team": "shop"},
    }
    world = await ready(served, **spelled)
    backups = {"settings": {"backupConfiguration": {"startTime": "09:00"}, "userLabels": {"cost": "42"}}}
    world.steer(set={"maintenanceVersion": "POSTGRES_16_10.R20260101.00_01", **backups})
    world.steer(set={"databaseInstalledVersion": "POSTGRES_16_10", "newFieldOfGoogles": {"is": "unknown"}})
    place = {"zone": "europe-west1-c", "secondaryZone": "europe-west1-b"}
    networks = [{"value": "198.51.100.7"}, {"value": "203.0.113.0/24"}]
    moved = {
        "tier": "DB-CUSTOM-1-3840",
        "locationPreference": place,
        "ipConfiguration": {"authorizedNetworks": networks},
    }
    world.steer(set={"settings": moved})
    world.steer(grow=60)
    await world.rest()
    tolerated = {entry["path"] for entry in world.status["drift"] if entry["action"] == "Tolerated"}
    assert tolerated == {"dataDiskSizeGb", "maintenanceVersion"}

    listing, writes = (await world.accounts.connect("default")).clients.account, len(world.kube.writes)
    for _ in range(_SWEEPS):
        await listing.list()
        await world.step()
        world.pass_time(timedelta(minutes=1))
    assert (world.changes(), len(world.kube.writes) - writes) == ([], 0)
    assert (world.reason("Ready"), world.reason()) == ("Available", "InSync")


async def test_a_disk_is_never_made_smaller_and_a_larger_wish_is_one_growth(served: Served) -> None:
    world = await ready(served)
    world.steer(grow=60)
    world.ask(parameters={"dataDiskSizeGb": 80})
    await world.rest()
    assert (world.changes(), world.shown()["settings"]["dataDiskSizeGb"]) == ([PATCH], "80")
    world.ask(parameters={"dataDiskSizeGb": 30, "storageAutoResize": False})
    await world.rest()
    assert "never shrinks a disk" in world.condition()["message"]
    assert world.shown()["settings"]["dataDiskSizeGb"] == "80"


async def test_an_edit_waits_for_the_window_and_one_that_is_taken_back_sends_nothing(served: Served) -> None:
    world = await ready(served, **_WINDOW)
    world.ask(parameters={**_WINDOW, "tier": "db-custom-2-7680"})
    await world.rest()
    assert (world.reason(), world.reason("Ready")) == ("WaitingForWindow", "Available")
    world.ask(parameters=_WINDOW)
    await world.rest()
    assert (world.reason(), world.changes()) == ("InSync", [])

    world.ask(parameters={**_WINDOW, "tier": "db-custom-2-7680"})
    await world.rest()
    while not (world.now.isoweekday() == 7 and world.now.hour == 3):
        world.pass_time(timedelta(minutes=30))
    await world.rest()
    assert (world.reason(), world.changes()) == ("InSync", [PATCH])


async def test_a_static_flag_waits_for_the_window_and_a_dynamic_one_does_not(served: Served) -> None:
    world = await ready(served)
    world.ask(parameters={"databaseFlags": {"max_connections": "200", "work_mem": "64MB"}})
    await world.rest()
    assert (world.reason(), world.changes()) == ("WaitingForWindow", [PATCH])
    assert [flag["name"] for flag in world.shown()["settings"]["databaseFlags"]] == ["work_mem"]


async def test_a_change_that_is_shown_very_late_is_made_once(served: Served) -> None:
    """What is sent again meanwhile names a version of the settings that is over, and is refused for it."""
    world = await ready(served)
    world.behave(get_lag_s=120, list_lag_s=120)
    world.ask(parameters={"retainedBackups": 14})
    reasons = set()
    for _ in range(40):
        await world.step()
        reasons.add(world.reason())
        world.pass_time(timedelta(seconds=10))
    outcomes = [(call["action"], call["outcome"]) for call in SimulatedSql(served).changes()]
    assert world.reason() == "InSync"
    assert (outcomes[0], set(outcomes[1:]) <= {(PATCH, "staleData")}) == ((PATCH, "ok"), True)
    assert reasons != {"InSync"}


async def test_a_state_that_nobody_knows_is_said_and_waited_out(served: Served) -> None:
    world = await ready(served)
    world.steer(state="REARRANGING")
    world.ask(parameters={"dataDiskSizeGb": 40})
    await world.for_hours(0.5)
    assert "a state that is not known here" in world.condition()["message"]
    assert (world.reason(), world.changes()) == ("Updating", [])
    world.steer(state="RUNNABLE")
    await world.rest()
    assert (world.reason(), world.changes()) == ("InSync", [PATCH])


async def test_an_operation_of_somebody_else_is_waited_out(served: Served) -> None:
    world, stranger = await ready(served), SimulatedSql(served)
    stranger.call(
        "PATCH", f"instances/{world.external_name}", {"settings": {"backupConfiguration": {"startTime": "05:00"}}}
    )
    world.ask(parameters={"retainedBackups": 14})
    user = inside_of(world, USERS)
    for _ in range(3):
        await world.step()
        await user.step()
    assert {world.reason(), user.reason()} == {"CloudBusy"}
    world.pass_time(timedelta(minutes=2))
    await world.rest()
    await user.rest()
    done = [call["action"] for call in stranger.changes() if call["outcome"] == "ok"]
    assert (world.reason(), user.reason(), sorted(done)) == ("InSync", "InSync", [PATCH, "users.insert"])


async def test_a_name_that_is_still_reserved_is_tried_again_rarely_and_used_once_it_is_free(served: Served) -> None:
    world, stranger = SqlWorld(served), SimulatedSql(served)
    world.ask()
    name = name_of(identity_of(world.get() or {}), "fl-")
    stranger.create(name, {})
    world.pass_time(timedelta(minutes=10))
    stranger.call("DELETE", f"instances/{name}", None)
    world.pass_time(timedelta(minutes=10))
    await world.for_hours(6)
    assert (world.reason(), world.reason("Ready")) == ("NameTaken", "NameTaken")
    assert "reserved" in world.condition()["message"]
    assert 1 <= len(world.changes()) <= 6 * 12

    world.pass_time(timedelta(days=8))
    world.forget()
    await world.for_hours(2)
    assert (world.reason("Ready"), world.changes()) == ("Available", [INSERT])


async def test_a_database_that_appears_before_its_create_arrives_is_not_ours(served: Served) -> None:
    server, stranger = await ready(served), SimulatedSql(served)
    databases = f"instances/{server.external_name}/databases"
    database = inside_of(server, DATABASES)
    # It is there and not shown, as if it had been made after the look.
    stranger.call("POST", databases, {"name": "app"})
    database.fail("databases.get", "notFound", status=404, times=2)
    await database.for_hours(1)
    sent = [call["action"] for call in stranger.changes()]
    assert (database.reason(), sent) == ("NotOwned", ["databases.insert"])
    database.delete()
    await database.rest()
    assert (database.get(), [call["action"] for call in stranger.changes()]) == (None, sent)


async def test_a_region_that_falls_silent_delays_no_change_of_what_is_seen(served: Served) -> None:
    world = await ready(served)
    world.behave(unreachable_regions=[REGION])
    world.ask(parameters={"retainedBackups": 14})
    await world.rest()
    assert (world.reason(), world.changes()) == ("InSync", [PATCH])
