"""Requests to an account share its rate, in turns, and a pause that the cloud asks for pauses them all."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.accounts.rate_limit import CALLS, AccountMeter, Bucket, Budget, Budgets, bucket_of
from providers.external.client import Clients, ExternalList, Fence, FenceClosed, Operation
from providers.external.credential import Credential, Login, LoginAnswer
from providers.external.endpoint import NO_ENDPOINT
from providers.external.metering import UNMETERED, Meter, metered, routine
from providers.external.provider import Provider, Rate, RecordedAccount
from runtime.errors import Throttled, Transient
from tests.providers.toy import CONFIGS, ToyCloud, ToyConfig, dialled, provider_of
from tests.providers.world import World
from tests.support.stepped_clock import SteppedClock

ONE_A_SECOND = Rate(1, 1)


async def nothing() -> None:
    """Make a request that succeeds."""


@given(
    st.floats(0.1, 50),
    st.floats(1, 100),
    st.lists(st.floats(0, 20), min_size=1, max_size=60),
)
def test_bucket_gives_no_more_than_its_burst_and_its_rate_in_any_window(
    per_second: float, burst: float, pauses: list[float]
) -> None:
    bucket, now, taken_at = Bucket(per_second, burst), 0.0, []
    for pause in pauses:
        now += pause
        wait = bucket.wait(now)
        # Nobody waits for longer than one token takes.
        assert 0 <= wait <= 1.0001 / per_second
        now += wait
        bucket = bucket.after(1, now)
        taken_at.append(now)

    for first, last in itertools.combinations_with_replacement(range(len(taken_at)), 2):
        lasted = taken_at[last] - taken_at[first]
        assert last - first + 1 <= burst + per_second * lasted + 1e-3


@pytest.mark.parametrize(
    ("per_second", "burst_s", "at_once"), [(3, 1, 3), (0.1, 1, 1), (25, 10, 250), (10, 0.5, 5), (2.5, 1, 2)]
)
async def test_full_bucket_lets_its_burst_begin_at_once(per_second: float, burst_s: float, at_once: int) -> None:
    time = SteppedClock()
    budget = Budget(Rate(per_second, per_second, timedelta(seconds=burst_s)), time.clock)
    for _ in range(at_once):
        await budget.take("a", is_write=False)
    assert time.waits == []

    await budget.take("a", is_write=False)
    assert sum(time.waits) > 0
    assert bucket_of(per_second, timedelta(seconds=burst_s)).burst >= 1


async def test_writes_wait_for_no_read() -> None:
    time = SteppedClock()
    budget = Budget(ONE_A_SECOND, time.clock)
    await budget.take("a", is_write=False)
    await budget.take("a", is_write=True)
    assert time.waits == []
    await budget.take("a", is_write=True)
    assert time.waits == [1.0]


async def test_user_with_many_requests_keeps_no_other_from_its_turn() -> None:
    time = SteppedClock()
    budget, taken = Budget(ONE_A_SECOND, time.clock), list[str]()

    async def take(user: str) -> None:
        await budget.take(user, is_write=False)
        taken.append(user)

    async with asyncio.TaskGroup() as group:
        for _ in range(50):
            group.create_task(take("many"))
        await asyncio.sleep(0)
        for _ in range(3):
            group.create_task(take("few"))

    assert len(taken) == 53
    # From the moment in which both wait they take turns.
    first = taken.index("few")
    assert first <= 4
    assert taken[first : first + 5] == ["few", "many", "few", "many", "few"]


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=40))
def test_nobody_is_passed_over_twice_by_the_same_user(users: list[str]) -> None:
    budget, taken = Budget(ONE_A_SECOND, SteppedClock().clock), list[str]()

    async def take(user: str) -> None:
        await budget.take(user, is_write=False)
        taken.append(user)

    async def take_all() -> None:
        async with asyncio.TaskGroup() as group:
            for user in users:
                group.create_task(take(user))

    asyncio.run(take_all())

    assert sorted(taken) == sorted(users)
    # The first two had no rival. Between two turns of a user who waits each other one has one turn at most.
    waiting = taken[2:]
    for index, user in enumerate(waiting):
        later = waiting[index + 1 :]
        between = later[: later.index(user)] if user in later else []
        assert len(set(between)) == len(between)


async def test_request_that_is_given_up_takes_no_token_and_holds_nobody_up() -> None:
    time = SteppedClock()
    budget, gate = Budget(ONE_A_SECOND, time.clock), asyncio.Event()

    async def until_opened(_seconds: float) -> None:
        await gate.wait()
        time.now += 1

    budget._clock = replace(time.clock, sleep=until_opened)
    await budget.take("a", is_write=False)
    first, second, third = (asyncio.create_task(budget.take(user, is_write=False)) for user in "abc")
    await asyncio.sleep(0)
    first.cancel()
    second.cancel()
    await asyncio.wait({first, second})
    gate.set()
    await asyncio.wait_for(third, 5)

    assert time.now == 1001.0


async def test_pause_holds_reads_and_writes_of_all_who_reach_the_account() -> None:
    time = SteppedClock()
    budget = Budget(Rate(100, 100), time.clock)
    first, second = (AccountMeter("toy", user, budget) for user in ("first", "second"))

    async def throttle() -> None:
        raise Throttled("slow down", after=timedelta(seconds=5))

    with pytest.raises(Throttled):
        await first.write("change", throttle)
    await second.read("look", nothing)
    await second.write("change", nothing)

    assert time.waits == [5.0]


async def test_long_pause_is_left_to_the_queue() -> None:
    time = SteppedClock()
    budget = Budget(Rate(100, 100), time.clock)
    budget.pause(timedelta(seconds=60))

    with pytest.raises(Throttled) as refused:
        await budget.take("a", is_write=False)

    assert (refused.value.after, time.waits) == (timedelta(seconds=60), [])
    time.now += 55
    await budget.take("a", is_write=False)
    assert time.waits == [5.0]


async def test_pause_that_is_shorter_does_not_end_a_longer_one() -> None:
    time = SteppedClock()
    budget = Budget(Rate(100, 100), time.clock)
    budget.pause(timedelta(seconds=9))
    budget.pause(timedelta(seconds=1))

    await budget.take("a", is_write=True)

    assert time.waits == [9.0]


async def test_write_whose_time_is_over_before_its_token_comes_is_not_made() -> None:
    time, made = SteppedClock(), list[str]()
    budget = Budget(Rate(100, 1), time.clock)
    meter = AccountMeter("toy", "one", budget)
    fence = Fence(time.now, lambda: True, lambda: time.now)

    async def change() -> None:
        made.append("change")

    # There is a token: the transport asks the fence itself.
    await meter.write("change", change, fence)
    budget._clock = replace(time.clock, sleep=asyncio.sleep)
    with pytest.raises(FenceClosed):
        await meter.write("change", change, fence)

    assert made == ["change"]
    # No token was lost by it.
    budget._clock = time.clock
    await budget.take("one", is_write=True)
    assert sum(time.waits) == pytest.approx(1.0)


async def test_each_code_of_an_operation_begins_at_0_before_it_is_answered() -> None:
    meter, codes = AccountMeter("toy-of-codes", "one", Budget(Rate(100, 100))), dict[str, float]()

    async def look() -> None:
        for family in CALLS.collect():
            for sample in family.samples:
                if sample.labels["provider"] == "toy-of-codes" and sample.name.endswith("_total"):
                    codes[sample.labels["code"]] = sample.value

    await meter.read("look", look)

    assert codes == dict.fromkeys(("ok", "error", "transient", "throttled", "conflict", "blocked", "terminal"), 0.0)


async def test_requests_are_counted_by_their_answers() -> None:
    meter = AccountMeter("toy-of-rates", "one", Budget(Rate(100, 100)))

    async def fail() -> None:
        raise Transient("no answer")

    async def crash() -> None:
        raise ValueError("x")

    await meter.read("look", nothing)
    await meter.read("look", nothing)
    with pytest.raises(Transient):
        await meter.write("look", fail)
    with pytest.raises(ValueError, match="x"):
        await meter.read("look", crash)

    counted = {code: CALLS.labels("toy-of-rates", "look", code)._value.get() for code in ("ok", "transient", "error")}
    assert counted == {"ok": 2, "transient": 1, "error": 1}


class Busy:
    """A cloud whose methods are its requests."""

    async def list(self) -> ExternalList:
        return ExternalList({}, complete=True)

    async def adopt(self, *_arguments: object) -> Operation:
        return Operation("op-1", "Adopt")

    async def disable(self, *_arguments: object) -> Operation:
        return Operation("op-2", "Disable")

    async def try_login(self, _endpoint: object, _credential: object) -> LoginAnswer:
        return LoginAnswer(Login.OK)


def metered_clients(meter: Meter) -> Clients[Any, Any]:
    cloud: Any = Busy()
    return metered(Clients(cloud, cloud, logins=cloud, try_login=cloud.try_login), meter)


async def test_methods_of_a_metered_cloud_take_a_token_each_and_a_login_takes_none() -> None:
    time = SteppedClock()
    clients = metered_clients(AccountMeter("toy", "one", Budget(ONE_A_SECOND, time.clock)))
    assert (clients.backups, clients.operations) == (None, None)
    assert clients.try_login is not None
    for _ in range(50):
        assert (await clients.try_login(NO_ENDPOINT, Credential("app", "secret"))).login is Login.OK
    assert time.waits == []

    for _ in range(3):
        await clients.account.list()
    assert sum(time.waits) == 2.0


async def test_no_operation_of_a_metered_cloud_is_dropped() -> None:
    clients, argument = metered_clients(UNMETERED), object()
    anything: Any = argument
    assert clients.logins is not None
    adopted = await clients.external.adopt(anything, anything, anything)
    disabled = await clients.logins.disable(anything, anything, "app", anything)
    assert [operation.id for operation in (adopted, disabled) if operation is not None] == ["op-1", "op-2"]


class Accounts:
    """Toys in accounts, each ProviderConfig with one; their connections ask through the meter whose it is."""

    def __init__(self, accounts: Mapping[str, tuple[str, str]], rate: Rate) -> None:
        self.time, self.accounts, self.meters = SteppedClock(), accounts, dict[str, Meter]()
        self.world = World(ToyCloud(), provider=self.provider(rate))
        for name in accounts:
            meta = {"name": name, "generation": 1}
            self.world.kube.store(CONFIGS, {"metadata": meta, "spec": {"allowedNamespaces": {"selector": {}}}})
        self.world.accounts._budgets = Budgets(rate, self.time.clock)
        self.world.feed()

    def provider(self, rate: Rate) -> Provider[ToyConfig]:
        names = iter(self.accounts)
        regions = iter(region for _, region in self.accounts.values())

        async def dial(_recorded: RecordedAccount, meter: Meter) -> ToyCloud:
            name = next(names)
            self.meters[name] = meter
            await meter.read("whoami", nothing)
            return ToyCloud(account=self.accounts[name][0])

        toys = provider_of(ToyCloud())
        return replace(dialled(toys, dial), rate=rate, quota_of=lambda _config: next(regions))

    async def connect(self) -> None:
        """Connect one ProviderConfig after the other."""
        for name in self.accounts:
            await self.world.accounts.connect(name)

    async def read(self, *names: str) -> float:
        """Make a request by each ProviderConfig; return how long that took."""
        began = self.time.now
        for name in names:
            await self.meters[name].read("look", nothing)
        return self.time.now - began


async def test_configs_of_one_account_share_its_budget_once_it_is_known() -> None:
    accounts = Accounts({"a": ("1", "eu"), "b": ("1", "eu"), "c": ("2", "eu"), "d": ("1", "us")}, Rate(1, 1))
    await accounts.connect()
    # Each asked on its own who it is.
    assert accounts.time.waits == []

    assert await accounts.read("c", "d") == pytest.approx(1.0)
    # Two of one account and region have asked, within its burst of one: one of the requests is owed still.
    assert await accounts.read("a") == pytest.approx(1.0)
    assert await accounts.read("b") == pytest.approx(1.0)


async def test_connection_that_is_made_anew_begins_with_no_new_budget() -> None:
    accounts = Accounts({"a": ("1", "eu")}, Rate(1, 1))
    await accounts.connect()
    meter = accounts.meters["a"]
    spent = await accounts.read("a", "a", "a")
    accounts.accounts, accounts.world.accounts._provider = {"a": ("1", "eu")}, accounts.provider(Rate(1, 1))
    accounts.world.accounts.forget("a")
    await accounts.connect()
    again = await accounts.read("a")

    assert accounts.meters["a"] is not meter
    assert [spent, again] == pytest.approx([3.0, 2.0])


async def test_what_somebody_waits_for_takes_turns_with_the_routine_of_its_own_config() -> None:
    time = SteppedClock()
    meter, made = AccountMeter("toy", "default", Budget(ONE_A_SECOND, time.clock)), list[str]()

    async def read(name: str, *, is_routine: bool) -> None:
        async def note() -> None:
            made.append(name)

        with routine(is_routine=is_routine):
            await meter.read("look", note)

    async with asyncio.TaskGroup() as group:
        for _ in range(40):
            group.create_task(read("resync", is_routine=True))
        await asyncio.sleep(0)
        for _ in range(4):
            group.create_task(read("edit", is_routine=False))

    first = made.index("edit")
    assert first <= 4
    assert made[first : first + 7] == ["edit", "resync", "edit", "resync", "edit", "resync", "edit"]
    assert (made.count("edit"), made.count("resync")) == (4, 40)
