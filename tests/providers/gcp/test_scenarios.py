"""What becomes of instances and users by the real reconciler, over the wire of a simulated Cloud SQL."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from devcloud.gcp.server import Served
from providers.gcp import USERS
from tests.providers.gcp.sql_world import SqlWorld, inside_of, ready
from tests.support.simulator_control import control

pytestmark = pytest.mark.slow

PATCH, DELETE = "instances.patch", "instances.delete"


async def test_an_edition_that_is_never_shown_is_sent_by_the_create_alone(served: Served) -> None:
    control(served, "POST", "behaviour", {"dropped_settings": ["edition"]})
    world = await ready(served)
    await world.for_hours(2)
    assert world.changes() == []


async def test_a_stopped_instance_stays_stopped_where_the_spec_says_nothing(served: Served) -> None:
    world = await ready(served, activationPolicy=None)
    world.steer(set={"settings": {"activationPolicy": "NEVER"}})
    await world.rest()
    assert (world.reason("Ready"), world.changes()) == ("DatabaseStopped", [])


async def test_a_protected_instance_waits_in_words_and_goes_once_the_spec_says_so(served: Served) -> None:
    world = await ready(served, deletionProtectionEnabled=True)
    world.delete()
    for _ in range(5):
        await world.step()
        world.pass_time(timedelta(minutes=1))
    assert (world.reason(), world.changes()) == ("DeleteBlocked", [])
    world.ask(parameters={"deletionProtectionEnabled": False})
    await world.rest()
    assert world.get() is None
    assert world.changes() == [PATCH, DELETE]


async def test_a_clone_has_the_labels_and_the_settings_of_its_spec_after_one_patch(served: Served) -> None:
    source = await ready(served, pointInTimeRecoveryEnabled=True, dataDiskSizeGb=30)
    source.pass_time(timedelta(minutes=10))
    time = (datetime.fromisoformat(control(served, "GET", "clock")["now"]) - timedelta(minutes=5)).isoformat()
    clone = SqlWorld(served, spec={**source.spec, "tier": "db-custom-2-7680", "retainedBackups": 3})
    clone.now = source.now
    control(served, "POST", "faults", {"action": "instances.clone", "kind": "drop", "times": 1})
    clone.ask(parameters={"restoreFrom": {"clone": {"sourceInstance": source.external_name, "pointInTime": time}}})
    clone.compose()
    await clone.rest()
    assert (clone.reason("Ready"), clone.reason()) == ("Available", "InSync"), clone.get()
    assert clone.changes() == ["instances.clone", PATCH]
    labels = clone.shown()["settings"]["userLabels"]
    assert labels["fairlead-identity"] != source.shown()["settings"]["userLabels"]["fairlead-identity"]
    assert clone.shown()["settings"]["dataDiskSizeGb"] == "30"

    user = inside_of(clone, USERS, fromBackup=True, database="orders")
    await user.step()
    assert "has no database orders" in user.condition()["message"]
    assert "users.insert" not in user.changes()
    for database, reason in (("postgres", "Available"), ("orders", "DatabaseFailed")):
        user.ask(parameters={"database": database})
        await user.rest()
        assert user.reason("Ready") == reason


async def test_no_login_is_made_or_ready_where_a_password_opens_nothing(served: Served) -> None:
    server = await ready(served)
    user = inside_of(server, USERS)
    await user.rest()
    server.steer(set={"settings": {"connectorEnforcement": "REQUIRED"}})
    user.ask(parameters={"databaseRoles": ["shop_owner"]})
    await user.rest()
    assert user.reason("Ready") == "DatabaseFailed"
    other = inside_of(server, USERS, name="other")
    await other.step()
    assert (other.reason(), other.changes().count("users.insert")) == ("InvalidValue", 1)
