"""What it costs to watch over 2,000 RDS instances: AWS's provider as a process, a simulated RDS, a real API server.

The instances carry our tags and are observed only, so that all of them are there without waiting for 2,000 creations at
the two calls a second that an account is granted; a sweep is the same for what is observed and what is managed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from functools import partial
from typing import Any, Final

import boto3
from botocore.config import Config

from benchmarks import usage
from benchmarks.plane import on_a_plane
from benchmarks.report import Figure, print_figures
from devcloud.aws.platform import ACCESS_KEY, REGION
from providers.aws.tag_lists import tags_of
from providers.external.ownership import owner_of
from runtime.objects import uid_of
from tests.support.api import JsonObject
from tests.support.audit import WRITES, Match
from tests.support.aws import PROVIDER, RDS_INSTANCE, Aws, instance, simulated_rds
from tests.support.kinds import CONFIG_MAP, condition
from tests.support.processes import Program
from tests.support.system import System
from tests.support.waiting import eventually

_NAMESPACES: Final = 20
_AT_ONCE: Final = 16
_PAGE: Final = 100
_SWEEP_SECONDS: Final = 5
_OURS: Final = "user/fairlead"
_LIMIT_SECONDS: Final = 900.0
_INSTANCE: Final[dict[str, Any]] = {
    "Engine": "postgres",
    "EngineVersion": "16.10",
    "DBInstanceClass": "db.t4g.micro",
    "AllocatedStorage": 20,
    "MasterUsername": "boss",
    "MasterUserPassword": "Sufficient-1",
}


def figures(*, instances: int = 2000, seconds: float = 60.0) -> list[Figure]:
    """Run on one fresh control plane, with so many instances and so long a look at what the sweeps do."""
    return on_a_plane(partial(_measure, instances, seconds))


async def _measure(instances: int, seconds: float, system: System) -> list[Figure]:
    async with simulated_rds(system, real=False) as aws:
        await aws.behave(quotas={"instances": 10 * instances})
        objects = await _objects(aws, instances)
        await _made(aws, objects)
        began = time.monotonic()
        # A look at each by itself comes with every resync, which is told apart from the sweeps by its absence.
        provider = await aws.start_provider(f"--sweep={_SWEEP_SECONDS}", "--resync=86400")
        await eventually(lambda: _all_seen(aws, instances), "all seen", limit_s=_LIMIT_SECONDS, every_s=2)
        first = Figure(f"rds: first look at {instances:,} instances", time.monotonic() - began, "s")
        await _at_rest(aws)
        return [first, *await _swept(aws, provider, instances, seconds), await _noticed(aws, objects[instances // 2])]


def at_rest_figures(*, instances: int = 2000, logins: int = 50, seconds: float = 900.0) -> list[Figure]:
    """Run on one fresh control plane with the provider's own intervals; `seconds` hold a resync of each instance.

    So many of them are managed and have a login, the others are observed; no database can be reached.
    """
    return on_a_plane(partial(_measure_at_rest, instances, logins, seconds))


async def _measure_at_rest(instances: int, logins: int, seconds: float, system: System) -> list[Figure]:
    async with simulated_rds(system, real=False) as aws:
        await aws.behave(quotas={"instances": 10 * instances})
        observed = instances - logins
        await _made(aws, await _objects(aws, observed))
        for number in range(logins):
            await aws.system.create(RDS_INSTANCE, instance(f"sweep-{number % _NAMESPACES}", f"logins-{number}"))
        provider = await aws.start_provider("--log-level=INFO")
        await eventually(lambda: _all_seen(aws, observed), "all seen", limit_s=_LIMIT_SECONDS, every_s=2)
        await eventually(lambda: _all_ready(aws, logins), "all with logins Ready", limit_s=_LIMIT_SECONDS, every_s=2)
        await _at_rest(aws)
        since = await aws.mark()
        async with usage.measured(provider.pid) as used:
            await asyncio.sleep(seconds)
        calls = await aws.calls(since, by=_OURS)
        pages = [call for call in calls if call["action"] == "DescribeDBInstances" and not _of_one(call)]
        sweeps = sum("Marker" not in page["params"] for page in pages)
        most = (sweeps + 1) * -(-instances // _PAGE)
        return [
            Figure("rds at rest: calls for one instance", sum(map(_of_one, calls)), "", aim=0),
            Figure("rds at rest: sweeps", sweeps, ""),
            Figure("rds at rest: pages of sweeps", len(pages), "", aim=most),
            Figure("rds at rest: CPU of one core", used.cpu_seconds / seconds * 100, "%"),
        ]


async def _all_ready(aws: Aws, logins: int) -> bool:
    listed = await aws.system.api.items(RDS_INSTANCE.path())
    ready = [obj for obj in listed if condition(obj, "Synced").get("reason") == "InSync"]
    return len(ready) == logins


async def _objects(aws: Aws, instances: int) -> list[JsonObject]:
    for number in range(_NAMESPACES):
        await aws.system.namespaced(f"sweep-{number}")

    async def make(number: int) -> JsonObject:
        obj = instance(f"sweep-{number % _NAMESPACES}", f"orders-{number}", managementPolicy="Observe")
        obj["metadata"]["annotations"] = {"fairlead.dev/external-name": _name(number)}
        return await aws.system.create(RDS_INSTANCE, obj)

    return await _all_of(make(number) for number in range(instances))


def _name(number: int) -> str:
    return f"bench-{number:05}"


async def _made(aws: Aws, objects: list[JsonObject]) -> None:
    """Make the instances as the provider would have, with the tags of the objects that stand for them."""
    config_map = await aws.system.api.get(CONFIG_MAP.path("fairlead-system", "fairlead-installation"))
    uids = {
        name: uid_of(await aws.system.api.get(f"/api/v1/namespaces/{name}"))
        for name in (f"sweep-{number}" for number in range(_NAMESPACES))
    }
    client = boto3.client(
        "rds",
        region_name=REGION,
        endpoint_url=aws.url,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=aws.secret_key,
        config=Config(max_pool_connections=_AT_ONCE),
    )

    async def make(number: int, obj: JsonObject) -> None:
        tags = tags_of(owner_of(obj, config_map["data"]["id"], uids[obj["metadata"]["namespace"]]))
        call: Callable[..., Any] = client.create_db_instance
        await asyncio.to_thread(call, DBInstanceIdentifier=_name(number), Tags=tags, **_INSTANCE)

    try:
        await _all_of(make(number, obj) for number, obj in enumerate(objects))
    finally:
        client.close()
    await eventually(lambda: _all_available(aws), "all available", limit_s=_LIMIT_SECONDS, every_s=1)


async def _all_of(made: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    places = asyncio.Semaphore(_AT_ONCE)

    async def limited(coroutine: Coroutine[Any, Any, Any]) -> Any:
        async with places:
            return await coroutine

    return await asyncio.gather(*map(limited, made))


async def _all_available(aws: Aws) -> bool:
    return all(instance["DBInstanceStatus"] == "available" for instance in await aws.instances())


async def _all_seen(aws: Aws, instances: int) -> bool:
    listed = await aws.system.api.items(RDS_INSTANCE.path())
    seen = [obj for obj in listed if condition(obj, "Synced").get("reason") == "ObserveOnly"]
    return len(seen) == instances


async def _at_rest(aws: Aws) -> None:
    """Wait until the provider lists and looks at no instance by itself any more: its own writes wake it once."""

    async def rested() -> bool:
        since = await aws.mark()
        await asyncio.sleep(2 * _SWEEP_SECONDS)
        return not any(_of_one(call) for call in await aws.calls(since, by=_OURS))

    await eventually(rested, "no call for one instance", limit_s=_LIMIT_SECONDS)


def _of_one(call: JsonObject) -> bool:
    return bool(call["identifier"])


async def _swept(aws: Aws, provider: Program, instances: int, seconds: float) -> list[Figure]:
    """Look at whole sweeps: what lies between the first pages of the first and of the last one."""
    audit, since = aws.system.audit(), await aws.mark()
    async with usage.measured(provider.pid) as used:
        await asyncio.sleep(seconds)
    calls = await aws.calls(since, by=_OURS)
    lists = [call for call in calls if call["action"] == "DescribeDBInstances" and not call["identifier"]]
    starts = [number for number, entry in enumerate(lists) if "Marker" not in entry["params"]]
    sweeps = [lists[begin:end] for begin, end in itertools.pairwise(starts)]
    pages = [len(sweep) for sweep in sweeps]
    lasted = [(_instant(sweep[-1]) - _instant(sweep[0])) for sweep in sweeps]
    writes = audit.requests(Match(user=PROVIDER, verbs=WRITES))
    return [
        Figure("rds: sweeps looked at", len(sweeps), ""),
        Figure("rds: calls a sweep, fewest", min(pages), "", aim=-(-instances // _PAGE), at_least=True),
        Figure("rds: calls a sweep, most", max(pages), "", aim=-(-instances // _PAGE)),
        Figure("rds: calls for one instance meanwhile", sum(map(_of_one, calls)), "", aim=0),
        Figure("rds: lists of groups meanwhile", _of_groups(calls), ""),
        Figure("rds: writes to the API server meanwhile", len(writes), "", aim=0),
        Figure("rds: a sweep from first to last page, median", statistics.median(lasted), "s"),
        Figure("rds: CPU a sweep", used.cpu_seconds / len(starts), "s"),
        Figure(f"rds: CPU of one core, sweeps every {_SWEEP_SECONDS} s", used.cpu_seconds / seconds * 100, "%"),
        Figure("rds: memory (PSS), peak", used.peak_mib, "MiB"),
    ]


def _of_groups(calls: Iterable[JsonObject]) -> int:
    groups = {"DescribeDBSubnetGroups", "DescribeDBParameterGroups"}
    return sum(call["action"] in groups and not _of_one(call) for call in calls)


def _instant(call: JsonObject) -> float:
    return datetime.fromisoformat(str(call["at"])).timestamp()


async def _noticed(aws: Aws, obj: JsonObject) -> Figure:
    """Change one instance behind everybody's back, until its status shows it."""
    metadata = obj["metadata"]
    began = time.monotonic()
    await aws.strike(metadata["annotations"]["fairlead.dev/external-name"], set={"AllocatedStorage": 40})
    path = RDS_INSTANCE.path(metadata["namespace"], metadata["name"])

    async def shown() -> bool:
        obj = await aws.system.api.get(path)
        return bool(obj["status"]["atProvider"]["allocatedStorage"] == 40)  # noqa: PLR2004 - as set above

    await eventually(shown, "the change in status", limit_s=_LIMIT_SECONDS)
    return Figure(f"rds: a change is seen, sweeps every {_SWEEP_SECONDS} s", time.monotonic() - began, "s")


def main() -> int:
    """Print all figures; return 1 when an aim is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rds_sweep", description=__doc__)
    parser.add_argument("--instances", type=int, default=2000)
    parser.add_argument("--seconds", type=float, help="default 60, at rest 900")
    parser.add_argument("--at-rest", action="store_true", help="a quarter of an hour with the provider's own intervals")
    arguments = parser.parse_args()
    if arguments.at_rest:
        return print_figures(at_rest_figures(instances=arguments.instances, seconds=arguments.seconds or 900.0))
    return print_figures(figures(instances=arguments.instances, seconds=arguments.seconds or 60.0))


if __name__ == "__main__":
    sys.exit(main())
