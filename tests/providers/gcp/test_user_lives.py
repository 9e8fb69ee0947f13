"""Users by the real reconciler, over the wire of a simulated Cloud SQL: two logins by turns, roles, authorities."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest

from devcloud.gcp.server import Served
from providers.gcp import USERS
from tests.providers.gcp.sql_world import SqlWorld, inside_of, ready
from tests.support.simulator_control import control

pytestmark = pytest.mark.slow

_GRACE = timedelta(hours=1)
_LIMIT_S = 60.0


async def _inside(served: Served, **spec: Any) -> tuple[SqlWorld, SqlWorld]:
    """Return an instance that is Ready, and a user inside it that is at rest."""
    server = await ready(served)
    user = inside_of(server, USERS, **spec)
    await user.rest()
    assert (user.reason("Ready"), user.reason()) == ("Available", "InSync"), user.get()
    return server, user


def _login(user: SqlWorld) -> str:
    return str(user.status["connection"]["username"])


@pytest.mark.parametrize("roles", [["shop_owner"], ["cloudsqlsuperuser", "shop_owner"]], ids=" and ".join)
async def test_two_logins_take_turns(served: Served, roles: list[str]) -> None:
    _, user = await _inside(served, logins="Alternating", databaseRoles=roles)
    assert (_login(user), user.changes()) == ("app_a", ["users.insert"])
    first = user.secret["current"]

    user.ask(passwordRotation={"token": "1"})
    await user.rest()
    assert (_login(user), user.reason()) == ("app_b", "InSync")
    assert user.changes() == ["users.insert", "users.insert"]
    assert user.secret["current"] not in {"", first}

    user.pass_time(_GRACE)
    await user.rest()
    # The former login gets a password that nobody has.
    assert user.changes() == ["users.insert", "users.insert", "users.update"]
    assert "retiring" not in user.status.get("rotation", {})
    user.ask(passwordRotation={"token": "2"})
    await user.rest()
    assert (_login(user), user.changes()[-1]) == ("app_a", "users.update")

    user.pass_time(_GRACE)
    await user.rest()
    user.forget()
    await user.for_hours(6)
    assert (user.changes(), user.reason()) == ([], "InSync")


async def test_a_role_that_is_asked_for_later_is_granted_to_both_logins(served: Served) -> None:
    server, user = await _inside(served, logins="Alternating", databaseRoles=["shop_owner"])
    user.ask(passwordRotation={"token": "1"})
    await user.rest()
    user.forget()

    wanted = {"databaseRoles": ["shop_owner", "shop_reports"]}
    user.ask(parameters=wanted, passwordRotation={"token": "1"})
    await user.rest()

    assert user.reason() == "InSync", user.get()
    assert user.changes() == ["users.update", "users.update"]
    calls = [call for call in control(served, "GET", "audit?since=0") if call["action"] == "users.update"]
    assert sorted(call["params"]["name"] for call in calls) == ["app_a", "app_b"]
    assert server.reason() == "InSync"


async def test_a_replaced_authority_is_published_by_the_next_pass(served: Served) -> None:
    server, user = await _inside(served)
    before = user.secret
    former = server.shown()["serverCaCert"]["sha1Fingerprint"]
    server.steer(rotate=True)
    limit = time.monotonic() + _LIMIT_S
    while server.shown()["serverCaCert"]["sha1Fingerprint"] == former:
        assert time.monotonic() < limit, "the authority was not replaced"

    await server.step()
    assert server.status["atProvider"]["serverCaCertSha1Fingerprint"] != former
    # A change of the instance's status enqueues those who refer to it.
    await user.step()

    after = user.secret
    assert after["ca.crt"].strip() == server.shown()["serverCaCert"]["cert"]
    assert after["current"] == before["current"]
    assert user.changes() == ["users.insert"]
