"""Calls to an account share its rate, and a pause that the cloud asks for pauses them all."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from providers.accounts.rate_limit import Budget, budget, budgets_of, metered
from providers.external.client import Account, Clients, ExternalList, Fence, Logins
from providers.external.credential import Credential, Login, LoginAnswer
from providers.external.endpoint import NO_ENDPOINT
from providers.external.provider import Rate
from runtime.errors import Throttled


class Busy:
    """A cloud that counts, and throttles on request."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.throttle = timedelta(0)

    async def list(self) -> ExternalList:
        self.calls.append("observe_all")
        if self.throttle:
            raise Throttled("slow down", after=self.throttle)
        return ExternalList({}, complete=True)

    async def disable(self, _target: object, _observed: object, _username: str, _fence: Fence) -> None:
        self.calls.append("disable")

    async def try_login(self, _endpoint: object, _credential: object) -> LoginAnswer:
        self.calls.append("login")
        return LoginAnswer(Login.OK)


def clients_of(cloud: Any) -> Clients[Any, Any]:
    return Clients(cloud, cloud, logins=cloud, try_login=cloud.try_login)


def metered_clients(cloud: Any, budgets: tuple[Budget, Budget]) -> tuple[Account[Any], Logins[Any, Any]]:
    clients = metered("toy", clients_of(cloud), budgets)
    assert clients.logins is not None
    assert (clients.backups, clients.operations) == (None, None)
    return clients.account, clients.logins


async def test_pause_holds_reads_and_not_writes() -> None:
    cloud = Busy()
    reads, writes = budgets_of(Rate(100, 100))
    account, logins = metered_clients(cloud, (reads, writes))
    cloud.throttle = timedelta(seconds=0.3)
    with pytest.raises(Throttled):
        await account.list()
    cloud.throttle = timedelta(0)
    paused_until = reads.paused_until
    fence: Any = None

    await logins.disable(fence, fence, "app", fence)
    assert time.monotonic() < paused_until
    await account.list()
    assert time.monotonic() >= paused_until

    assert cloud.calls == ["observe_all", "disable", "observe_all"]


async def test_login_to_a_database_is_no_call_to_the_account() -> None:
    cloud = Busy()
    reads, writes = budgets_of(Rate(1, 1))
    clients = metered("toy", clients_of(cloud), (reads, writes))
    assert clients.try_login is not None
    reads.pause(timedelta(hours=1))

    async with asyncio.timeout(5):
        answers = [await clients.try_login(NO_ENDPOINT, Credential("app", "secret")) for _ in range(50)]

    assert {answer.login for answer in answers} == {Login.OK}


async def test_pause_that_is_shorter_does_not_end_a_longer_one() -> None:
    account = budget(10)
    account.pause(timedelta(seconds=60))
    until = account.paused_until

    account.pause(timedelta(seconds=1))

    assert account.paused_until == until


async def test_bucket_holds_the_calls_of_one_second() -> None:
    account = budget(3)

    assert [account.limiter.has_capacity(3), account.limiter.has_capacity(4)] == [True, False]
    assert (budget(0.1).limiter.max_rate, budget(0.1).limiter.time_period) == (1.0, 10.0)
