"""Requests to RDS that are sent again within a pass, and the time that the account's rate makes them take."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from devcloud.aws.server import Served
from providers.aws.account import AwsAccount, connect
from providers.aws.config import ProviderConfigSpec
from providers.external.client import Fence
from runtime.errors import Throttled, Transient
from tests.providers.aws.rds_world import RdsPaced, RdsWorld
from tests.support.simulator_control import control

pytestmark = pytest.mark.rds


@pytest.fixture(autouse=True)
def throttles_of_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("providers.external.cloud_api.refusals._PAUSE", timedelta(milliseconds=20))


async def _ready(stopped: Served) -> tuple[RdsWorld, RdsPaced]:
    world = RdsWorld(stopped)
    paced = RdsPaced(world)
    world.ask()
    await paced.until(world.now + timedelta(hours=1))
    await paced.settle()
    paced.forget()
    return world, paced


def _fail(stopped: Served, action: str, times: int | None, **fault: Any) -> None:
    control(stopped, "POST", "faults", {"action": action, "times": times, **fault})


THROTTLING = {"code": "Throttling", "message": "Rate exceeded"}
FAULTS: dict[str, dict[str, Any]] = {
    "a throttle": THROTTLING,
    "a fault of AWS": {"code": "InternalFailure"},
    "a connection that breaks": {"kind": "drop"},
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_read_that_fails_once_is_sent_again_in_the_same_pass(stopped: Served, fault: str) -> None:
    world, paced = await _ready(stopped)
    _fail(stopped, "DescribeDBInstances", 1, **FAULTS[fault])
    paced.wake()
    passes = paced.passes
    await paced.step()

    assert (paced.passes - passes, paced.calls("DescribeDBInstances")) == (1, 2)
    assert paced.conditions[-1] == ("Ready=True Available", "Synced=True InSync")
    assert world.get() is not None


@pytest.mark.parametrize(("times", "is_connected"), [(2, True), (3, False)])
async def test_the_question_whose_account_it_is_is_asked_again(
    stopped: Served, times: int, *, is_connected: bool
) -> None:
    world = RdsWorld(stopped)
    _fail(stopped, "GetCallerIdentity", times, **THROTTLING)

    assert await _is_connected(world) is is_connected
    assert RdsPaced(world).calls("GetCallerIdentity") == 3


async def _is_connected(world: RdsWorld) -> bool:
    try:
        async with connect(msgspec.convert(world.config(), ProviderConfigSpec), {"keys": world.keys}) as account:
            assert account.id
    except Throttled:
        return False
    return True


async def test_a_change_whose_connection_breaks_is_not_sent_again(stopped: Served) -> None:
    world, paced = await _ready(stopped)
    config = msgspec.convert(world.config(), ProviderConfigSpec)
    _fail(stopped, "ModifyDBInstance", None, kind="drop")

    async def change(account: AwsAccount) -> None:
        name = world.external_name
        await account.call("modify_db_instance", "change it", DBInstanceIdentifier=name, BackupRetentionPeriod=9)

    async with connect(config, {"keys": world.keys}) as account:
        with pytest.raises(Transient):
            await change(account)

    assert paced.calls("ModifyDBInstance") == 1


_ARN = "arn:aws:rds:eu-west-1:123456789012:db:orders"


async def test_a_change_that_is_about_to_be_sent_is_waited_for(account: AwsAccount) -> None:
    is_checked, may_end = threading.Event(), threading.Event()

    def leads() -> bool:
        is_checked.set()
        may_end.wait(60)
        return False

    fence = Fence(float("inf"), leads, time.monotonic)
    call = asyncio.create_task(
        account.call("remove_tags_from_resource", "untag", fence=fence, ResourceName=_ARN, TagKeys=["team"])
    )
    await asyncio.to_thread(is_checked.wait)
    call.cancel()
    done, _ = await asyncio.wait((call,), timeout=0.2)
    may_end.set()

    assert done == set()
    with pytest.raises(asyncio.CancelledError):
        await call
