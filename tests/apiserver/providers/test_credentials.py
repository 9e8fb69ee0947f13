"""Passwords: made, rotated with two logins, given by a user, lost and found, put back."""

from __future__ import annotations

import base64

import pytest

from providers.external.credential import Login
from tests.apiserver.providers.actions import kept, login, made, poke, ready, refused
from tests.support.api import ApiError
from tests.support.kinds import DATABASE, SECRET, condition, database, in_trouble, is_ready
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


async def test_a_token_rotates_to_the_other_login_and_the_former_dies_after_its_grace(
    system: System, namespace: str
) -> None:
    before = await made(system, namespace, "rotating")
    old = await kept(system, namespace, "rotating")

    await system.edit(DATABASE, namespace, "rotating", {"spec": {"passwordRotation": {"token": "one"}}})
    after = await system.until(
        DATABASE, namespace, "rotating", lambda obj: obj["status"]["connection"]["username"] != old["username"]
    )

    new = await kept(system, namespace, "rotating")
    assert (new["username"], old["username"]) == (old["username"].removesuffix("_a") + "_b", old["username"])
    assert new["current"] != old["current"]
    assert after["status"]["connection"]["passwordRef"] != before["status"]["connection"]["passwordRef"]
    assert await login(system, after) is Login.OK
    assert await login(system, after, username=old["username"], password=old["current"]) is Login.OK
    await refused(system, after, old["username"], old["current"])
    final = await system.until(
        DATABASE, namespace, "rotating", lambda obj: "retiring" not in obj["status"]["rotation"] and is_ready(obj)
    )
    assert await login(system, final) is Login.OK

    await system.edit(DATABASE, namespace, "rotating", {"spec": {"passwordRotation": {"token": "two"}}})
    await system.until(
        DATABASE, namespace, "rotating", lambda obj: obj["status"]["connection"]["username"] == old["username"]
    )
    assert await login(system, await ready(system, namespace, "rotating")) is Login.OK


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


async def test_a_foreign_secret_of_that_name_is_left_alone(system: System, namespace: str) -> None:
    await system.create(SECRET, SECRET.new(namespace, "taken-credentials", stringData={"mine": "yes"}))
    before = await system.api.get(SECRET.path(namespace, "taken-credentials"))

    await system.create(DATABASE, database(namespace, "taken"))
    await system.until(DATABASE, namespace, "taken", in_trouble("SecretNotOwned"))

    assert await system.api.get(SECRET.path(namespace, "taken-credentials")) == before
    await system.delete(DATABASE, namespace, "taken")


async def test_lost_credentials_are_nobodys_until_the_token_resets_them(system: System, namespace: str) -> None:
    await made(system, namespace, "lost")
    mark = system.sql.mark()
    await system.api.delete(SECRET.path(namespace, "lost-credentials"))

    await system.ask_for_a_pass(DATABASE, namespace, "lost")
    obj = await system.until(DATABASE, namespace, "lost", in_trouble("PasswordUnknown"))
    assert condition(obj, "Ready")["status"] == "True"
    assert system.sql.changes(mark) == []

    await system.edit(DATABASE, namespace, "lost", {"spec": {"passwordRotation": {"token": "reset"}}})
    assert await login(system, await ready(system, namespace, "lost")) is Login.OK


async def test_a_password_is_neither_in_the_servers_log_nor_in_ours(system: System, namespace: str) -> None:
    await made(system, namespace, "secret")
    password = (await kept(system, namespace, "secret"))["current"]

    assert password not in system.server.server.log.read_text(errors="replace")
    for program in system.started:
        assert password not in program.text()
    assert password not in str(await poke(system, namespace, "secret"))


@pytest.mark.parametrize("name", ["../alice/app-connection", "x?y#z", "a/b", "%2e%2e", "Upper", "a..b", "-a", "a\n"])
async def test_a_reference_to_what_can_be_no_secret_is_refused_at_admission(
    system: System, namespace: str, name: str
) -> None:
    reference = {"name": name, "key": "it"}

    with pytest.raises(ApiError, match=r"passwordSecretRef\.name"):
        await system.create(DATABASE, database(namespace, "odd", passwordSecretRef=reference))
