"""What 2,000 flexible servers cost at rest: Azure's provider as a process, a simulated ARM, a real API server.

Each has a database, a firewall rule and a configuration. A quarter of an hour with the provider's own intervals holds a
resync of each server, for which lists stand, and a part of the looks at what is inside. Most servers carry our tags and
are observed only, and what is inside was recorded before, so that all are there without their creations at the pace of
a principal's budget; some servers are managed and have a login. No database can be reached. Calls are counted by ARM.
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

from apis.names import ACCOUNT, EXTERNAL_NAME, INCARNATION, TEARDOWN_FINALIZER
from benchmarks import usage
from benchmarks.plane import on_a_plane
from benchmarks.report import Figure, print_figures
from devcloud.azure.entra.directory import SUBSCRIPTION
from devcloud.azure.platform import RESOURCE_GROUP
from providers.azure import PROVIDER
from providers.azure.servers.translate import incarnation_of
from providers.external.ownership import owner_of
from runtime.objects import uid_of
from tests.support.api import JsonObject
from tests.support.azure import (
    CONFIGURATION,
    FIREWALL_RULE,
    FLEXIBLE_SERVER,
    SERVER_DATABASE,
    Azure,
    flexible_server,
    simulated_azure,
)
from tests.support.kinds import CONFIG_MAP, NAMESPACE, Kind, condition
from tests.support.processes import Program
from tests.support.simulated_cloud import DURATIONS
from tests.support.system import System
from tests.support.waiting import eventually

_NAMESPACES: Final = 20
_AT_ONCE: Final = 16
_PAGE: Final = 100
_LIMIT_SECONDS: Final = 1800.0
_LIST: Final = "flexibleServers.listBySubscription"
_SHARE: Final = 0.1
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
        inside = ((kind, "InSync", observed) for kind in _INSIDE)
        for kind, reason, objects in (
            (FLEXIBLE_SERVER, "ObserveOnly", observed),
            (FLEXIBLE_SERVER, "InSync", logins),
            *inside,
        ):
            await eventually(
                partial(_all_say, azure, provider, kind, reason, objects),
                f"all {kind.kind} are {reason}",
                limit_s=_LIMIT_SECONDS,
                every_s=5,
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
    of_one = [call for call in calls if call["identifier"] and str(call["action"]).startswith("flexibleServers.")]
    inside = [call for call in calls if call["identifier"] and call not in of_one]
    refused = [call for call in calls if call["outcome"] == "SubscriptionRequestsThrottled"]
    return [
        Figure("azure at rest: calls in all", len(calls), "", aim=budget * seconds / 60),
        Figure("azure at rest: calls in a minute, most", max(minutes.values(), default=0), "", aim=budget),
        Figure("azure at rest: calls for one server", len(of_one), "", aim=0),
        Figure("azure at rest: calls for what is inside", len(inside), "", aim=_SHARE * budget * seconds / 60),
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
        await _make_inside(azure, namespace, name)

    await _all_of(make(number) for number in range(observed))
    await azure.clock(durations=DURATIONS)


# What is inside each server: as somebody made it, as its object asks for it, and its name there.
_INSIDE: Final[dict[Kind, tuple[str, JsonObject, JsonObject, str]]] = {
    SERVER_DATABASE: ("databases", {"charset": "UTF8", "collation": "en_US.utf8"}, {"name": "orders"}, "orders"),
    FIREWALL_RULE: (
        "firewallRules",
        {"startIpAddress": "10.0.0.0", "endIpAddress": "10.0.0.255"},
        {"cidr": "10.0.0.0/24"},
        "office",
    ),
    CONFIGURATION: ("configurations", {"value": "8192"}, {"name": "work_mem", "value": "8MB"}, "work_mem"),
}


async def _make_inside(azure: Azure, namespace: str, server: str) -> None:
    """Make what is inside a server, and for each its object as it is once the provider has made it."""
    incarnation = incarnation_of(await azure.control("GET", f"servers/{server}"))
    for kind, (path, content, parameters, name) in _INSIDE.items():
        await azure.control("POST", f"servers/{server}/{path}/{name}", content)
        external = f"{RESOURCE_GROUP}/{server}/{name}"
        spec = {"forProvider": {**parameters, "server": f"{RESOURCE_GROUP}/{server}"}, "deletionPolicy": "Delete"}
        obj = kind.new(namespace, f"{server}-{path.lower()}", spec=spec)
        obj["metadata"]["finalizers"] = [TEARDOWN_FINALIZER]
        obj["metadata"]["annotations"] = {
            EXTERNAL_NAME: external,
            INCARNATION: f"{incarnation}/{name}" if kind is SERVER_DATABASE else external,
            ACCOUNT: SUBSCRIPTION,
        }
        await azure.system.create(kind, obj)


async def _all_of(made: Iterable[Coroutine[Any, Any, Any]]) -> None:
    places = asyncio.Semaphore(_AT_ONCE)

    async def limited(coroutine: Coroutine[Any, Any, Any]) -> Any:
        async with places:
            return await coroutine

    await asyncio.gather(*map(limited, made))


async def _all_say(azure: Azure, provider: Program, kind: Kind, reason: str, objects: int) -> bool:
    if not provider.is_running:
        # It lost its Lease on a machine that had no time for it: started again, as a Deployment does.
        await provider.start()
    listed = await azure.system.api.items(kind.path())
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
