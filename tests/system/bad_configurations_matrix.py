"""More ProviderConfigs in trouble: adoption refused, another server at the address, what a claim reads."""

import pytest

from tests.support.api import JsonObject
from tests.support.kinds import (
    CLAIM,
    DATABASE,
    PROVIDER_CONFIG,
    claim,
    composition,
    condition,
    database,
    in_trouble,
    is_ready,
)
from tests.support.system import System
from tests.system.test_bad_configurations import Config, config

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


async def test_a_provider_config_in_use_is_held_with_the_count(serving: System, namespace: str) -> None:
    async with config(serving, namespace, Config("")):
        for name in ("one", "two"):
            await serving.create(DATABASE, database(namespace, name, config=namespace))
        for name in ("one", "two"):
            await serving.until(DATABASE, namespace, name, is_ready)
        await serving.api.delete(PROVIDER_CONFIG.path("", namespace))
        held = await serving.until(PROVIDER_CONFIG, "", namespace, in_trouble("InUse"))
        assert "2" in condition(held, "Synced")["message"]
        for name in ("one", "two"):
            await serving.delete(DATABASE, namespace, name)
        await serving.api.until_gone(PROVIDER_CONFIG.path("", namespace))


async def test_adoption_of_a_foreign_database_is_refused(serving: System, namespace: str) -> None:
    server, name = serving.server.server, f"foreign_{namespace.replace('-', '_')}"
    await server.execute(f"CREATE DATABASE {name}")
    ((oid,),) = await server.execute("SELECT oid FROM pg_database WHERE datname = current_database()", database=name)
    mark = serving.sql.mark()
    obj = database(namespace, "adopter")
    obj["metadata"]["annotations"] = {"fairlead.dev/external-name": name, "fairlead.dev/adopt": str(oid)}
    await serving.create(DATABASE, obj)
    resource = await serving.until(DATABASE, namespace, "adopter", in_trouble("AdoptionRefused"))
    assert condition(resource, "Stalled")["status"] == "True"
    assert serving.sql.changes(mark) == []
    # Nothing of ours hangs on it: it goes at once, and the foreign database stays.
    await serving.delete(DATABASE, namespace, "adopter")
    assert serving.sql.changes(mark) == []


async def test_another_server_behind_the_same_address_changes_nothing(serving: System, namespace: str) -> None:
    await serving.create(DATABASE, database(namespace, "pinned"))
    before = await serving.until(DATABASE, namespace, "pinned", is_ready)
    async with serving.another_server() as other:
        for name in ("pinned", "unborn"):
            if name == "unborn":
                await serving.create(DATABASE, database(namespace, name))
            await serving.ask_for_a_pass(DATABASE, namespace, name)
            resource = await serving.until(DATABASE, namespace, name, in_trouble("AccountChanged"))
            assert condition(resource, "Stalled")["status"] == "True"
        pinned = await serving.api.get(DATABASE.path(namespace, "pinned"))
        assert _external_reference(pinned) == _external_reference(before)
        assert other.changes() == []
    for name in ("pinned", "unborn"):
        await serving.ask_for_a_pass(DATABASE, namespace, name)
        await serving.until(DATABASE, namespace, name, is_ready)
    assert _external_reference(await serving.api.get(DATABASE.path(namespace, "pinned"))) == _external_reference(before)


def _external_reference(obj: JsonObject) -> dict[str, str]:
    names = ("external-name", "incarnation", "account")
    return {name: obj["metadata"]["annotations"][f"fairlead.dev/{name}"] for name in names}


async def test_a_missing_provider_config_and_a_closed_one_read_the_same_in_a_claim(
    serving: System, namespace: str
) -> None:
    closed, missing = f"{namespace}-closed", f"{namespace}-missing"
    await serving.start_composer()

    async def message_for(config: str) -> str:
        spec = {"forProvider": {"databaseName": "app", "username": "app"}, "providerConfigRef": {"name": config}}
        template = {"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": spec}
        body = composition(f"{config}-user", {"name": "database", "template": template})
        async with serving.composition(body) as name:
            await serving.create(CLAIM, claim(namespace, config, compositionRef={"name": name}))
            expected = in_trouble("ProviderConfigNotFound", "NotAllowed")
            obj = await serving.until(CLAIM, namespace, config, expected)
            await serving.delete(CLAIM, namespace, config)
        return str(condition(obj, "Synced")["message"])

    async with config(serving, closed, Config("", spec={"allowedNamespaces": {"names": ["some-other"]}})):
        seen = (await message_for(closed)).replace(closed, "X")
        assert seen == (await message_for(missing)).replace(missing, "X")
