"""A login at the endpoint that was observed: where it is tried, what becomes of its answer, how many at once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from providers.credentials.login import log_in
from providers.credentials.proofs import Proofs
from providers.external.client import Clients, Target
from providers.external.credential import NO_ANSWER, Credential, Login, LoginAnswer
from providers.external.endpoint import NO_ENDPOINT, VERIFIED, VERIFIED_BY_AUTHORITY, Endpoint
from providers.external.ownership import Owner
from providers.external.provider import ConnectedAccount, LoginRules
from runtime.errors import Terminal

ENDPOINT = Endpoint("db.example.org", 5432, "orders", VERIFIED, "PEM")
ANY_NAME = replace(ENDPOINT, sslmode=VERIFIED_BY_AUTHORITY, ca="")
CREDENTIAL = Credential("app", "secret")
OK = LoginAnswer(Login.OK)
NO_SUCH_DATABASE = LoginAnswer(Login.UNKNOWN, "3D000")
TARGET: Target[Any] = Target("orders", None, Owner("home", "uid", "claim"), "hash")


@dataclass
class Server:
    """Gives one answer, and counts the logins."""

    answer: LoginAnswer = OK
    logins: list[tuple[Endpoint, Credential]] = field(default_factory=list)

    async def try_login(self, endpoint: Endpoint, credential: Credential) -> LoginAnswer:
        self.logins.append((endpoint, credential))
        return self.answer

    async def log_in(self, endpoint: Endpoint = ENDPOINT, *, check: str = "Auto", missing: str = "") -> Login:
        clients: Clients[Any, Any] = Clients(self, self, try_login=self.try_login)  # type: ignore[arg-type]  # never asked
        account: ConnectedAccount[Any, Any] = ConnectedAccount(clients, None, {"spec": {"loginCheck": check}}, "1")
        rules: LoginRules[Any, Any] = LoginRules(
            names=lambda _target: ("a", "b"), versions=lambda _observed: {}, missing_database=lambda *_: missing
        )
        return await log_in(account, rules, TARGET, endpoint, CREDENTIAL)


@pytest.mark.parametrize(
    "answer", [LoginAnswer(Login.OK), LoginAnswer(Login.REFUSED, "28P01"), NO_ANSWER, NO_SUCH_DATABASE]
)
async def test_log_in_tries_the_endpoint_and_returns_its_answer(answer: LoginAnswer) -> None:
    server = Server(answer)

    assert await server.log_in() is answer.login
    assert server.logins == [(ENDPOINT, CREDENTIAL)]


@pytest.mark.parametrize(
    "endpoint", [NO_ENDPOINT, replace(ENDPOINT, host=""), replace(ENDPOINT, sslmode="require"), ANY_NAME]
)
async def test_log_in_sends_no_password_where_nothing_proves_who_answers(endpoint: Endpoint) -> None:
    server = Server()

    assert await server.log_in(endpoint) is Login.UNKNOWN
    assert server.logins == []


async def test_log_in_is_not_tried_where_the_config_turns_it_off() -> None:
    server = Server()

    assert await server.log_in(check="Off") is Login.UNKNOWN
    assert server.logins == []


async def test_missing_database_is_refused_where_it_will_not_appear_and_no_other_answer_is() -> None:
    with pytest.raises(Terminal, match="no database orders") as refusal:
        await Server(NO_SUCH_DATABASE).log_in(missing="no database orders")

    assert refusal.value.reason == "InvalidValue"
    for answer in (NO_ANSWER, LoginAnswer(Login.REFUSED, "28P01"), LoginAnswer(Login.OK)):
        assert await Server(answer).log_in(missing="no database orders") is answer.login


async def test_proofs_that_are_answered_take_turns() -> None:
    proofs, at_once, most = Proofs(timedelta(minutes=5)), 0, 0

    async def prove() -> bool:
        nonlocal at_once, most
        async with proofs.slot() as is_free:
            at_once += 1
            most = max(most, at_once)
            await asyncio.sleep(0)
            at_once -= 1
            return is_free

    assert await asyncio.gather(*(prove() for _ in range(50))) == [True] * 50
    assert most == 4


async def test_proofs_that_get_no_answer_hold_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("providers.credentials.proofs._PLACE_SECONDS", 0.0)
    proofs, answer = Proofs(timedelta(minutes=5)), asyncio.Event()

    async def prove() -> bool:
        async with proofs.slot() as is_free:
            if is_free:
                await answer.wait()
            return is_free

    waiting = [asyncio.create_task(prove()) for _ in range(4)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [await prove() for _ in range(3)] == [False] * 3
    answer.set()
    assert await asyncio.gather(*waiting) == [True] * 4
    assert await prove()
