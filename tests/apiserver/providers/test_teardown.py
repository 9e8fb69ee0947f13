"""What becomes of a database when its resource goes, and what is never done without an instruction or a proof."""

from __future__ import annotations

import pytest

from providers.external.credential import Login
from tests.apiserver.providers.actions import annotate, databases, login, made, poke
from tests.support.api import JsonObject
from tests.support.kinds import DATABASE, NAMESPACE, PROVIDER_CONFIG, condition, in_trouble
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


async def test_a_paused_resource_gets_nothing_not_even_its_deletion(system: System, namespace: str) -> None:
    obj = await made(system, namespace, "paused")
    name = obj["status"]["externalName"]
    await annotate(system, namespace, "paused", paused="true", paused_reason="moving the rack")
    obj = await system.until(
        DATABASE, namespace, "paused", lambda now: condition(now, "Synced").get("reason") == "Paused"
    )
    assert "moving the rack" in condition(obj, "Synced")["message"]
    assert condition(obj, "Ready")["status"] == "True"
    await system.server.server.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT 3')
    await system.edit(DATABASE, namespace, "paused", {"spec": {"forProvider": {"connectionLimit": 9}}})
    await poke(system, namespace, "paused")
    assert await system.connection_limit(name) == 3
    await system.api.delete(DATABASE.path(namespace, "paused"))
    await poke(system, namespace, "paused")
    assert name in await databases(system)

    await annotate(system, namespace, "paused", paused=None, paused_reason=None)
    await system.api.until_gone(DATABASE.path(namespace, "paused"))
    assert name not in await databases(system)


async def test_observe_shows_and_corrects_nothing_and_releases(system: System, namespace: str) -> None:
    obj = await made(system, namespace, "observed", forProvider={
        "databaseName": "app", "username": "app", "connectionLimit": 5,
    })  # fmt: skip
    name = obj["status"]["externalName"]
    await system.edit(DATABASE, namespace, "observed", {"spec": {"managementPolicy": "Observe"}})
    await system.server.server.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT 3')

    def shown(now: JsonObject) -> bool:
        drift = now["status"].get("drift", [])
        return any(entry["path"] == "connectionLimit" and entry["action"] == "Observed" for entry in drift)

    await system.until(DATABASE, namespace, "observed", shown)
    assert await system.connection_limit(name) == 3
    await system.delete(DATABASE, namespace, "observed")
    assert name in await databases(system)


async def test_a_namespace_no_longer_allowed_keeps_what_it_has_and_changes_nothing(system: System) -> None:
    async with system.namespace(team="a") as namespace:
        config = f"closing-{namespace}"
        selector = {"selector": {"matchLabels": {"team": "a"}}}
        await system.create(PROVIDER_CONFIG, system.provider_config(config, allowedNamespaces=selector))
        obj = await made(system, namespace, "tenant", config=config)
        await system.api.merge(NAMESPACE.path("", namespace), {"metadata": {"labels": {"team": None}}})
        await system.edit(DATABASE, namespace, "tenant", {"spec": {"forProvider": {"connectionLimit": 4}}})

        await system.until(DATABASE, namespace, "tenant", in_trouble("NotAllowed"))
        assert await login(system, obj) is Login.OK
        await system.api.delete(DATABASE.path(namespace, "tenant"))
        await poke(system, namespace, "tenant")
        assert obj["status"]["externalName"] in await databases(system)
        await system.api.merge(NAMESPACE.path("", namespace), {"metadata": {"labels": {"team": "a"}}})
        await system.api.until_gone(DATABASE.path(namespace, "tenant"))
