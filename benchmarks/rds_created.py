"""Calls to RDS for instances that are created at once and take as long as at AWS: AWS's provider, a simulated RDS.

Counted on the wire: what the provider reads in the five minutes that follow the last creation's answer, when all of
them are pending, and what an instance costs in all until it is in sync. No database can be reached.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from functools import partial
from typing import Final

from benchmarks.plane import on_a_plane
from benchmarks.report import Figure, print_figures
from tests.support.api import JsonObject
from tests.support.aws import RDS_INSTANCE, Aws, instance, simulated_rds
from tests.support.kinds import condition
from tests.support.system import System
from tests.support.waiting import eventually

_NAMESPACES: Final = 20
_OURS: Final = "user/fairlead"
_LIMIT_SECONDS: Final = 3600.0
_READ: Final = ("Describe", "List", "Get")
# One look at each decides whether it was created; the rest is pages of a list, one list for all of an account.
_READS_PER_INSTANCE: Final = 3.5
_READS_OF_LISTS: Final = 10
# Creation of one instance: three groups of calls (networks, parameters, names), the creation, looks until it is there.
_CALLS_PER_INSTANCE: Final = 12.0
# Who we are, and lists while a creation is followed.
_CALLS_BESIDE: Final = 12


def figures(*, instances: int = 100, pending_seconds: float = 300.0) -> list[Figure]:
    """Run on one fresh control plane, with so many instances and so long a look at them while they are pending."""
    return on_a_plane(partial(_measure, instances, pending_seconds))


async def _measure(instances: int, pending_seconds: float, system: System) -> list[Figure]:
    async with simulated_rds(system, real=False) as aws:
        await aws.behave(quotas={"instances": 2 * instances})
        # As long as at AWS: most creations take longer than the look at them.
        await aws.clock(durations=1.0)
        for number in range(_NAMESPACES):
            await system.namespaced(f"created-{number}")
        await aws.start_provider("--no-elect", "--log-level=INFO")
        since, began = await aws.mark(), time.monotonic()
        for number in range(instances):
            await system.create(RDS_INSTANCE, instance(f"created-{number % _NAMESPACES}", f"orders-{number}"))
        await eventually(lambda: _all_created(aws, since, instances), "all created", limit_s=_LIMIT_SECONDS, every_s=1)
        created, pending_since = time.monotonic() - began, await aws.mark()
        await asyncio.sleep(pending_seconds)
        pending = await aws.calls(pending_since, by=_OURS)
        await eventually(lambda: _all_in_sync(aws, instances), "all in sync", limit_s=_LIMIT_SECONDS, every_s=2)
        ready, calls = time.monotonic() - began, await aws.calls(since, by=_OURS)
    reads = [call for call in pending if str(call["action"]).startswith(_READ)]
    name = f"rds, {instances:,} created at once"
    return [
        Figure(f"{name}: all sent", created, "s"),
        Figure(
            f"{name}: reads in {pending_seconds:g} s",
            len(reads),
            "",
            aim=_READS_OF_LISTS + _READS_PER_INSTANCE * instances,
        ),
        *_by_action(f"{name}:  ", reads),
        Figure(f"{name}: all in sync", ready, "s"),
        Figure(
            f"{name}: calls an instance",
            len(calls) / instances,
            "",
            aim=_CALLS_PER_INSTANCE + _CALLS_BESIDE / instances,
        ),
        *_by_action(f"{name}:  ", calls, instances),
    ]


def _by_action(name: str, calls: list[JsonObject], instances: int = 1) -> list[Figure]:
    """Count calls by action; those for one instance by themselves."""
    table = Counter(f"{call['action']}{' of one' if call['identifier'] else ''}" for call in calls)
    return [Figure(f"{name} {action}", number / instances, "") for action, number in sorted(table.items())]


async def _all_created(aws: Aws, since: int, instances: int) -> bool:
    return len(await aws.calls(since, action="CreateDBInstance", by=_OURS)) >= instances


async def _all_in_sync(aws: Aws, instances: int) -> bool:
    listed = await aws.system.api.items(RDS_INSTANCE.path())
    return [condition(obj, "Synced").get("reason") for obj in listed].count("InSync") == instances


def main() -> int:
    """Print all figures; return 1 when an aim is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rds_created", description=__doc__)
    parser.add_argument("--instances", type=int, nargs="+", default=[1, 100, 1000], help="each on a plane of its own")
    parser.add_argument("--pending-seconds", type=float, default=300.0, metavar="SECONDS")
    arguments = parser.parse_args()
    measured = [
        figure
        for instances in arguments.instances
        for figure in figures(instances=instances, pending_seconds=arguments.pending_seconds)
    ]
    return print_figures(measured)


if __name__ == "__main__":
    sys.exit(main())
