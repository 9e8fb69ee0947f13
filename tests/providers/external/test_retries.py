"""Which calls are sent again within a pass, and which endpoints are left alone since they gave no answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

import pytest

from providers.accounts.rate_limit import CALLS, AccountMeter, Budget
from providers.external.credential import NO_ANSWER, Credential, Login, LoginAnswer
from providers.external.endpoint import VERIFIED, Endpoint
from providers.external.provider import Rate
from providers.external.reachability import Reachability
from providers.external.retries import CONNECTS, READS, Policy, repeated
from providers.external.sql.session import Unreached
from runtime.errors import Blocked, Conflict, Failure, Terminal, Throttled, Transient
from tests.support.stepped_clock import SteppedClock

MOMENTARY = Transient("the connection broke", is_momentary=True)


def throttled(seconds: float) -> Throttled:
    return Throttled("slow down", after=timedelta(seconds=seconds))


@dataclass
class Call:
    """Fails with these, one after the other, and answers then; remembers how long was waited before each request."""

    failures: list[BaseException]
    waits: list[float] = field(default_factory=list)
    requests: int = 0

    async def __call__(self) -> str:
        self.requests += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"

    async def sleep(self, seconds: float) -> None:
        self.waits.append(round(seconds, 3))

    async def made(self, policy: Policy = READS, chance: float = 0.0) -> str:
        return await repeated(self, policy, sleep=self.sleep, chance=lambda: chance)


@dataclass(frozen=True)
class Case:
    failures: tuple[BaseException, ...]
    waits: tuple[float, ...]
    answered: bool = True
    policy: Policy = READS
    chance: float = 0.0


CASES = {
    "a call that succeeds is sent once": Case((), ()),
    "a broken connection is retried soon": Case((MOMENTARY,), (0.2,)),
    "the second pause is twice the first": Case((MOMENTARY, MOMENTARY), (0.2, 0.4)),
    "jitter adds half at most": Case((MOMENTARY, MOMENTARY), (0.3, 0.6), chance=1.0),
    "three requests are all": Case((MOMENTARY,) * 3, (0.2, 0.4), answered=False),
    "a throttled call waits as long as the cloud says": Case((throttled(5),), (5.2,)),
    "ten throttles are the queue's": Case((throttled(5),) * 10, (5.2, 5.4), answered=False),
    "a pause that the pass has no time for is the queue's": Case((throttled(60),), (), answered=False),
    "a time-out is the queue's": Case((Transient("no answer within 15 s"),), (), answered=False),
    "a refusal is the queue's": Case((Terminal("AccessDenied", "no right"),), (), answered=False),
    "what is missing is the queue's": Case((Blocked("ReferenceNotFound", "absent"),), (), answered=False),
    "a conflict is the queue's": Case((Conflict("somebody was first"),), (), answered=False),
    "a defect is raised": Case((ValueError("x"),), (), answered=False),
    "a cancelled call is cancelled": Case((asyncio.CancelledError(),), (), answered=False),
    "a refused password after a broken connection is final": Case(
        (MOMENTARY, Terminal("CredentialsInvalid", "refused")), (0.2,), answered=False
    ),
    "a connection that nobody took is dialled again": Case(
        (Unreached("connection refused", is_momentary=True),), (0.2,), policy=CONNECTS
    ),
    "a server that is starting is the queue's": Case((Unreached("57P03"),), (), answered=False, policy=CONNECTS),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_call_is_sent_again_by_the_class_of_its_failure(case: Case) -> None:
    call = Call(list(case.failures))
    if case.answered:
        assert await call.made(case.policy, case.chance) == "answer"
    else:
        with pytest.raises(type(case.failures[-1])) as raised:
            await call.made(case.policy, case.chance)
        assert raised.value is case.failures[len(case.waits)]

    assert tuple(call.waits) == case.waits
    assert call.requests == len(case.waits) + 1


@pytest.mark.parametrize(("within", "requests"), [(timedelta(0), 1), (timedelta(hours=1), READS.requests)])
async def test_no_request_is_sent_after_the_time_of_the_policy(within: timedelta, requests: int) -> None:
    call = Call([MOMENTARY] * READS.requests)
    with pytest.raises(Transient):
        await call.made(replace(READS, within=within), 0.0)

    assert call.requests == requests


async def test_retry_takes_a_token_waits_for_the_pause_and_is_counted() -> None:
    time = SteppedClock()
    meter = AccountMeter("toy-of-retries", "one", Budget(Rate(1, 1, timedelta(seconds=2)), time.clock))
    call, pauses = Call([throttled(5), MOMENTARY]), list[float]()

    async def sleep(_seconds: float) -> None:
        # The pause of the account begins when the cloud asks for it, and not when the retries are used up.
        pauses.append(meter.budget.paused_until - time.now)

    assert await repeated(partial(meter.read, "observe", call), READS, sleep=sleep) == "answer"

    assert pauses == [5.0, 0.0]
    # The second and the third request: the end of the pause, and no token, as both of the burst were there again.
    assert (call.requests, time.waits) == (3, [5.0])
    assert {code: _calls("observe", code) for code in ("ok", "throttled", "transient", "error")} == {
        "ok": 1, "throttled": 1, "transient": 1, "error": 0,
    }  # fmt: skip
    await meter.read("observe", call)
    assert time.waits == [5.0, 1.0]


def _calls(operation: str, code: str) -> float:
    return float(CALLS.labels("toy-of-retries", operation, code)._value.get())


async def test_calls_side_by_side_do_not_share_their_attempts() -> None:
    calls = [Call([MOMENTARY] * number) for number in range(4)]

    async def made(call: Call) -> str | Failure:
        try:
            return await call.made()
        except Transient as failure:
            return failure

    answers = await asyncio.gather(*(made(call) for call in calls))

    assert answers == ["answer", "answer", "answer", MOMENTARY]
    assert [call.requests for call in calls] == [1, 2, 3, 3]


ENDPOINT = Endpoint("db.example.org", 5432, "orders", VERIFIED)
CREDENTIAL = Credential("app", "secret")


@dataclass
class Server:
    """Answers every login alike, and counts them."""

    answer: LoginAnswer = NO_ANSWER
    logins: list[Endpoint] = field(default_factory=list)
    now: float = 100.0

    async def try_login(self, endpoint: Endpoint, _credential: Credential) -> LoginAnswer:
        self.logins.append(endpoint)
        return self.answer

    def reachability(self) -> Reachability:
        return Reachability(self.try_login, remembered=timedelta(seconds=60), monotonic=lambda: self.now)


async def test_endpoint_that_gave_no_answer_is_left_alone_for_a_while() -> None:
    server = Server()
    reachability = server.reachability()

    assert [await reachability.try_login(ENDPOINT, CREDENTIAL) for _ in range(3)] == [NO_ANSWER] * 3
    assert len(server.logins) == 1
    server.now += 59.9
    assert reachability.is_unreachable(ENDPOINT)
    server.now += 0.2
    assert not reachability.is_unreachable(ENDPOINT)
    await reachability.try_login(ENDPOINT, CREDENTIAL)
    assert len(server.logins) == 2


async def test_endpoint_of_another_database_is_tried_whatever_was_recorded_of_the_first() -> None:
    server = Server()
    reachability = server.reachability()
    others = [replace(ENDPOINT, host="other.example.org"), replace(ENDPOINT, port=1), replace(ENDPOINT, database="b")]

    for endpoint in (ENDPOINT, *others):
        await reachability.try_login(endpoint, CREDENTIAL)

    assert server.logins == [ENDPOINT, *others]
    # The authority may be renewed meanwhile: it is the same place.
    assert reachability.is_unreachable(replace(ENDPOINT, ca="renewed"))


@pytest.mark.parametrize(
    "answer", [LoginAnswer(Login.OK), LoginAnswer(Login.REFUSED, "28P01"), LoginAnswer(Login.UNKNOWN, "53300")]
)
async def test_answer_of_any_kind_is_no_silence(answer: LoginAnswer) -> None:
    server = Server(answer)
    reachability = server.reachability()

    assert [await reachability.try_login(ENDPOINT, CREDENTIAL) for _ in range(2)] == [answer, answer]
    assert len(server.logins) == 2


async def test_record_of_silence_ends_by_an_answer_and_when_it_is_forgotten() -> None:
    reachability = Server().reachability()
    reachability.record(ENDPOINT, is_reached=False)
    reachability.record(ENDPOINT, is_reached=True)
    assert not reachability.is_unreachable(ENDPOINT)

    reachability.record(ENDPOINT, is_reached=False)
    reachability.forget(ENDPOINT)
    assert not reachability.is_unreachable(ENDPOINT)
