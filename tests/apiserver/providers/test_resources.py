"""A resource without a claim: what its spec, its pause and its namespace allow, and passwords that a user gives."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.support.api import ApiError, JsonObject
from tests.support.kinds import (
    CLAIM,
    DATABASE,
    NAMESPACE,
    PROVIDER_CONFIG,
    SECRET,
    claim,
    condition,
    database,
    in_trouble,
    is_ready,
)
from tests.support.system import System, decoded

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


async def ready(system: System, namespace: str, name: str) -> JsonObject:
    return await system.until(DATABASE, namespace, name, is_ready)


async def made(system: System, namespace: str, name: str, **spec: Any) -> JsonObject:
    await system.create(DATABASE, database(namespace, name, **spec))
    return await ready(system, namespace, name)


async def kept(system: System, namespace: str, name: str) -> dict[str, str]:
    """Return the decoded credentials of a resource."""
    return decoded(await system.api.get(SECRET.path(namespace, f"{name}-credentials")))


async def logs_in(system: System, obj: JsonObject) -> bool:
    """Return whether an application logs in with what is published."""
    connection, meta = obj["status"]["connection"], obj["metadata"]
    credentials = await kept(system, meta["namespace"], meta["name"])
    login = {"username": credentials["username"], "password": credentials["current"]}
    return await system.logs_in_by({**connection, **login, "certificates": credentials["ca.crt"]})


async def databases(system: System) -> set[str]:
    rows = await system.server.server.execute("SELECT datname FROM pg_catalog.pg_database")
    return {str(name) for (name,) in rows}


async def annotate(system: System, namespace: str, name: str, **annotations: str | None) -> None:
    values = {f"fairlead.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    await system.edit(DATABASE, namespace, name, {"metadata": {"annotations": values}})


async def poke(system: System, namespace: str, name: str) -> JsonObject:
    """Ask for a pass and wait for its echo."""
    await system.ask_for_a_pass(DATABASE, namespace, name)
    obj = await system.api.get(DATABASE.path(namespace, name))
    token = obj["metadata"]["annotations"]["fairlead.dev/reconcile-requested-at"]

    def echoed(obj: JsonObject) -> bool:
        return bool(obj["status"].get("lastHandledReconcileAt") == token)

    return await system.until(DATABASE, namespace, name, echoed)


async def test_observe_shows_and_corrects_nothing_and_releases(running: System, namespace: str) -> None:
    obj = await made(running, namespace, "observed", forProvider={
        "databaseName": "app", "username": "app", "connectionLimit": 5,
    })  # fmt: skip
    name = obj["status"]["externalName"]
    await running.edit(DATABASE, namespace, "observed", {"spec": {"managementPolicy": "Observe"}})
    await running.server.server.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT 3')

    def shown(now: JsonObject) -> bool:
        drift = now["status"].get("drift", [])
        return any(entry["path"] == "connectionLimit" and entry["action"] == "Observed" for entry in drift)

    assert shown(await poke(running, namespace, "observed"))
    assert await running.connection_limit(name) == 3
    await running.delete(DATABASE, namespace, "observed")
    assert name in await databases(running)


async def test_a_paused_resource_gets_nothing_not_even_its_deletion(running: System, namespace: str) -> None:
    obj = await made(running, namespace, "paused")
    name = obj["status"]["externalName"]
    await annotate(running, namespace, "paused", paused="true", paused_reason="moving the rack")
    obj = await running.until(
        DATABASE, namespace, "paused", lambda now: condition(now, "Synced").get("reason") == "Paused"
    )
    assert "moving the rack" in condition(obj, "Synced")["message"]
    assert condition(obj, "Ready")["status"] == "True"
    await running.server.server.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT 3')
    await running.edit(DATABASE, namespace, "paused", {"spec": {"forProvider": {"connectionLimit": 9}}})
    await poke(running, namespace, "paused")
    assert await running.connection_limit(name) == 3
    await running.api.delete(DATABASE.path(namespace, "paused"))
    await poke(running, namespace, "paused")
    assert name in await databases(running)

    await annotate(running, namespace, "paused", paused=None, paused_reason=None)
    await running.api.until_gone(DATABASE.path(namespace, "paused"))
    assert name not in await databases(running)


async def test_a_namespace_no_longer_allowed_keeps_what_it_has_and_changes_nothing(running: System) -> None:
    async with running.namespace(team="a") as namespace:
        config = f"closing-{namespace}"
        selector = {"selector": {"matchLabels": {"team": "a"}}}
        await running.create(PROVIDER_CONFIG, running.provider_config(config, allowedNamespaces=selector))
        obj = await made(running, namespace, "tenant", config=config)
        await running.api.merge(NAMESPACE.path("", namespace), {"metadata": {"labels": {"team": None}}})
        await running.edit(DATABASE, namespace, "tenant", {"spec": {"forProvider": {"connectionLimit": 4}}})

        await running.until(DATABASE, namespace, "tenant", in_trouble("NotAllowed"))
        assert await logs_in(running, obj)
        await running.api.delete(DATABASE.path(namespace, "tenant"))
        await poke(running, namespace, "tenant")
        assert obj["status"]["externalName"] in await databases(running)
        await running.api.merge(NAMESPACE.path("", namespace), {"metadata": {"labels": {"team": "a"}}})
        await running.api.until_gone(DATABASE.path(namespace, "tenant"))


async def test_a_users_own_password_is_used_and_its_new_content_rotates(running: System, namespace: str) -> None:
    own = {"it": base64.b64encode(b"chosen-by-me-1").decode()}
    await running.create(SECRET, SECRET.new(namespace, "own", data=own))
    obj = await made(running, namespace, "given", passwordSecretRef={"name": "own", "key": "it"})
    assert (await kept(running, namespace, "given"))["current"] == "chosen-by-me-1"
    assert await logs_in(running, obj)

    own = {"it": base64.b64encode(b"chosen-by-me-2").decode()}
    await running.api.merge(SECRET.path(namespace, "own"), {"data": own})
    # The Secret is not watched: it is read again in a minute, or on request.
    await running.ask_for_a_pass(DATABASE, namespace, "given")
    await running.until(
        DATABASE, namespace, "given", lambda now: now["status"]["connection"] != obj["status"]["connection"]
    )
    assert (await kept(running, namespace, "given"))["current"] == "chosen-by-me-2"
    assert await logs_in(running, await ready(running, namespace, "given"))


async def test_a_foreign_database_is_observed_and_taken_over_by_a_claim_as_its_preview_says(
    running: System, namespace: str
) -> None:
    name, server = f"legacy_{namespace.replace('-', '_')}", running.server.server
    await server.execute(f'CREATE DATABASE "{name}" CONNECTION LIMIT 7')
    await server.execute(f'ALTER DATABASE "{name}" OWNER TO "{running.server.username}"')
    watched = database(namespace, "watched", managementPolicy="Observe", forProvider={})
    watched["metadata"]["annotations"] = {"fairlead.dev/external-name": name}
    await running.create(DATABASE, watched)
    seen = await ready(running, namespace, "watched")
    assert seen["status"]["observed"]["forProvider"]["connectionLimit"] == 7
    await running.delete(DATABASE, namespace, "watched")

    own = {"password": base64.b64encode(b"chosen-by-me-4").decode()}
    await running.create(SECRET, SECRET.new(namespace, "own", data=own))
    wanted = claim(namespace, "orders", passwordSecretRef={"name": "own"})
    wanted["metadata"]["annotations"] = {"fairlead.dev/external-names": f"database={name}"}
    before = await databases(running)
    await running.api.merge(PROVIDER_CONFIG.path("", "default"), {"spec": {"allowAdoption": True}})
    try:
        await running.create(CLAIM, wanted)
        await running.until(CLAIM, namespace, "orders", in_trouble("NotOwned"))
        (child,) = (await running.api.get(DATABASE.path(namespace)))["items"]
        preview = child["status"]["adoption"]
        assert "connectionLimit" in {change["path"] for change in preview["changes"]}
        assert await running.connection_limit(name) == 7
        adopt = f"{preview['incarnation']}/{preview['hash']}"
        await annotate(running, namespace, child["metadata"]["name"], adopt=adopt)
        await running.until(CLAIM, namespace, "orders", is_ready)
    finally:
        await running.api.merge(PROVIDER_CONFIG.path("", "default"), {"spec": {"allowAdoption": None}})
    binding = decoded(await running.api.get(SECRET.path(namespace, "orders-connection")))
    assert (binding["password"], await running.logs_in_by(binding)) == ("chosen-by-me-4", True)
    assert await databases(running) == before


async def test_a_missing_own_password_is_waited_for(running: System, namespace: str) -> None:
    await running.create(DATABASE, database(namespace, "waiting", passwordSecretRef={"name": "later", "key": "it"}))
    obj = await running.until(DATABASE, namespace, "waiting", in_trouble("SecretNotFound"))
    assert "later" in condition(obj, "Synced")["message"]

    data = {"it": base64.b64encode(b"chosen-by-me-3").decode()}
    await running.create(SECRET, SECRET.new(namespace, "later", data=data))
    await running.ask_for_a_pass(DATABASE, namespace, "waiting")
    assert await logs_in(running, await ready(running, namespace, "waiting"))


@pytest.mark.parametrize("name", ["../alice/app-connection", "x?y#z", "a/b", "%2e%2e", "Upper", "a..b", "-a", "a\n"])
async def test_a_reference_to_what_can_be_no_secret_is_refused_at_admission(
    running: System, namespace: str, name: str
) -> None:
    reference = {"name": name, "key": "it"}

    with pytest.raises(ApiError, match=r"passwordSecretRef\.name"):
        await running.create(DATABASE, database(namespace, "odd", passwordSecretRef=reference))
