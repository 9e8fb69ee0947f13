"""Whoever edits what: a child or a Secret by hand, a template, a claim; ours comes back, nothing is sent twice."""

from typing import Any

import pytest

from tests.support.api import JsonObject
from tests.support.kinds import (
    CLAIM,
    COMPOSITION,
    DATABASE,
    EVENT,
    SECRET,
    claim,
    composition,
    condition,
    is_ready,
)
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

REQUEST = "fairlead.dev/reconcile-requested-at"


async def ready(system: System, namespace: str, name: str, **spec: Any) -> JsonObject:
    """Make a claim, wait until it is Ready, return its only child."""
    await system.create(CLAIM, claim(namespace, name, **spec))
    await system.until(CLAIM, namespace, name, is_ready)
    (child,) = await system.children(namespace, name)
    return child


async def test_a_child_edited_by_hand_gets_our_fields_back_and_keeps_those_of_others(
    running: System, namespace: str
) -> None:
    child = await ready(running, namespace, "edited")
    name, limit = child["metadata"]["name"], child["spec"]["forProvider"]["connectionLimit"]
    theirs = DATABASE.new(namespace, name, spec={"driftPolicy": "Correct"})
    theirs["metadata"]["labels"] = {"team": "blue"}
    await running.api.apply(DATABASE.path(namespace, name), theirs, manager="policy-robot")
    await running.edit(DATABASE, namespace, name, {"spec": {"forProvider": {"connectionLimit": 3}}})

    def ours_is_back(obj: JsonObject) -> bool:
        return bool(obj["spec"]["forProvider"]["connectionLimit"] == limit) and is_ready(obj)

    back = await running.until(DATABASE, namespace, name, ours_is_back)
    assert back["spec"]["driftPolicy"] == "Correct"
    assert back["metadata"]["labels"]["team"] == "blue"
    assert "policy-robot" in {entry["manager"] for entry in back["metadata"]["managedFields"]}
    assert await running.connection_limit(back["status"]["externalName"]) == limit

    async def taken_back() -> list[str]:
        events = await running.api.items(EVENT.path(namespace))
        return [event["note"] for event in events if event["reason"] == "FieldTakenBack"]

    (note,) = await eventually(taken_back, "an event FieldTakenBack")
    assert "kubectl-edit" in note
    assert "connectionLimit" in note


async def test_a_connection_secret_that_is_deleted_or_edited_comes_back_with_the_same_password(
    running: System, namespace: str
) -> None:
    await ready(running, namespace, "shared")
    before = await running.binding(namespace, "shared")
    (name,) = [
        secret["metadata"]["name"] for secret in await running.api.items(SECRET.path(namespace)) if _is_binding(secret)
    ]
    path = SECRET.path(namespace, name)

    async def same_again() -> bool:
        return await running.api.find(path) is not None and await running.binding(namespace, "shared") == before

    await running.api.delete(path)
    await running.ask_for_a_pass(CLAIM, namespace, "shared")
    await eventually(same_again, "the Secret is back")

    await running.edit(SECRET, namespace, name, {"data": {"password": "", "host": "ZWxzZXdoZXJl"}})
    await running.ask_for_a_pass(CLAIM, namespace, "shared")
    await eventually(same_again, "the Secret is whole again")
    assert await running.logs_in(namespace, "shared")
    # What a person asks of the claim is asked of the child's provider, too.
    (child,) = await running.children(namespace, "shared")
    token = (await running.api.get(CLAIM.path(namespace, "shared")))["metadata"]["annotations"][REQUEST]
    name = child["metadata"]["name"]
    await running.until(
        DATABASE, namespace, name, lambda obj: bool(obj["status"].get("lastHandledReconcileAt") == token)
    )


def _is_binding(secret: JsonObject) -> bool:
    return bool(secret["type"] == "servicebinding.io/postgresql")


async def test_a_rotation_publishes_a_new_login_and_the_old_one_works_on(running: System, namespace: str) -> None:
    await ready(running, namespace, "rotated")
    old = await running.binding(namespace, "rotated")
    async with await running.login(namespace, "rotated") as connection:
        await connection.execute("CREATE TABLE canary AS SELECT 'still here' AS word")
    await running.edit(CLAIM, namespace, "rotated", {"spec": {"passwordRotation": {"token": "once"}}})

    async def is_new() -> bool:
        return (await running.binding(namespace, "rotated"))["password"] != old["password"]

    await eventually(is_new, "a new password is published")
    await running.until(CLAIM, namespace, "rotated", is_ready)
    async with await running.login(namespace, "rotated") as connection:
        await connection.execute("ALTER TABLE canary ADD COLUMN more int")
    async with await running.login_by(old) as connection:
        cursor = await connection.execute("SELECT word FROM canary")
        assert await cursor.fetchone() == ("still here",)


@pytest.mark.parametrize("how", ["another composition is named", "the template names its resource anew"])
async def test_data_is_not_replaced_by_an_edit_until_consent(running: System, namespace: str, how: str) -> None:
    old, new = _with_resource(f"{namespace}-old", "database"), _with_resource(f"{namespace}-new", "elsewhere")
    async with running.composition(old) as first, running.composition(new) as second:
        child = await ready(running, namespace, "orders", compositionRef={"name": first})
        before = await running.binding(namespace, "orders")
        if "template" in how:
            await running.edit(COMPOSITION, "", first, {"spec": _with_resource(first, "elsewhere")["spec"]})
        else:
            await running.edit(CLAIM, namespace, "orders", {"spec": {"compositionRef": {"name": second}}})
        held = await running.until(CLAIM, namespace, "orders", lambda obj: synced(obj)["reason"] == "HeldDeletion")
        await running.at_rest(for_s=1.0)
        consent = f"database={child['metadata']['uid']}"
        assert consent in synced(held)["message"]
        assert await running.children(namespace, "orders") == [child]
        assert await running.binding(namespace, "orders") == before
        assert await running.logs_in(namespace, "orders")

        await running.edit(CLAIM, namespace, "orders", {"metadata": {"annotations": {"fairlead.dev/consent": consent}}})
        await running.until(
            CLAIM, namespace, "orders", lambda obj: is_ready(obj) and len(obj["status"]["inventory"]) == 1
        )
        (after,) = await running.children(namespace, "orders")
        assert after["metadata"]["annotations"]["fairlead.dev/resource"] == "elsewhere"
        assert (await running.binding(namespace, "orders"))["database"] == after["status"]["externalName"]
        # The claim's policy is Orphan: what was orphaned stays, with its data.
        assert await running.connection_limit(child["status"]["externalName"]) == 7


def _with_resource(name: str, resource: str) -> JsonObject:
    spec = {"forProvider": {"databaseName": "app", "username": "app", "connectionLimit": 7}}
    template = {"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": spec}
    return composition(name, {"name": resource, "template": template}, connection={"from": resource})


def synced(obj: JsonObject) -> JsonObject:
    return condition(obj, "Synced")
