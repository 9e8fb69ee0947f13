"""The crash matrix over a simulated cloud: gates before the API server and the cloud's API, a provider behind them."""

from __future__ import annotations

import abc
import secrets
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import aiohttp
from aiohttp import web

from devcloud.certificates import Authority, Subject, authority_in
from devcloud.simulator.server import AUTHORITY
from tests.support.api import JsonObject
from tests.support.crash import PROVIDER, CrashRig, Plan, actor_of, plans_by_text
from tests.support.crash_run import CrashRun
from tests.support.end_state import object_state, secret_state
from tests.support.gate import Effect, Gate, Moment
from tests.support.kinds import CLAIM, SECRET, Kind, claim, is_ready
from tests.support.kube_proxy import Relay
from tests.support.simulated_cloud import QUICK, SimulatedCloud

EffectOf = Callable[[str, str, bytes], Effect | None]
"""Names the effect of a request to the cloud, by method, path and body; None for one that changes nothing."""
_HOST = "127.0.0.1"
Simulated = TypeVar("Simulated", bound=SimulatedCloud)


@dataclass(frozen=True, slots=True)
class CloudEndState:
    """All that the system keeps for one claim.

    Attributes:
        claims: Conditions, finalizers and annotation names of the claim, if it is there.
        children: Likewise of each managed resource.
        secrets: Type and key names of each Secret.
        cloud: What the cloud holds, by the kind of it.
    """

    claims: tuple[str, ...]
    children: tuple[str, ...]
    secrets: tuple[str, ...]
    cloud: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Planted:
    """A row, and what distinguishes the server in which it was planted from another one of its name."""

    row: str
    server: str


@dataclass(slots=True)
class CloudRun(CrashRun, Generic[Simulated]):
    """Claims whose databases are on servers of their own in a simulated cloud.

    Attributes:
        api: How effects on the cloud begin.
        effects: By step, what of the cloud's own a clean run must show.
        kinds: Of the managed resources.
        inside: The plural of what goes with its server, whose last report may be missing.
        policy: The claims' deletion policy.
    """

    api: ClassVar[str]
    effects: ClassVar[Mapping[str, str]]
    kinds: ClassVar[tuple[Kind, ...]]
    inside: ClassVar[str] = ""
    policy: ClassVar[str] = "Snapshot"
    cloud: Simulated = field(kw_only=True)

    @abc.abstractmethod
    async def identities(self) -> Mapping[str, str]:
        """Return of each server, by its name, what distinguishes it from another one of that name."""

    @abc.abstractmethod
    async def listed(self) -> Any:
        """Return what the cloud holds of all claims."""

    @abc.abstractmethod
    async def held(self, scope: str, listed: Any) -> Mapping[str, tuple[str, ...]]:
        """Return what of it belongs to a scope, in words."""

    def expected(self) -> Mapping[tuple[str, str], str]:
        return {(step, PROVIDER): f"{self.api} {effect}" for step, effect in self.effects.items()}

    def keeps_login(self, step: str) -> bool:
        # A claim has one login: its old password ends once the new one is in force, and that has to be published.
        return step not in {"rotate", "delete"}

    def plan(self, learned: Mapping[str, list[str]], turns: Sequence[tuple[Moment, ...]]) -> list[Plan]:
        return plans_by_text(learned, turns, cloud=self.api)

    def may_be_missed(self, step: str, plan: Plan) -> bool:
        """Return whether a run may lack this effect: what goes with its server may not get to a report."""
        goes_with_server = step == "delete" and plan.effect == f"PATCH {self.inside}/status"
        return goes_with_server or CrashRun.may_be_missed(self, step, plan)

    def name_of(self, scope: str) -> str:
        # What a cloud receives has the claim's name in it, not always the namespace's.
        return scope

    async def make(self, scope: str) -> None:
        await self.rig.system.namespaced(scope, cloud=self.cloud.cloud)
        await self.rig.system.create(CLAIM, claim(scope, scope, deletionPolicy=self.policy))

    def edit(self) -> JsonObject:
        # Another size would wait for the maintenance window.
        return {"backup": {"retentionDays": 21}}

    async def end_states(self, scopes: Sequence[str]) -> Mapping[str, object]:
        listed = await self.listed()
        return {scope: await self._end_state(scope, listed) for scope in scopes}

    async def _end_state(self, scope: str, listed: Any) -> CloudEndState:
        api = self.rig.system.api
        children = [child for kind in self.kinds for child in await api.items(kind.path(scope))]
        return CloudEndState(
            claims=tuple(object_state(scope, claim) for claim in await api.items(CLAIM.path(scope))),
            children=tuple(object_state(scope, child) for child in children),
            secrets=tuple(secret_state(scope, secret) for secret in await api.items(SECRET.path(scope))),
            cloud=await self.held(scope, listed),
        )

    async def rows(self, scope: str, *statements: str) -> list[tuple[Any, ...]]:
        """Return the last statement's rows in a session of the application."""
        rows: list[tuple[Any, ...]] = []
        async with await self.rig.system.login(scope, scope) as connection:
            for statement in statements:
                cursor = await connection.execute(statement.encode())
                rows = await cursor.fetchall() if cursor.description else []
        return rows

    async def plant(self, scope: str) -> Planted:
        row = secrets.token_hex(8)
        insert = f"INSERT INTO keepsake VALUES ('{row}')"  # noqa: S608 - a word of hexadecimal digits
        await self.rows(scope, "CREATE TABLE keepsake (note text)", insert)
        return Planted(row, await self._identity(scope))

    async def is_home(self, scope: str, planted: Planted) -> None:
        assert await self.rows(scope, "SELECT note FROM keepsake") == [(planted.row,)], scope
        assert await self._identity(scope) == planted.server, scope

    async def _identity(self, scope: str) -> str:
        own = {name: identity for name, identity in (await self.identities()).items() if scope in name}
        assert len(own) == 1, list(own)
        return next(iter(own.values()))


