"""The crash matrix over a simulated cloud: gates before the API server and the cloud's API, a provider behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
from aiohttp import web

from tests.support.crash import PROVIDER, CrashRig, actor_of
from tests.support.gate import Effect, Gate
from tests.support.kinds import Kind, is_ready
from tests.support.kube_proxy import Relay
from tests.support.simulated_cloud import QUICK, SimulatedCloud

EffectOf = Callable[[str, str, bytes], Effect | None]
"""Names the effect of a request to the cloud, by method, path and body; None for one that changes nothing."""
_HOST = "127.0.0.1"


@asynccontextmanager
async def crash_rig_of(cloud: SimulatedCloud, config: Kind, effect_of: EffectOf) -> AsyncIterator[CrashRig]:
    """Put gates before the API server and a cloud for its provider, and start it behind them beside a composer.

    `config` is the kind of its ProviderConfig, whose endpoint becomes the gate.
    """
    system = cloud.system
    async with AsyncExitStack() as stack:
        account = (f"fairlead-{cloud.cloud}", f"fairlead-provider-{cloud.cloud}")
        module = ("providers", cloud.cloud)
        provider = await actor_of(system, stack, module, account, *QUICK, gate=Gate(severs=True))
        endpoint = await stack.enter_async_context(_proxy(cloud.url, provider.gate, effect_of))
        provider.flags = (*provider.flags, f"--endpoint-override={endpoint}")
        await system.api.merge(config.path("", "default"), {"spec": {"endpoint": f"http://{endpoint}"}})
        await system.start_composer()
        made = CrashRig(system, {PROVIDER: provider})
        try:
            await made.start()
            await system.until(config, "", "default", is_ready)
            yield made
        finally:
            await made.kill()


@asynccontextmanager
async def _proxy(upstream: str, gate: Gate, effect_of: EffectOf) -> AsyncIterator[str]:
    """Run a proxy before a simulated cloud; yield its host and port."""
    async with aiohttp.ClientSession(auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None)) as session:
        application = web.Application(client_max_size=16 * 2**20)
        application.router.add_route("*", "/{path:.*}", Relay(upstream, session, gate, name=effect_of).answer)
        runner = web.AppRunner(application, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, _HOST, 0).start()
            yield f"{_HOST}:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()
