"""What becomes of instances whose states, queues and protection stand in the way, over RDS's wire, by one clock."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.credentials import Credentials

from devcloud.aws.server import Served
from providers.aws.account import Clients
from tests.providers.aws.rds_world import at_rest
from tests.support.simulator_control import control

pytestmark = pytest.mark.rds

HOUR = timedelta(hours=1)


async def test_protected_instance_waits_in_words_and_goes_once_the_spec_says_so(stopped: Served) -> None:
    world, paced = await at_rest(stopped, {"deletionProtection": True})
    world.delete()
    paced.wake()
    await paced.until(world.now + HOUR)
    assert (world.reason(), paced.changes()) == ("DeleteBlocked", [])
    assert "deletionProtection" in world.condition()["message"]
    world.ask(parameters={"deletionProtection": False})
    paced.wake()
    await paced.settle()
    assert world.get() is None


@pytest.mark.parametrize(
    ("struck", "reason", "says", "healed"),
    [
        ({"status": "stopped"}, "DatabaseStopped", "start it", {"status": "available"}),
        ({"status": "rewiring-the-flux"}, "CloudBusy", "rewiring-the-flux", {"status": "available"}),
    ],
    ids=["stopped", "a status that nobody knows"],
)
async def test_edit_waits_for_a_state_that_takes_no_change(
    stopped: Served, struck: dict[str, Any], reason: str, says: str, healed: dict[str, Any]
) -> None:
    world, paced = await at_rest(stopped)
    world.steer(**struck)
    world.ask(parameters={"backupRetentionPeriod": 5})
    paced.wake()
    await paced.until(world.now + HOUR / 2)
    assert (world.reason(), paced.changes()) == (reason, [])
    assert says in world.condition()["message"]
    world.steer(**healed)
    paced.wake()
    await paced.settle()
    assert [action for action, _ in paced.changes()] == ["ModifyDBInstance"]


async def test_growth_on_full_storage_makes_nothing_that_waits(stopped: Served) -> None:
    world, paced = await at_rest(stopped)
    world.ask(parameters={"dbInstanceClass": "db.t4g.small"})
    paced.wake()
    await paced.until(world.now + HOUR)
    assert (world.reason(), world.condition("Ready")["status"]) == ("WaitingForWindow", "True")
    assert world.status["atProvider"]["pendingModifiedValues"] == {"DBInstanceClass": "db.t4g.small"}

    world.steer(status="storage-full")
    world.ask(parameters={"dbInstanceClass": "db.t4g.small", "allocatedStorage": 40})
    paced.wake()
    await paced.until(world.now + HOUR)
    assert world.reason() == "DatabaseFailed"
    assert "would also make what waits" in world.condition()["message"]

    world.ask(parameters={"allocatedStorage": 40})
    paced.wake()
    await paced.until(world.now + HOUR)
    assert {call["ApplyImmediately"] for _, call in paced.changes()[:-1]} == {False}
    assert (world.shown()["DBInstanceClass"], world.shown()["AllocatedStorage"]) == ("db.t4g.micro", 40)


async def test_what_a_person_queued_is_not_made_with_a_growth(stopped: Served) -> None:
    world, paced = await at_rest(stopped)
    person = Clients("eu-west-1", stopped.url).make("rds", Credentials(*stopped.credentials))
    person.modify_db_instance(DBInstanceIdentifier=world.external_name, MultiAZ=True, ApplyImmediately=False)
    paced.forget()
    world.ask(parameters={"allocatedStorage": 40})
    paced.wake()
    await paced.until(world.now + HOUR)
    assert (world.reason(), world.shown()["MultiAZ"]) == ("PendingChangesInTheWay", False)
    assert "multiAZ" in world.condition()["message"]
    assert [call["ApplyImmediately"] for _, call in paced.changes()] == [False]


async def test_static_parameter_waits_for_a_restart_that_only_its_user_makes(stopped: Served) -> None:
    world, paced = await at_rest(stopped)
    (group,) = world.shown()["DBParameterGroups"]
    for status, reason in (("pending-reboot", "PendingRestart"), ("in-sync", "InSync")):
        world.steer(set={"DBParameterGroups": [{**group, "ParameterApplyStatus": status}]})
        paced.wake()
        await paced.until(world.now + HOUR)
        assert (world.reason(), paced.changes()) == (reason, [])


async def test_robot_that_takes_our_tags_is_named_and_not_fought_for_ever(stopped: Served) -> None:
    world, paced = await at_rest(stopped)
    control(stopped, "POST", "behaviour", {"tag_robot": {"strip": ["fairlead-*"], "every_s": 1}})
    paced.wake()
    await paced.until(world.now + 3 * HOUR)
    assert world.reason() == "InvalidValue"
    assert "fairlead-installation" in world.condition()["message"]
    assert {action for action, _ in paced.changes()} == {"AddTagsToResource"}
    assert len(paced.changes()) <= 6