@dataclass(frozen=True, slots=True)
class Place:
    """Where the gate listens: an address, and over TLS by the authority of the cloud's own API, None without TLS."""

    host: str = _HOST
    authority: Authority | None = None

    @property
    def scheme(self) -> str:
        """Of the gate and of the cloud behind it."""
        return "http" if self.authority is None else "https"

    def served_with(self, folder: Path) -> ssl.SSLContext | None:
        """Return what the gate shows to whoever connects; its key is written into a folder."""
        if self.authority is None:
            return None
        certificate, key = self.authority.issue(Subject("gate", hosts=(self.host,))).write(folder, "gate")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        return context

    def connector(self) -> aiohttp.TCPConnector:
        """Return what verifies the cloud behind the gate."""
        context = True if self.authority is None else ssl.create_default_context(cadata=self.authority.pem.decode())
        return aiohttp.TCPConnector(ssl=context, limit=0)


def place_of(cloud: SimulatedCloud, tls: Path) -> Place:
    """Return a place at a cloud's own address, whose authority lies in a folder."""
    return Place(cloud.host.partition(":")[0], authority_in(tls, AUTHORITY))


_HERE = Place()


async def _no_credentials(_endpoint: str) -> None:
    return


@asynccontextmanager
async def crash_rig_of(
    cloud: SimulatedCloud,
    config: Kind,
    effect_of: EffectOf,
    *,
    place: Place = _HERE,
    program: str = "providers",
    write_credentials: Callable[[str], Awaitable[None]] = _no_credentials,
) -> AsyncIterator[CrashRig]:
    """Put gates before the API server and a cloud for its provider, and start it behind them beside a composer.

    `config` is the kind of its ProviderConfig, whose endpoint becomes the gate, which listens at a `place`. `program`
    is the provider's module. `write_credentials` is awaited with the gate's host and port, for credentials that name
    where they may be sent.
    """
    system = cloud.system
    async with AsyncExitStack() as stack:
        account = (f"fairlead-{cloud.cloud}", f"fairlead-provider-{cloud.cloud}")
        module = (program, cloud.cloud)
        provider = await actor_of(system, stack, module, account, *QUICK, gate=Gate(severs=True))
        endpoint = await stack.enter_async_context(_proxy(cloud, provider.gate, effect_of, place))
        provider.flags = (*provider.flags, f"--endpoint-override={endpoint}")
        await write_credentials(endpoint)
        await system.api.merge(config.path("", "default"), {"spec": {"endpoint": f"{place.scheme}://{endpoint}"}})
        await system.start_composer()
        made = CrashRig(system, {PROVIDER: provider})
        try:
            await made.start()
            await system.until(config, "", "default", is_ready)
            yield made
        finally:
            await made.kill()


@asynccontextmanager
async def _proxy(cloud: SimulatedCloud, gate: Gate, effect_of: EffectOf, place: Place) -> AsyncIterator[str]:
    """Run a proxy before a simulated cloud; yield its host and port."""
    folder, timeout = cloud.system.folder, aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=place.connector(), auto_decompress=False, timeout=timeout) as session:
        application = web.Application(client_max_size=16 * 2**20)
        application.router.add_route("*", "/{path:.*}", Relay(cloud.url, session, gate, name=effect_of).answer)
        runner = web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, place.host, 0, ssl_context=place.served_with(folder)).start()
            yield f"{place.host}:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()
