"""Calls to an account share its rate, and a pause that the cloud asks for pauses them all."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from providers.accounts.rate_limit import Budget, budget, budgets_of, metered
from providers.external.client import AccountClient, Clients, Fence, Logins, Sweep
from providers.external.credential import Credential, Login
from providers.external.provider import Rate
from runtime.errors import Throttled


class Busy:
    """A cloud that counts, and throttles while it is told to."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.throttle = timedelta(0)

    async def observe_all(self) -> Sweep:
        self.calls.append("observe_all")
        if self.throttle:
            raise Throttled("slow down", after=self.throttle)
        return Sweep({}, complete=True)

    async def disable(self, _target: object, _username: str, _fence: Fence) -> None:
        self.calls.append("disable")

    async def login(self, _target: object, _credential: object) -> Login:
        self.calls.append("login")
        return Login.OK


def metered_clients(cloud: Any, budgets: tuple[Budget, Budget]) -> tuple[AccountClient[Any], Logins[Any]]:
    clients = metered("toy", Clients(cloud, cloud, logins=cloud), budgets)
    assert clients.logins is not None
    assert (clients.backups, clients.operations) == (None, None)
    return clients.account, clients.logins


async def test_a_pause_holds_reads_and_not_writes() -> None:
    cloud = Busy()
    reads, writes = budgets_of(Rate(100, 100))
    account, logins = metered_clients(cloud, (reads, writes))
    cloud.throttle = timedelta(seconds=0.3)
    with pytest.raises(Throttled):
        await account.observe_all()
    cloud.throttle = timedelta(0)
    paused_until = reads.paused_until
    fence: Any = None

    await logins.disable(fence, "app", fence)
    assert time.monotonic() < paused_until
    await account.observe_all()
    assert time.monotonic() >= paused_until

    assert cloud.calls == ["observe_all", "disable", "observe_all"]


async def test_a_login_to_a_database_is_no_call_to_the_account() -> None:
    cloud = Busy()
    reads, writes = budgets_of(Rate(1, 1))
    _, logins = metered_clients(cloud, (reads, writes))
    reads.pause(timedelta(hours=1))
    target: Any = None

    async with asyncio.timeout(5):
        answers = [await logins.login(target, Credential("app", "secret")) for _ in range(50)]

    assert set(answers) == {Login.OK}


async def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    account = budget(10)
    account.pause(timedelta(seconds=60))
    until = account.paused_until

    account.pause(timedelta(seconds=1))

    assert account.paused_until == until


async def test_a_bucket_holds_one_seconds_worth() -> None:
    account = budget(3)

    assert [account.limiter.has_capacity(3), account.limiter.has_capacity(4)] == [True, False]
    assert (budget(0.1).limiter.max_rate, budget(0.1).limiter.time_period) == (1.0, 10.0)
