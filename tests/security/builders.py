"""Compositions that the attacks use, and what they ask of the running platform."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

import aiohttp

from tests.support.api import JsonObject
from tests.support.kinds import CONFIG_MAP, DATABASE, condition
from tests.support.system import System

Key = TypeVar("Key")


async def at_once(attempts: Mapping[Key, Awaitable[object]]) -> dict[Key, BaseException | None]:
    """Make attempts beside each other; return by what each of them failed, None where it did not."""
    ended = await asyncio.gather(*attempts.values(), return_exceptions=True)
    errors = (result if isinstance(result, BaseException) else None for result in ended)
    return dict(zip(attempts, errors, strict=True))


def expect(failure: BaseException | None) -> None:
    """Fail as an attempt failed."""
    if failure is not None:
        raise failure


def database(config: str = "default", *, name: str = "database", **spec: Any) -> JsonObject:
    """Return a resource: a PostgresDatabase by a ProviderConfig."""
    whole = {"forProvider": {"databaseName": "app", "username": "app"}, "providerConfigRef": {"name": config}, **spec}
    return {"name": name, "template": {"apiVersion": DATABASE.api_version, "kind": DATABASE.kind, "spec": whole}}


def settings(**data: str) -> JsonObject:
    """Return a resource: a ConfigMap."""
    return {"name": "settings", "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": data or {"a": "b"}}}


def says(type_: str, *reasons: str) -> Any:
    """Return a test whether an object's condition has one of these reasons."""
    return lambda obj: condition(obj, type_).get("reason") in reasons


async def composed_settings(system: System, namespace: str) -> list[JsonObject]:
    """Return the ConfigMaps of a namespace that claims composed."""
    config_maps = await system.api.items(CONFIG_MAP.path(namespace))
    return [
        config_map for config_map in config_maps if "fairlead.dev/claim" in config_map["metadata"].get("labels", {})
    ]


async def databases_of(system: System, namespace: str, claim: str) -> list[JsonObject]:
    """Return the PostgresDatabases that a claim composed."""
    databases = await system.api.items(DATABASE.path(namespace))
    name = "fairlead.dev/claim-name"
    return [database for database in databases if database["metadata"].get("annotations", {}).get(name) == claim]


async def owned_databases(system: System, namespace: str) -> list[str]:
    """Return the databases that are on the server for claims of a namespace, living or left over."""
    rows = await system.server.server.execute(
        "SELECT o.database, o.namespace FROM fairlead.ownership o JOIN pg_catalog.pg_database d ON d.oid = o.oid",
        database=system.server.database,
    )
    return sorted(str(database) for database, of in rows if of == namespace)


async def panics(system: System) -> float:
    """Return how many passes of both processes ended in a crash, by their own metrics."""
    total = 0.0
    for port in (system.ports["composer"], system.ports["provider"]):
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
            lines = (await answer.text()).splitlines()
        counts = [line for line in lines if line.startswith("controller_runtime_reconcile_panics_total{")]
        total += sum(float(line.rpartition(" ")[2]) for line in counts)
    return total
