"""Slow changes, outages and refusals of RDS, over its wire, by a clock that is moved on instead of waited for."""

from __future__ import annotations

import base64
import json
from datetime import timedelta

import pytest

from devcloud.aws.server import Served
from runtime.objects import SECRETS, Object
from tests.providers.aws.rds_world import RdsPaced, RdsWorld
from tests.providers.paced import texts
from tests.support.simulator_control import control

pytestmark = pytest.mark.rds
POLICY: Object = {"deletionPolicy": "Snapshot", "maintenance": {"apply": "Immediate"}}
HOUR = timedelta(hours=1)
CALM = {"Ready=True Available", "Synced=True InSync"}
LARGER: Object = {"parameters": {"dbInstanceClass": "db.t4g.large"}, **POLICY}


async def _ready(served: Served) -> tuple[RdsWorld, RdsPaced]:
    world = RdsWorld(served)
    paced = RdsPaced(world)
    world.ask(**POLICY)
    await paced.settle()
    # The first backup is over as well.
    await paced.until(world.now + HOUR)
    await paced.settle()
    paced.forget()
    return world, paced


async def test_class_change_of_thirty_minutes_crashes_no_pass_and_is_sent_once(stopped: Served) -> None:
    world, paced = await _ready(stopped)
    since, began = len(paced.conditions), world.now
    world.ask(**LARGER)
    paced.wake()
    while not paced.calls("ModifyDBInstance"):
        await paced.step()
    # The steps of a class change take 270 s of themselves.
    control(stopped, "POST", "clock", {"durations": 30 * 60 / 270})
    await paced.settle(most=1000)

    assert timedelta(minutes=30) <= world.now - began < timedelta(minutes=40)
    assert paced.crashes == 0
    assert paced.calls("ModifyDBInstance") == 1
    assert paced.reported(since) == CALM | {"Synced=False CloudBusy", "Reconciling=True CloudBusy"}
    assert (world.get() or {})["status"]["atProvider"]["dbInstanceClass"] == "db.t4g.large"


async def test_outage_of_three_hours_crashes_no_pass_is_reported_once_and_ends_by_itself(stopped: Served) -> None:
    world, paced = await _ready(stopped)
    since, passes, writes = len(paced.conditions), paced.passes, len(world.kube.writes)
    world.refuse("*", "InternalFailure", "The request processing has failed because of an unknown error.")
    await paced.until(world.now + 3 * HOUR)

    assert paced.crashes == 0
    assert paced.passes - passes <= 200
    # Reconciling, and after ten minutes of it Stalled.
    assert len(world.kube.writes) - writes == 2
    reasons = {f"{kind} CloudUnreachable" for kind in ("Synced=False", "Reconciling=True", "Stalled=True")}
    assert paced.reported(since) == CALM | reasons

    world.heal()
    healed = len(paced.conditions)
    await paced.until(world.now + timedelta(minutes=2))
    assert paced.reported(healed) == CALM
    assert (paced.crashes, paced.calls()) == (0, 0)


REFUSALS_OF_CHANGES = {
    "a state that allows none": ("InvalidDBInstanceState", "CloudBusy"),
    "storage at work": ("InvalidParameterCombination", "InvalidValue"),
    "a value": ("InvalidParameterValue", "InvalidValue"),
    "a class that is sold out": ("InsufficientDBInstanceCapacity", "QuotaExceeded"),
    "a quota": ("StorageQuotaExceeded", "QuotaExceeded"),
    "a right": ("AccessDenied", "AccessDenied"),
    "a key": ("KMSKeyNotAccessibleFault", "AccessDenied"),
    "what is not there": ("DBSubnetGroupNotFoundFault", "ReferenceNotFound"),
    "a code that nobody knows": ("SomethingNew", "CloudUnreachable"),
}


@pytest.mark.parametrize("refusal", REFUSALS_OF_CHANGES)
async def test_refused_change_is_sent_at_most_twenty_times_an_hour(stopped: Served, refusal: str) -> None:
    world, paced = await _ready(stopped)
    code, reason = REFUSALS_OF_CHANGES[refusal]
    world.refuse("ModifyDBInstance", code)
    world.ask(**LARGER)
    paced.wake()
    await _refused_for_an_hour(world, paced, "ModifyDBInstance", reason)

    world.heal()
    world.annotate(**{"reconcile-requested-at": "now"})
    paced.wake()
    await paced.settle()
    assert (world.get() or {})["status"]["atProvider"]["dbInstanceClass"] == "db.t4g.large"


SECRET: Object = {"passwordSecretRef": {"name": "own", "key": "password"}}


