"""Passwords: made, rotated with two logins, given by a user, lost and found, put back."""

from __future__ import annotations

import base64

import pytest

from providers.external.credential import Login
from tests.apiserver.providers.actions import kept, login, made, ready
from tests.support.api import ApiError
from tests.support.kinds import DATABASE, SECRET, condition, database, in_trouble
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


async def test_a_users_own_password_is_used_and_its_new_content_rotates(system: System, namespace: str) -> None:
    own = {"it": base64.b64encode(b"chosen-by-me-1").decode()}
    await system.create(SECRET, SECRET.new(namespace, "own", data=own))
    obj = await made(system, namespace, "given", passwordSecretRef={"name": "own", "key": "it"})
    assert (await kept(system, namespace, "given"))["current"] == "chosen-by-me-1"
    assert await login(system, obj) is Login.OK

    own = {"it": base64.b64encode(b"chosen-by-me-2").decode()}
    await system.api.merge(SECRET.path(namespace, "own"), {"data": own})
    # The Secret is not watched: it is read again a minute after the last pass.
    await system.until(
        DATABASE,
        namespace,
        "given",
        lambda now: now["status"]["connection"] != obj["status"]["connection"],
        limit_s=180.0,
    )
    assert (await kept(system, namespace, "given"))["current"] == "chosen-by-me-2"
    assert await login(system, await ready(system, namespace, "given")) is Login.OK


async def test_a_missing_own_password_is_waited_for(system: System, namespace: str) -> None:
    await system.create(DATABASE, database(namespace, "waiting", passwordSecretRef={"name": "later", "key": "it"}))
    obj = await system.until(DATABASE, namespace, "waiting", in_trouble("SecretNotFound"))
    assert "later" in condition(obj, "Synced")["message"]

    data = {"it": base64.b64encode(b"chosen-by-me-3").decode()}
    await system.create(SECRET, SECRET.new(namespace, "later", data=data))
    await system.ask_for_a_pass(DATABASE, namespace, "waiting")
    assert await login(system, await ready(system, namespace, "waiting")) is Login.OK


@pytest.mark.parametrize("name", ["../alice/app-connection", "x?y#z", "a/b", "%2e%2e", "Upper", "a..b", "-a", "a\n"])
async def test_a_reference_to_what_can_be_no_secret_is_refused_at_admission(
    system: System, namespace: str, name: str
) -> None:
    reference = {"name": name, "key": "it"}

    with pytest.raises(ApiError, match=r"passwordSecretRef\.name"):
        await system.create(DATABASE, database(namespace, "odd", passwordSecretRef=reference))
