"""The crash matrix over a simulated cloud: gates before the API server and the cloud's API, a provider behind them."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from aiohttp import web

from devcloud.certificates import Authority, Subject, authority_in
from devcloud.simulator.server import AUTHORITY
from tests.support.crash import PROVIDER, CrashRig, actor_of
from tests.support.gate import Effect, Gate
from tests.support.kinds import Kind, is_ready
from tests.support.kube_proxy import Relay
from tests.support.simulated_cloud import QUICK, SimulatedCloud

EffectOf = Callable[[str, str, bytes], Effect | None]
"""Names the effect of a request to the cloud, by method, path and body; None for one that changes nothing."""
_HOST = "127.0.0.1"


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
