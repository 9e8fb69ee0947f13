"""How many calls it costs to watch over 2,000 instances of Cloud SQL with databases and users, counted on the wire.

Google Cloud's provider runs as a process with its own intervals, before a real API server and a simulated Cloud SQL
that refuses what is over Google's quota, 180 calls a minute. No database can be reached. A provider without a bound on
its calls has seen everything before; the one that is measured starts then, goes through all of it as it starts, and
again at the resync. Meanwhile a person deletes some databases.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Coroutine, Iterable
from datetime import datetime
from functools import partial
from typing import Any, Final

from benchmarks import usage
from benchmarks.plane import on_a_plane
from benchmarks.report import Figure, print_figures
from providers.external.ownership import owner_of
from providers.gcp.names import owner_labels
from runtime.objects import uid_of
from tests.support.api import JsonObject
from tests.support.gcp import (
    CLOUD_SQL_DATABASE,
    CLOUD_SQL_INSTANCE,
    CLOUD_SQL_USER,
    Gcp,
    instance,
    simulated_cloud_sql,
    user,
)
from tests.support.kinds import CONFIG_MAP, Kind, condition
from tests.support.passes import passes_by_controller
from tests.support.processes import Program
from tests.support.simulated_cloud import DURATIONS
from tests.support.system import System
from tests.support.waiting import eventually

_NAMESPACES: Final = 20
_AT_ONCE: Final = 16
_OPERATIONS_AT_ONCE: Final = 24
_DELETED: Final = 5
_AGE: Final = 900.0
_QUOTA: Final = 180
_MINUTE: Final = 60.0
_OURS: Final = ".gserviceaccount.com"
_LIMIT_SECONDS: Final = 900.0
_KINDS: Final[tuple[Kind, ...]] = (CLOUD_SQL_INSTANCE, CLOUD_SQL_DATABASE, CLOUD_SQL_USER)
_OBSERVED: Final = {"managementPolicy": "Observe"}


def figures(*, instances: int = 2000, logins: int = 50, seconds: float = 900.0) -> list[Figure]:
    """Run on one fresh control plane, with so many instances and so long a look from the provider's start on.

    So many of them are managed and have a login of the provider's own, the others are observed.
    """
    return on_a_plane(partial(_measure, instances, logins, seconds))


async def _measure(instances: int, logins: int, seconds: float, system: System) -> list[Figure]:
    async with simulated_cloud_sql(system, real=False) as gcp:
        numbers = (instances, instances - logins, instances)
        await gcp.behave(quota={"per_minute": 10**6, "burst": 10**6})
        # What was made just before a look counts as a change since it: all is made some minutes ago.
        await gcp.clock(durations=0, advance_s=-_AGE)
        await _made(gcp, await _objects(gcp, instances - logins))
        await _all_of(_managed(gcp, number) for number in range(logins))
        await gcp.clock(advance_s=_AGE)
        await _look_at_all(gcp, numbers)
        await gcp.clock(durations=DURATIONS)
        await gcp.behave(quota={"per_minute": _QUOTA})
        since = await gcp.mark()
        provider = await gcp.start_provider("--log-level=INFO")
        async with usage.measured(provider.pid) as used:
            await asyncio.sleep(seconds / 3)
            deleted = [await _delete_database(gcp, number) for number in range(min(_DELETED, instances - logins))]
            await asyncio.sleep(seconds * 2 / 3)
        if not provider.is_running:
            raise RuntimeError(f"the provider ended while it was measured: {provider.text()[-2000:]}")
        calls = await gcp.calls(since, by=_OURS)
        seen = [await _seen(gcp, kind) for kind in _KINDS]
        passes = await passes_by_controller(system.ports["provider-gcp"])
        return [
            Figure("cloud sql: calls in the busiest minute", _most_in_a_minute(calls), "", aim=_QUOTA),
            Figure("cloud sql: calls a minute, mean", len(calls) / seconds * _MINUTE, "", aim=_QUOTA),
            Figure("cloud sql: calls over the quota", _count(calls, "rateLimitExceeded"), "", aim=0),
            Figure("cloud sql: changes", sum(call["mutating"] for call in calls), "", aim=2 * logins),
            Figure("cloud sql: lists of instances", _named(calls, "instances.list"), ""),
            Figure("cloud sql: lists of operations", _named(calls, "operations.list"), ""),
            Figure("cloud sql: looks at a database, or at users", _named(calls, "databases.get", "users.list"), ""),
            Figure("cloud sql: looks at an instance", _named(calls, "instances.get"), ""),
            *(
                Figure(f"cloud sql: {kind.plural} reported on", number, "", aim=number_of, at_least=True)
                for kind, number, number_of in zip(_KINDS, seen, numbers, strict=True)
            ),
            *(
                Figure(f"cloud sql: passes over each of {kind.plural}", passes[kind.plural] / number_of, "")
                for kind, number_of in zip(_KINDS, numbers, strict=True)
            ),
            Figure("cloud sql: until a deletion is looked at, most", _until_looked_at(calls, deleted), "s"),
            Figure("cloud sql: CPU of one core", used.cpu_seconds / seconds * 100, "%"),
            Figure("cloud sql: memory (PSS), peak", used.peak_mib, "MiB"),
        ]


def _name(number: int) -> str:
    return f"bench-{number:05}"


def _namespace(number: int) -> str:
    return f"sweep-{number % _NAMESPACES}"


async def _objects(gcp: Gcp, observed: int) -> list[JsonObject]:
    """Make the resources of instances that are observed, their databases and their users; return the instances."""
    system = gcp.system
    for number in range(_NAMESPACES):
        await system.namespaced(_namespace(number))

    async def make(number: int) -> JsonObject:
        namespace, name = _namespace(number), f"orders-{number}"
        made = await system.create(CLOUD_SQL_INSTANCE, _known_as(_name(number), instance(namespace, name, **_OBSERVED)))
        inside = {"instance": _name(number), "name": "app"}
        for kind in (CLOUD_SQL_DATABASE, CLOUD_SQL_USER):
            child = kind.new(namespace, name, spec={"forProvider": inside, **_OBSERVED})
            # Nothing else shows whose it is.
            await system.create(kind, _known_as(f"{_name(number)}/app", child, incarnation=f"{_name(number)}/app"))
        return made

    return await _all_of(make(number) for number in range(observed))


def _known_as(external: str, obj: JsonObject, **more: str) -> JsonObject:
    annotations = {"external-name": external, **more}
    obj["metadata"]["annotations"] = {f"fairlead.dev/{name}": value for name, value in annotations.items()}
    return obj


async def _managed(gcp: Gcp, number: int) -> None:
    """Make the resources of an instance and a user that the provider is to create."""
    namespace, name = _namespace(number), f"logins-{number}"
    await gcp.system.create(CLOUD_SQL_INSTANCE, instance(namespace, name))
    await gcp.system.create(CLOUD_SQL_USER, user(namespace, name, server=name))


async def _made(gcp: Gcp, objects: list[JsonObject]) -> None:
    """Make the instances as the provider would have, with the labels of the resources that stand for them."""
    api = gcp.system.api
    installation = (await api.get(CONFIG_MAP.path("fairlead-system", "fairlead-installation")))["data"]["id"]
    names = {_namespace(number) for number in range(_NAMESPACES)}
    uids = {name: uid_of(await api.get(f"/api/v1/namespaces/{name}")) for name in names}

    async def make(number: int, obj: JsonObject) -> None:
        labels = owner_labels(owner_of(obj, installation, uids[obj["metadata"]["namespace"]]))
        spec = obj["spec"]["forProvider"]
        settings = {"tier": spec["tier"], "edition": spec["edition"], "userLabels": labels}
        body = {"name": _name(number), "region": spec["region"], "databaseVersion": spec["databaseVersion"]}
        await gcp.person("POST", "instances", {**body, "settings": settings})
        await gcp.person("POST", f"instances/{_name(number)}/databases", {"name": "app"})
        await gcp.person("POST", f"instances/{_name(number)}/users", {"name": "app", "password": "Sufficient-1"})

    await _all_of((make(number, obj) for number, obj in enumerate(objects)), at_once=_OPERATIONS_AT_ONCE)
    await eventually(lambda: _all_runnable(gcp, len(objects)), "all instances", limit_s=_LIMIT_SECONDS, every_s=1)


async def _look_at_all(gcp: Gcp, numbers: tuple[int, ...]) -> None:
    """Have each resource seen and reported on, by a provider without a bound on its calls that ends then."""
    provider = await gcp.system.start_provider_of(
        *("gcp", f"--endpoint-override={gcp.host}", "--no-elect"),
        name="unlimited",
        module="benchmarks.cloudsql_unlimited",
    )
    for kind, number in zip(_KINDS, numbers, strict=True):
        is_done = partial(_are_at_rest, gcp, provider, kind, number)
        await eventually(is_done, f"all {kind.plural} were seen", limit_s=_LIMIT_SECONDS, every_s=5)
    await provider.terminate()


async def _are_at_rest(gcp: Gcp, provider: Program, kind: Kind, number: int) -> bool:
    if not provider.is_running:
        raise RuntimeError(f"the provider ended before it was measured: {provider.text()[-2000:]}")
    objects = await gcp.system.api.items(kind.path())
    reasons = [condition(obj, "Synced").get("reason") for obj in objects]
    return sum(reason in {"ObserveOnly", "InSync"} for reason in reasons) == number


async def _delete_database(gcp: Gcp, number: int) -> tuple[str, float]:
    """Delete the database of an instance as a person does; return the instance, and when that was done."""
    await gcp.person("DELETE", f"instances/{_name(number)}/databases/app")
    return _name(number), time.time()


async def _all_of(made: Iterable[Coroutine[Any, Any, Any]], *, at_once: int = _AT_ONCE) -> list[Any]:
    places = asyncio.Semaphore(at_once)

    async def limited(coroutine: Coroutine[Any, Any, Any]) -> Any:
        async with places:
            return await coroutine

    return await asyncio.gather(*map(limited, made))


async def _all_runnable(gcp: Gcp, number: int) -> bool:
    instances = await gcp.instances()
    return len(instances) == number and all(instance["state"] == "RUNNABLE" for instance in instances)


async def _seen(gcp: Gcp, kind: Kind) -> int:
    return sum(bool(condition(obj, "Synced").get("reason")) for obj in await gcp.system.api.items(kind.path()))


def _instant(call: JsonObject) -> float:
    return datetime.fromisoformat(str(call["at"])).timestamp()


def _most_in_a_minute(calls: list[JsonObject]) -> int:
    """Return the most calls that any 60 seconds hold."""
    times = sorted(map(_instant, calls))
    most = begin = 0
    for end, at in enumerate(times):
        while times[begin] <= at - _MINUTE:
            begin += 1
        most = max(most, end - begin + 1)
    return most


def _count(calls: Iterable[JsonObject], outcome: str) -> int:
    return sum(call["outcome"] == outcome for call in calls)


def _named(calls: Iterable[JsonObject], *actions: str) -> int:
    return sum(call["action"] in actions for call in calls)


def _until_looked_at(calls: list[JsonObject], deleted: list[tuple[str, float]]) -> float:
    """Return the longest time in seconds from a deletion to the first look at its instance's databases after it."""
    first = []
    for name, at in deleted:
        times = [_instant(call) for call in calls if call["action"] == "databases.get" and call["identifier"] == name]
        first.append(min((seen - at for seen in times if seen >= at), default=float("inf")))
    return max(first, default=0.0)


def main() -> int:
    """Print all figures; return 1 when an aim is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cloudsql_sweep", description=__doc__)
    parser.add_argument("--instances", type=int, default=2000)
    parser.add_argument("--logins", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=900.0)
    arguments = parser.parse_args()
    return print_figures(figures(instances=arguments.instances, logins=arguments.logins, seconds=arguments.seconds))


if __name__ == "__main__":
    sys.exit(main())
