"""The composer's memory with 10,000 claims and 20,000 children, real objects over real watches; a start beside them.

The composer makes the children itself, so what it finds at its start is what it wrote; a start that has nothing to do
must write nothing. There is no connection Secret here: the composer keeps none in its memory.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from functools import partial
from typing import Final

from benchmarks import engine_objects as objects
from benchmarks import engine_phase, usage
from benchmarks.engine_load import Load
from benchmarks.plane import on_a_plane
from benchmarks.report import Figure, print_figures
from runtime.kube_client import KubeClient
from runtime.objects import Key
from tests.support.audit import WRITES, Match
from tests.support.kinds import COMPOSITION
from tests.support.processes import Program
from tests.support.system import COMPOSER, System
from tests.support.waiting import eventually

_AT_ONCE: Final = 12
_NAMESPACES: Final = 10
_LIMIT_SECONDS: Final = 7200.0
_REST_SECONDS: Final = 10.0
_START_LIMIT_SECONDS: Final = 1800.0


def figures(*, claims: int = 10_000) -> list[Figure]:
    """Make so many claims on a fresh control plane, and start the composer anew beside them."""
    return on_a_plane(partial(_measure, claims))


async def _measure(claims: int, system: System) -> list[Figure]:
    kube = await KubeClient.connect(user_agent="bench-load", kubeconfig=system.plane.kubeconfig)
    try:
        load = Load(kube, limit_seconds=_LIMIT_SECONDS, at_once=_AT_ONCE)
        for number in range(_NAMESPACES):
            await system.namespaced(f"bench-{number}")
        await system.create(COMPOSITION, objects.composition_without_connection())
        composer = await system.start_composer()
        await system.until(COMPOSITION, "", objects.COMPOSITION_NAME, lambda obj: "conditions" in obj.get("status", {}))
        made = await _create(system, load, composer, [_key(number) for number in range(claims)])
        await composer.terminate()
        return [*made, *await _start(system, claims)]
    finally:
        await kube.close()


def _key(number: int) -> Key:
    return Key(f"bench-{number % _NAMESPACES}", f"claim-{number}")


async def _create(system: System, load: Load, composer: Program, keys: list[Key]) -> list[Figure]:
    audit, began = system.audit(), time.monotonic()
    async with load.watching(), usage.measured(composer.pid) as used:
        await load.claims(keys)
        await load.until(lambda: len(load.seen.ready) >= len(keys), "all Ready")
        seconds = time.monotonic() - began
        await system.at_rest(for_s=_REST_SECONDS, limit_s=_LIMIT_SECONDS)
    requests = [request for request in audit.requests(Match(user=COMPOSER)) if request.verb != "watch"]
    counted = [request for request in requests if request.resource != "events"]
    return [
        Figure("large: claims", len(load.seen.ready), ""),
        Figure("large: children", len(load.children_of(objects.RESOURCES)), ""),
        Figure("large: all Ready", seconds, "s"),
        Figure("large: requests a claim", len(counted) / len(keys), ""),
        *(Figure(f"large:   {verb}", n / len(keys), "") for verb, n in engine_phase.by_verb(counted)),
        Figure("large: events a claim", (len(requests) - len(counted)) / len(keys), ""),
        Figure("large: CPU a claim, composer", used.cpu_seconds / len(keys) * 1000, "ms"),
        Figure("large: peak memory of the creation (PSS)", used.peak_mib, "MiB", goal=200),
        *_by_process("large: at rest", composer.pid),
    ]


async def _start(system: System, claims: int) -> list[Figure]:
    """Start the composer beside what it made, until it has looked at every claim and has nothing left to do."""
    audit, began = system.audit(), time.monotonic()
    composer = await system.start_composer(wait=False)
    async with usage.measured(composer.pid) as used:
        await composer.until_healthy(system.ports["composer"], limit_s=_START_LIMIT_SECONDS)

        async def has_looked() -> bool:
            return (await engine_phase.counters(system.ports["composer"]))[engine_phase.PASSES] >= claims

        await eventually(has_looked, "a pass over every claim", limit_s=_START_LIMIT_SECONDS, every_s=1.0)
        seconds = time.monotonic() - began
        await system.at_rest(for_s=_REST_SECONDS, limit_s=_LIMIT_SECONDS)
        await asyncio.sleep(_REST_SECONDS)
    requests = [request for request in audit.requests(Match(user=COMPOSER)) if request.verb != "watch"]
    writes = [request for request in requests if request.verb in WRITES]
    return [
        Figure("large: a start, until every claim was looked at", seconds, "s"),
        Figure("large: a start, CPU of the composer", used.cpu_seconds, "s"),
        Figure("large: a start, requests (Leases, watches apart)", len(requests), ""),
        Figure("large: a start, writes", len(writes), "", aim=0),
        *(Figure(f"large:   {words}", number, "") for words, number in engine_phase.by_verb(writes)),
        Figure("large: peak memory of a start (PSS)", used.peak_mib, "MiB", goal=200),
        *_by_process("large: after a start", composer.pid),
    ]


def _by_process(label: str, pid: int) -> list[Figure]:
    sizes = usage.memory_by_process(pid)
    return [
        Figure(f"{label}, all processes (PSS)", sum(sizes), "MiB"),
        Figure(f"{label}, the composer itself", sizes[0], "MiB"),
        Figure(f"{label}, template server and workers", sum(sizes[1:]), "MiB"),
    ]


def main() -> int:
    """Print all figures; return 1 when the start wrote anything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    parser.add_argument("--claims", type=int, default=10_000)
    return print_figures(figures(claims=parser.parse_args().claims))


if __name__ == "__main__":
    sys.exit(main())
