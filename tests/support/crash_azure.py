"""The crash matrix over a simulated ARM: Azure's provider dies at each effect on the cluster and on Azure."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.support.api import JsonObject
from tests.support.azure import AZURE_CONFIG, FLEXIBLE_SERVER, SERVER_DATABASE, Azure
from tests.support.crash import PROVIDER, SCOPE, CrashRig, Plan, plans_by_text
from tests.support.crash_cloud import crash_rig_of, place_of
from tests.support.crash_run import CrashRun
from tests.support.end_state import name_in, object_state, secret_state
from tests.support.gate import Effect, Moment
from tests.support.kinds import CLAIM, SECRET, claim

_CHANGING = frozenset({"PUT", "PATCH", "DELETE"})
_TYPES = re.compile(r"/flexibleServers/[^/]+(?:/(?P<inside>\w+)/[^/]+)?$")
_CHILDREN = (FLEXIBLE_SERVER, SERVER_DATABASE)
_MADE_ONCE = ("flexibleServers.put", "databases.put")


@dataclass(frozen=True, slots=True)
class AzureEndState:
    """All that the system keeps for one claim.

    Attributes:
        claims: Conditions, finalizers and annotation names of the claim, if it is there.
        children: Likewise of each managed resource.
        secrets: Type and key names of each Secret.
        servers: Name, state, settings and databases of each server.
        dropped: Names of the servers that could be revived.
    """

    claims: tuple[str, ...]
    children: tuple[str, ...]
    secrets: tuple[str, ...]
    servers: tuple[str, ...]
    dropped: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Planted:
    """A row, and when the server was made in which it was planted."""

    row: str
    created_at: str


@dataclass(slots=True)
class AzureRun(CrashRun):
    """Claims whose databases lie on flexible servers of their own."""

    azure: Azure | None = None

    @property
    def arm(self) -> Azure:
        assert self.azure is not None
        return self.azure

    def expected(self) -> Mapping[tuple[str, str], str]:
        return {
            ("create", PROVIDER): "ARM PUT server",
            ("update", PROVIDER): "ARM PATCH server",
            ("rotate", PROVIDER): "ARM PATCH server",
            ("delete", PROVIDER): "ARM DELETE server",
        }

    def keeps_login(self, step: str) -> bool:
        # A server has one administrator: his old password ends once the new one is in force, and that has to be
        # published.
        return step not in {"rotate", "delete"}

    def plan(self, learned: Mapping[str, list[str]], turns: Sequence[tuple[Moment, ...]]) -> list[Plan]:
        return plans_by_text(learned, turns, cloud="ARM")

    def may_be_missed(self, step: str, plan: Plan) -> bool:
        """Return whether a run may lack this effect: a database that goes with its server may not get to a report."""
        goes_with_server = step == "delete" and plan.effect == "PATCH flexibleserverdatabases/status"
        return goes_with_server or CrashRun.may_be_missed(self, step, plan)

    def name_of(self, scope: str) -> str:
        # ARM's paths have the claim's name in them, not the namespace's.
        return scope

    async def make(self, scope: str) -> None:
        system = self.rig.system
        await system.namespaced(scope, cloud="azure")
        await system.create(CLAIM, claim(scope, scope, deletionPolicy="Delete"))

    def edit(self) -> JsonObject:
        # Another size would wait for the maintenance window.
        return {"backup": {"retentionDays": 21}}

    async def crash(self, step: str) -> None:
        """Crash a step; whatever happened, ARM carried out one PUT for each server and each database."""
        await CrashRun.crash(self, step)
        calls = [call for call in await self.arm.calls() if call["action"] in _MADE_ONCE and call["outcome"] == "ok"]
        made = Counter((call["action"], call["identifier"]) for call in calls)
        assert [call for call, times in made.items() if times > 1] == []

    async def end_states(self, scopes: Sequence[str]) -> Mapping[str, object]:
        servers = await self.arm.control("GET", "views")
        dropped = [arm_id.rpartition("/")[2] for arm_id in await self.arm.control("GET", "dropped")]
        return {scope: await self._end_state(scope, servers, dropped) for scope in scopes}

    async def _end_state(self, scope: str, servers: list[JsonObject], dropped: list[str]) -> AzureEndState:
        api = self.rig.system.api
        children = [child for kind in _CHILDREN for child in await api.items(kind.path(scope))]
        return AzureEndState(
            claims=tuple(object_state(scope, claim) for claim in await api.items(CLAIM.path(scope))),
            children=tuple(object_state(scope, child) for child in children),
            secrets=tuple(secret_state(scope, secret) for secret in await api.items(SECRET.path(scope))),
            servers=tuple(_server_state(scope, server) for server in servers if scope in server["name"]),
            dropped=tuple(name_in(scope, name) for name in dropped if scope in name),
        )

    async def plant(self, scope: str) -> Planted:
        row = secrets.token_hex(8)
        async with await self.rig.system.login(scope, scope) as connection:
            await connection.execute("CREATE TABLE keepsake (note text)")
            await connection.execute("INSERT INTO keepsake VALUES (%s)", (row,))
        return Planted(row, await self._created_at(scope))

    async def is_home(self, scope: str, planted: Planted) -> None:
        async with await self.rig.system.login(scope, scope) as connection:
            rows = await (await connection.execute("SELECT note FROM keepsake")).fetchall()
        assert rows == [(planted.row,)], scope
        assert await self._created_at(scope) == planted.created_at, scope

    async def _created_at(self, scope: str) -> str:
        servers = [server for server in await self.arm.control("GET", "views") if scope in server["name"]]
        assert len(servers) == 1, [server["name"] for server in servers]
        return str(servers[0]["systemData"]["createdAt"])


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