def _own_password(world: RdsWorld, password: str) -> None:
    data = {"password": base64.b64encode(password.encode()).decode()}
    world.kube.store(SECRETS, {"metadata": {"name": "own", "namespace": "team"}, "data": data})


async def test_new_content_of_a_users_own_secret_is_seen_within_two_minutes(stopped: Served) -> None:
    world = RdsWorld(stopped)
    paced = RdsPaced(world)
    _own_password(world, "Sufficient-1")
    world.ask(**POLICY, **SECRET)
    await paced.until(world.now + HOUR)
    assert (world.reason("Ready"), world.secret["current"]) == ("Available", "Sufficient-1")
    paced.forget()

    _own_password(world, "Sufficient-2")
    await paced.until(world.now + timedelta(minutes=2))
    assert paced.calls("ModifyDBInstance") == 1
    await paced.until(world.now + timedelta(minutes=5))
    assert (world.secret["current"], paced.calls("ModifyDBInstance")) == ("Sufficient-2", 1)


@pytest.mark.parametrize("created", [False, True], ids=["at creation", "later"])
async def test_users_own_password_that_rds_refuses_is_sent_rarely_and_its_repair_is_seen_within_two_minutes(
    stopped: Served, *, created: bool
) -> None:
    world = RdsWorld(stopped)
    paced = RdsPaced(world)
    _own_password(world, "Sufficient-1" if created else "forbidden/slash")
    world.ask(**POLICY, **SECRET)
    await paced.until(world.now + HOUR)
    _own_password(world, "forbidden/slash")
    paced.forget()
    await paced.until(world.now + HOUR)
    action = "ModifyDBInstance" if created else "CreateDBInstance"
    assert (1 if created else 0) <= paced.calls(action) <= 20
    assert world.reason() == "InvalidPassword"
    assert "forbidden/slash" not in str(world.get())

    _own_password(world, "Sufficient-3")
    calls = paced.calls(action)
    await paced.until(world.now + timedelta(minutes=2))
    assert paced.calls(action) == calls + 1
    await paced.until(world.now + HOUR)
    assert (world.reason("Ready"), world.secret["current"], paced.crashes) == ("Available", "Sufficient-3", 0)


@pytest.mark.parametrize("code", ["InvalidParameterValue", "StorageQuotaExceeded"])
async def test_storage_that_is_too_large_leaves_the_database_ready_and_is_withdrawn_before_rds_has_it(
    stopped: Served, code: str
) -> None:
    world, paced = await _ready(stopped)
    world.refuse("ModifyDBInstance", code)
    since = len(paced.conditions)
    world.ask(parameters={"allocatedStorage": 7000}, **POLICY)
    paced.wake()
    await paced.until(world.now + HOUR)
    assert "Ready=True Available" in paced.reported(since)
    assert not any(line.startswith("Ready=False") for line in paced.reported(since))
    assert world.reason() in {"InvalidValue", "QuotaExceeded"}
    assert (world.get() or {})["status"]["atProvider"]["allocatedStorage"] == 20

    world.ask(**POLICY)
    paced.wake()
    await paced.settle()
    assert paced.conditions[-1] == ("Ready=True Available", "Synced=True InSync")


async def test_storage_that_rds_has_stays_and_is_no_error_where_less_is_asked_for(stopped: Served) -> None:
    world, paced = await _ready(stopped)
    world.ask(parameters={"allocatedStorage": 200}, **POLICY)
    paced.wake()
    await paced.until(world.now + 10 * HOUR)
    paced.forget()
    world.ask(parameters={"allocatedStorage": 100}, **POLICY)
    paced.wake()
    await paced.settle()
    status = (world.get() or {})["status"]
    assert (paced.conditions[-1], paced.calls()) == (("Ready=True Available", "Synced=True InSync"), 0)
    (held,) = status["drift"]
    assert (held["path"], held["desired"], held["observed"], held["action"]) == (
        "allocatedStorage", "100", "200", "Tolerated",
    )  # fmt: skip


async def _refused_for_an_hour(world: RdsWorld, paced: RdsPaced, action: str, reason: str) -> None:
    """Let an hour pass in which an action is refused: few calls, few words, no crash, the same text each time."""
    since = len(paced.conditions)
    await paced.until(world.now + HOUR)
    said = {json.dumps(texts(world.get()))}
    versions = len(world.kube.writes)
    await paced.until(world.now + HOUR)
    said.add(json.dumps(texts(world.get())))

    assert paced.crashes == 0
    # Of two hours, each with its own.
    assert paced.calls(action) <= 40
    assert len(world.kube.writes) - versions <= 3 * 20
    assert len(said) == 1
    if reason:
        assert f"Synced=False {reason}" in paced.reported(since)
