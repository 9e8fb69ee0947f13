"""Slow changes and refusals of RDS, over its wire, by a clock that is moved on instead of waited for."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest

from devcloud.aws.server import Served
from runtime.objects import SECRETS, Object
from tests.providers.aws.rds_world import RdsPaced, RdsWorld

pytestmark = pytest.mark.rds
POLICY: Object = {"deletionPolicy": "Snapshot", "maintenance": {"apply": "Immediate"}}
HOUR = timedelta(hours=1)


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
