"""Requests to RDS against the time that the account's rate makes them take; a pass that is cancelled in a call."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from devcloud.aws.server import Served
from providers.accounts.rate_limit import AccountMeter, Budget, Budgets
from providers.aws.account import AwsAccount
from providers.external.client import Fence
from providers.external.provider import Rate
from runtime.objects import Object
from tests.providers.aws.rds_world import RdsWorld
from tests.support.simulator_control import control
from tests.support.stepped_clock import SteppedClock

pytestmark = pytest.mark.rds
RATE = Rate(reads_per_second=1, writes_per_second=0.5)


def _calls(served: Served, action: str) -> int:
    return sum(call["action"] == action for call in control(served, "GET", "audit?since=0"))


class SharedAccount(RdsWorld):
    """Two ProviderConfigs with one account's keys, and a clock by which its rate goes."""

    def __init__(self, served: Served) -> None:
        super().__init__(served)
        self.time = SteppedClock()
        self.accounts._budgets = Budgets(RATE, self.time.clock)
        meta: Object = {"name": "second", "generation": 1}
        spec: Object = {"allowedNamespaces": {"selector": {}}, **self.config()}
        self.kube.store(self.provider.config_resource, {"metadata": meta, "spec": spec})
        self.feed()

    async def ask_whoami(self, config: str, times: int) -> None:
        """Ask so many times whose account it is, as one of the two."""
        account = await self.accounts.connect(config)
        for _ in range(times):
            await account.clients.account.whoami()


async def test_two_configs_of_one_account_make_no_more_requests_than_its_rate_allows(stopped: Served) -> None:
    world = SharedAccount(stopped)
    began = world.time.now
    await world.ask_whoami("default", 10)
    await world.ask_whoami("second", 10)
    await world.ask_whoami("default", 1)
    requests, lasted = _calls(stopped, "GetCallerIdentity"), world.time.now - began

    # Two by each connection, before its account was known.
    assert requests == 25
    # One at once, and the second connection's first before it was known whose it is.
    assert lasted == pytest.approx(requests - 2)


async def test_list_takes_a_token_for_each_of_its_pages(account: AwsAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("providers.aws.account._PAGE", 20)
    for number in range(45):
        await account.call("create_db_parameter_group", "make it", DBParameterGroupName=f"group-{number}",
                           DBParameterGroupFamily="postgres16", Description="one of many")  # fmt: skip
    time = SteppedClock()
    account.meter = AccountMeter("aws", "default", Budget(RATE, time.clock))
    before, groups = time.now, "DBParameterGroups"
    listed = [group async for group in account.pages("describe_db_parameter_groups", "list them", groups)]

    assert len(listed) >= 45
    pages = -(-len(listed) // 20)
    assert pages >= 3
    assert time.now - before == pytest.approx(pages - 1)


async def test_changes_wait_for_the_rate_of_changes(account: AwsAccount) -> None:
    time = SteppedClock()
    account.meter = AccountMeter("aws", "default", Budget(RATE, time.clock))
    for number in range(3):
        await account.call("create_db_parameter_group", "make it", DBParameterGroupName=f"changed-{number}",
                           DBParameterGroupFamily="postgres16", Description="one of few")  # fmt: skip
    assert sum(time.waits) == pytest.approx(4.0)


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
