"""What 2,000 flexible servers cost at rest: Azure's provider as a process, a simulated ARM, a real API server.

A quarter of an hour with the provider's own intervals holds a resync of each object, for which lists stand. Most
servers carry our tags and are observed only, so that all are there without their creations at the pace of a principal's
budget; some are managed and have a login. No database can be reached. Calls are counted by ARM.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
from collections import Counter
from collections.abc import Coroutine, Iterable
from datetime import datetime
from functools import partial
from typing import Any, Final

from benchmarks import usage
from benchmarks.plane import on_a_plane
from benchmarks.report import Figure, print_figures
from devcloud.azure.platform import RESOURCE_GROUP
from providers.azure import PROVIDER
from providers.external.ownership import owner_of
from runtime.objects import uid_of
from tests.support.api import JsonObject
from tests.support.azure import FLEXIBLE_SERVER, Azure, flexible_server, simulated_azure
from tests.support.kinds import CONFIG_MAP, NAMESPACE, condition
from tests.support.processes import Program
from tests.support.simulated_cloud import DURATIONS
from tests.support.system import System
from tests.support.waiting import eventually

_NAMESPACES: Final = 20
_AT_ONCE: Final = 16
_PAGE: Final = 100
_LIMIT_SECONDS: Final = 1800.0
_LIST: Final = "flexibleServers.listBySubscription"
_SERVER: Final[JsonObject] = {
    "location": "uksouth",
    "sku": {"name": "Standard_B2s", "tier": "Burstable"},
    "properties": {
        "createMode": "Create",
        "version": "16",
        "administratorLogin": "boss",
        "administratorLoginPassword": "Sufficient-1",
    },
}


def figures(*, servers: int = 2000, logins: int = 50, seconds: float = 900.0) -> list[Figure]:
    """Run on one fresh control plane; `seconds` hold a resync of each server with the provider's own intervals."""
    return on_a_plane(partial(_measure, servers, logins, seconds))


async def _measure(servers: int, logins: int, seconds: float, system: System) -> list[Figure]:
    async with simulated_azure(system, real=False) as azure:
        await azure.behave(throttle=None)
        observed = servers - logins
        await _make(azure, observed)
        for number in range(logins):
            obj = flexible_server(_namespace(number), f"logins-{number}")
            await system.create(FLEXIBLE_SERVER, obj)
        # From here on ARM's own buckets count, as they do for everybody.
        await azure.behave(throttle={})
        provider = await azure.start_provider("--log-level=INFO")
        for reason, objects in (("ObserveOnly", observed), ("InSync", logins)):
            await eventually(
                partial(_all_say, azure, provider, reason, objects), f"all {reason}", limit_s=_LIMIT_SECONDS, every_s=5
            )
        since = await azure.mark()
        async with usage.measured(provider.pid) as used:
            await asyncio.sleep(seconds)
        if not provider.is_running:
            raise RuntimeError(f"the provider ended while it was measured: {provider.text()[-2000:]}")
        calls = [call for call in await azure.calls(since) if call["action"] != "entra.token"]
        return [
            *_counted(calls, servers, seconds),
            Figure("azure at rest: CPU of one core", used.cpu_seconds / seconds * 100, "%"),
            Figure("azure at rest: memory (PSS), peak", used.peak_mib, "MiB"),
        ]


def _counted(calls: list[JsonObject], servers: int, seconds: float) -> list[Figure]:
    pages = [call for call in calls if call["action"] == _LIST]
    sweeps = sum("$skiptoken" not in page["params"] for page in pages)
    minutes = Counter(int(datetime.fromisoformat(str(call["at"])).timestamp() // 60) for call in calls)
    budget = PROVIDER.rate.reads_per_second * 60
    of_one = sum(bool(call["identifier"]) for call in calls)
    refused = [call for call in calls if call["outcome"] == "SubscriptionRequestsThrottled"]
    return [
        Figure("azure at rest: calls in all", len(calls), "", aim=budget * seconds / 60),
        Figure("azure at rest: calls in a minute, most", max(minutes.values(), default=0), "", aim=budget),
        Figure("azure at rest: calls for one server", of_one, "", aim=0),
        Figure("azure at rest: sweeps", sweeps, ""),
        Figure("azure at rest: pages of sweeps", len(pages), "", aim=(sweeps + 1) * math.ceil(servers / _PAGE)),
        Figure("azure at rest: changing calls", sum(call["mutating"] for call in calls), "", aim=0),
        Figure("azure at rest: calls that ARM throttled", len(refused), "", aim=0),
    ]


def _namespace(number: int) -> str:
    return f"sweep-{number % _NAMESPACES}"


async def _make(azure: Azure, observed: int) -> None:
    """Make objects that observe, and for each its server as the provider would have, with the tags of its owner."""
    system = azure.system
    config_map = await system.api.get(CONFIG_MAP.path("fairlead-system", "fairlead-installation"))
    uids = {}
    for name in (f"sweep-{number}" for number in range(_NAMESPACES)):
        await system.namespaced(name)
        uids[name] = uid_of(await system.api.get(NAMESPACE.path("", name)))
    await azure.clock(durations=0)

    async def make(number: int) -> None:
        name, namespace = f"bench-{number:05}", _namespace(number)
        obj = flexible_server(namespace, f"orders-{number}", managementPolicy="Observe")
        obj["metadata"]["annotations"] = {"fairlead.dev/external-name": f"{RESOURCE_GROUP}/{name}"}
        created = await system.create(FLEXIBLE_SERVER, obj)
        owner = owner_of(created, config_map["data"]["id"], uids[namespace])
        tags = {"installation": owner.installation, "identity": owner.identity, "claim": owner.claim,
                "namespace-uid": owner.namespace_uid}  # fmt: skip
        tagged = {**_SERVER, "tags": {f"fairlead-{word}": value for word, value in tags.items()}}
        await azure.person("PUT", name, tagged)

    await _all_of(make(number) for number in range(observed))
    await azure.clock(durations=DURATIONS)


async def _all_of(made: Iterable[Coroutine[Any, Any, Any]]) -> None:
    places = asyncio.Semaphore(_AT_ONCE)

    async def limited(coroutine: Coroutine[Any, Any, Any]) -> Any:
        async with places:
            return await coroutine

    await asyncio.gather(*map(limited, made))


async def _all_say(azure: Azure, provider: Program, reason: str, objects: int) -> bool:
    if not provider.is_running:
        # It lost its Lease on a machine that had no time for it: started again, as a Deployment does.
        await provider.start()
    listed = await azure.system.api.items(FLEXIBLE_SERVER.path())
    return len([obj for obj in listed if condition(obj, "Synced").get("reason") == reason]) == objects


def main() -> int:
    """Print all figures; return 1 when an aim is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.azure_sweep", description=__doc__)
    parser.add_argument("--servers", type=int, default=2000)
    parser.add_argument("--logins", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=900.0)
    arguments = parser.parse_args()
    return print_figures(figures(servers=arguments.servers, logins=arguments.logins, seconds=arguments.seconds))


if __name__ == "__main__":
    sys.exit(main())
