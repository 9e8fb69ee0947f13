"""What is remembered of endpoints that gave no answer."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from providers.external.credential import NO_ANSWER, Credential, Login, LoginAnswer
from providers.external.endpoint import VERIFIED, Endpoint
from providers.external.reachability import Reachability

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
