"""The crash matrix over a simulated ARM: Azure's provider dies at each effect on the cluster and on Azure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar

from tests.support.api import JsonObject
from tests.support.azure import AZURE_CONFIG, FLEXIBLE_SERVER, SERVER_DATABASE, Azure
from tests.support.crash import SCOPE, CrashRig
from tests.support.crash_cloud import CloudRun, crash_rig_of, place_of
from tests.support.crash_run import CrashRun
from tests.support.end_state import name_in
from tests.support.gate import Effect
from tests.support.kinds import Kind

_CHANGING = frozenset({"PUT", "PATCH", "DELETE"})
_TYPES = re.compile(r"/flexibleServers/[^/]+(?:/(?P<inside>\w+)/[^/]+)?$")
_MADE_ONCE = ("flexibleServers.put", "databases.put")


@dataclass(slots=True)
class AzureRun(CloudRun[Azure]):
    """Claims whose databases lie on flexible servers of their own."""

    api: ClassVar[str] = "ARM"
    effects: ClassVar[Mapping[str, str]] = {
        "create": "PUT server",
        "update": "PATCH server",
        "rotate": "PATCH server",
        "delete": "DELETE server",
    }
    kinds: ClassVar[tuple[Kind, ...]] = (FLEXIBLE_SERVER, SERVER_DATABASE)
    inside: ClassVar[str] = SERVER_DATABASE.plural
    policy: ClassVar[str] = "Delete"

    async def crash(self, step: str) -> None:
        """Crash a step; whatever happened, ARM carried out one PUT for each server and each database."""
        await CrashRun.crash(self, step)
        calls = [call for call in await self.cloud.calls() if call["action"] in _MADE_ONCE and call["outcome"] == "ok"]
        made = Counter((call["action"], call["identifier"]) for call in calls)
        assert [call for call, times in made.items() if times > 1] == []

    async def listed(self) -> tuple[list[JsonObject], list[str]]:
        dropped = [arm_id.rpartition("/")[2] for arm_id in await self.cloud.control("GET", "dropped")]
        return await self.cloud.control("GET", "views"), dropped

    async def held(self, scope: str, listed: tuple[list[JsonObject], list[str]]) -> Mapping[str, tuple[str, ...]]:
        servers, dropped = listed
        return {
            "servers": tuple(_server_state(scope, server) for server in servers if scope in server["name"]),
            "dropped": tuple(name_in(scope, name) for name in dropped if scope in name),
        }

    async def identities(self) -> Mapping[str, str]:
        servers = await self.cloud.control("GET", "views")
        return {server["name"]: str(server["systemData"]["createdAt"]) for server in servers}


def _server_state(scope: str, server: JsonObject) -> str:
    properties = server["properties"]
    databases = sorted(name_in(scope, name) for name in server["children"]["databases"])
    return (
        f"{name_in(scope, server['name'])} {properties['state']} {server['sku']['name']}"
        f" {properties['backup']['backupRetentionDays']} {databases}"
    )


@asynccontextmanager
async def crash_azure_rig(azure: Azure) -> AsyncIterator[CrashRig]:
    """Put gates before the API server and ARM for Azure's provider, and start it behind them beside a composer."""
    place = place_of(azure, azure.system.folder / "azure" / "tls")
    async with crash_rig_of(azure, AZURE_CONFIG, _effect_of, place=place) as rig:
        yield rig


def _effect_of(method: str, path: str, body: bytes) -> Effect | None:
    """Name the effect of a call; a scope's name is part of the server's."""
    del body
    match, scope = _TYPES.search(path), SCOPE.search(path.encode())
    if method not in _CHANGING or match is None or scope is None:
        return None
    return Effect(scope[0].decode(), f"ARM {method} {match['inside'] or 'server'}")
