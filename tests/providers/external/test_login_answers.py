"""What a server's answer to a login says of the password: a refusal counts once the password was asked for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from devcloud.certificates import new_authority
from devcloud.postgres.authenticator import Admit, Caller, Refuse
from providers.external.credential import Credential, Login, LoginAnswer
from providers.external.endpoint import VERIFIED, Endpoint
from providers.external.login import try_login
from tests.providers.external.test_verification import CREDENTIAL, Server


@dataclass
class Refusing(Server):
    """A server whose firewall has a rule for nobody, or which has no room left."""

    refusal: Refuse = field(kw_only=True)

    async def _admit(self, caller: Caller) -> Admit | Refuse:
        self.callers.append(caller)
        return self.refusal


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        pytest.param("28000", "no pg_hba.conf entry for host", id="a client whose address has no rule"),
        pytest.param("53300", "sorry, too many clients already", id="a server without room"),
    ],
)
async def test_a_refusal_before_the_password_was_asked_for_is_unknown(code: str, sentence: str, tmp_path: Path) -> None:
    authority = await asyncio.to_thread(new_authority, "the own authority")
    async with Refusing(tmp_path, authority, "127.0.0.1", refusal=Refuse(code, sentence)).serving() as server:
        endpoint = Endpoint("127.0.0.1", server.port, "orders", VERIFIED, authority.pem.decode())
        answer = await try_login(endpoint, CREDENTIAL)

    assert answer == LoginAnswer(Login.UNKNOWN, code)
    assert len(server.callers) == 1


async def test_a_refused_password_is_refused(tmp_path: Path) -> None:
    authority = await asyncio.to_thread(new_authority, "the own authority")
    async with Server(tmp_path, authority, "127.0.0.1").serving() as server:
        endpoint = Endpoint("127.0.0.1", server.port, "orders", VERIFIED, authority.pem.decode())
        answer = await try_login(endpoint, Credential("app", "another"))

    assert answer == LoginAnswer(Login.REFUSED, "28P01")
