"""What one namespace may use up: its deletions within an hour, and the databases that it leaves behind."""

from __future__ import annotations

import pytest

from tests.support.kinds import DATABASE, PROVIDER_CONFIG, condition, database, in_trouble, is_ready
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_LONG_AGO = "2020-01-01T00:00:00Z"


async def _limited(system: System, name: str, limits: dict[str, int]) -> None:
    await system.create(PROVIDER_CONFIG, system.provider_config(name, limits=limits))


async def _made(system: System, namespace: str, name: str, config: str, *, hours_ago: bool) -> None:
    await system.create(DATABASE, database(namespace, name, config=config))
    await system.until(DATABASE, namespace, name, is_ready)
    if hours_ago:
        path = f"{DATABASE.path(namespace, name)}/status"
        assert (await system.api.get(DATABASE.path(namespace, name)))["status"]["madeAt"]
        await system.api.merge(path, {"status": {"madeAt": _LONG_AGO}})


async def test_one_namespaces_deletions_leave_another_its_own_part(serving: System, namespace: str) -> None:
    await _limited(serving, namespace, {})
    async with serving.namespace() as neighbour:
        for number in range(4):
            await _made(serving, namespace, f"mine-{number}", namespace, hours_ago=True)
        await _made(serving, neighbour, "theirs", namespace, hours_ago=True)
        await _made(serving, namespace, "of-today", namespace, hours_ago=False)

        for number in range(3):
            await serving.delete(DATABASE, namespace, f"mine-{number}")
        await serving.api.delete(DATABASE.path(namespace, "mine-3"))
        held = await serving.until(DATABASE, namespace, "mine-3", in_trouble("Brake"))
        assert f"3 databases of namespace {namespace}" in condition(held, "Synced")["message"]

        await serving.delete(DATABASE, neighbour, "theirs")
        await serving.delete(DATABASE, namespace, "of-today")
        counted = (await serving.api.get(PROVIDER_CONFIG.path("", namespace)))["status"]["recentDestroys"]
        assert sum(entry["count"] for entry in counted if entry["namespace"] == namespace) == 3
        assert sum(entry["count"] for entry in counted if entry["namespace"] == neighbour) == 1

        released = {"fairlead.dev/brake-released": "2999-01-01T00:00:00Z"}
        await serving.edit(PROVIDER_CONFIG, "", namespace, {"metadata": {"annotations": released}})
        await serving.ask_for_a_pass(DATABASE, namespace, "mine-3")
        await serving.api.until_gone(DATABASE.path(namespace, "mine-3"))


async def test_a_limit_counts_what_was_released_also_after_a_restart(serving: System, namespace: str) -> None:
    await _limited(serving, namespace, {"perNamespace": 2})
    for name in ("one", "two"):
        await serving.create(DATABASE, database(namespace, name, config=namespace, deletionPolicy="Orphan"))
        await serving.until(DATABASE, namespace, name, is_ready)
        await serving.delete(DATABASE, namespace, name)

    await serving.create(DATABASE, database(namespace, "three", config=namespace))
    refused = await serving.until(DATABASE, namespace, "three", in_trouble("LimitReached"))
    assert f"at most 2 databases of namespace {namespace}" in condition(refused, "Synced")["message"]

    assert await serving.started[-1].terminate() == 0
    await serving.start_provider()
    await serving.ask_for_a_pass(DATABASE, namespace, "three")
    assert in_trouble("LimitReached")(await serving.api.get(DATABASE.path(namespace, "three")))
    async with serving.namespace() as neighbour:
        await serving.create(DATABASE, database(neighbour, "free", config=namespace))
        await serving.until(DATABASE, neighbour, "free", is_ready)
        await serving.delete(DATABASE, neighbour, "free")
    await serving.delete(DATABASE, namespace, "three")
