"""Random walks of claims whose databases lie on the rig's own PostgreSQL server."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import psycopg

from tests.support.api import JsonObject
from tests.support.home import Home, claim, furnish
from tests.support.kinds import CLAIM, DATABASE, PROVIDER_CONFIG, Kind, is_ready
from tests.support.processes import Program
from tests.support.system import System
from tests.support.walk_world import PROVIDER, Inhabitant, World, behind_one_line

CONNECTIONS = {"small": 20, "medium": 50, "large": 100, "xlarge": 200}
WORK_MEM = {"small": "4MB", "medium": "8MB", "large": "16MB", "xlarge": "32MB"}
_QUICK = ("--sweep=1", "--resync=5", "--grace=3", "--rotation-grace=5")
_ANSWER_S = 3.0
_SSL_REQUEST = struct.pack("!ii", 8, 80877103)
_CATALOG = (
    "SELECT d.datname, d.datconnlimit, array_to_string(s.setconfig, '|') FROM pg_catalog.pg_database d "
    "LEFT JOIN pg_catalog.pg_db_role_setting s ON s.setdatabase = d.oid AND s.setrole = 0"
)


@dataclass(frozen=True, slots=True)
class OnPremCloud:
    """The server's catalog: by database its connection limit and its settings."""

    unreachable: str = ""
    limits: dict[str, int] = field(default_factory=dict)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)

    def gap(self, claim: JsonObject, binding: dict[str, str]) -> str:
        spec, database = claim["spec"], binding["database"]
        if database not in self.limits:
            return f"no database {database}"
        wanted = spec.get("parameters", {"work_mem": WORK_MEM[spec["size"]]})
        gaps = []
        if self.limits[database] != CONNECTIONS[spec["size"]]:
            gaps.append(f"connection limit {self.limits[database]}, asked for {CONNECTIONS[spec['size']]}")
        if self.settings[database] != wanted:
            gaps.append(f"settings {self.settings[database]}, asked for {wanted}")
        return "; ".join(gaps)


@dataclass(slots=True, kw_only=True)
class OnPremWorld(World):
    """The rig's server."""

    homes: dict[str, Home] = field(default_factory=dict)

    @property
    def child_kind(self) -> Kind:
        return DATABASE

    async def launch_provider(self, *flags: str) -> Program:
        return await self.system.start_provider(*flags, *_QUICK)

    async def look(self) -> OnPremCloud:
        if not await self._answers():
            return OnPremCloud("the server does not answer")
        try:
            async with asyncio.timeout(_ANSWER_S):
                rows = await self.system.server.server.execute(_CATALOG)
        except (psycopg.Error, TimeoutError):
            return OnPremCloud("the server does not answer")
        settings = {}
        for name, _limit, stored in rows:
            pairs = (pair.split("=", 1) for pair in str(stored or "").split("|") if pair)
            settings[str(name)] = dict(pairs)
        return OnPremCloud("", {str(name): int(str(limit)) for name, limit, _ in rows}, settings)

    async def _answers(self) -> bool:
        """Return whether the server's TLS proxy answers at all: where it hangs, one login would hang for each claim."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                reader, writer = await asyncio.open_connection(self.system.server.host, self.system.server.port)
                try:
                    writer.write(_SSL_REQUEST)
                    return await reader.read(1) == b"S"
                finally:
                    writer.transport.abort()
        except (OSError, TimeoutError):
            return False

    async def move_in(self, walkers: Sequence[Inhabitant]) -> None:
        room = asyncio.Semaphore(6)
        for walker in walkers:
            body = claim(walker.namespace, walker.name, deletionPolicy="Delete")
            await self.system.create(CLAIM, body)
        await self.until_all(CLAIM, walkers[0].namespace, [walker.name for walker in walkers], is_ready)

        async def plant(walker: Inhabitant) -> None:
            async with room:
                self.homes[walker.name] = await furnish(self.system, walker.namespace, walker.name)

        await asyncio.gather(*(plant(walker) for walker in walkers))

    async def losses(self, walkers: Iterable[Inhabitant]) -> list[str]:
        wrong = []
        for walker in walkers:
            home = self.homes[walker.name]
            try:
                if await home.names() != [home.database]:
                    wrong.append(f"{walker.name}: another database than at the start")
                elif await home.rows_behind() != [home.row]:
                    wrong.append(f"{walker.name}: the planted row is gone")
            except (AssertionError, psycopg.Error) as error:
                wrong.append(f"{walker.name}: {error}")
        return wrong


@asynccontextmanager
async def onprem_world(system: System) -> AsyncIterator[OnPremWorld]:
    """Start composer and provider on a rig, both behind one line to the API server."""
    limits = {"spec": {"limits": {"destroysPerHour": 10_000}}}
    await system.api.merge(PROVIDER_CONFIG.path("", "default"), limits)
    async with behind_one_line(system, {PROVIDER: ("fairlead-onprem", "fairlead-provider-onprem")}) as (line, ways):
        world = OnPremWorld(system=system, line=line, kubeconfigs=ways)
        try:
            await world.start()
            yield world
        finally:
            await world.end()
