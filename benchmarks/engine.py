"""The engine at work on a real API server: 1,000 claims of two children and a Secret each, whose provider is faked.

Each figure is a wall time on a machine shared with etcd, the API server and the load; the load average stands
beside them. The floor is the same writes sent raw in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import operator
import os
import statistics
import sys
import time
from collections import Counter
from collections.abc import Collection
from functools import partial
from typing import Final

from benchmarks import engine_objects as objects
from benchmarks import usage
from benchmarks.engine_load import Load
from benchmarks.plane import on_a_plane
from benchmarks.report import Figure, print_figures
from runtime.kube_client import KubeClient
from runtime.objects import Key
from tests.support.audit import WRITES, AuditLog, Match, Request
from tests.support.kinds import COMPOSITION
from tests.support.processes import Program
from tests.support.system import COMPOSER, System

_SINGLES: Final = 200
_NAMESPACES: Final = 10
_FLOOR_PROCESSES: Final = 2
_NEW_LIMIT: Final = 33
_NEWCOMERS: Final = "newcomers"


def figures(*, claims: int = 1000, idle_seconds: float = 120.0) -> list[Figure]:
    """Run all phases on one fresh control plane, with so many claims and so long a rest."""
    return on_a_plane(partial(_measure, claims, idle_seconds))


async def _measure(claims: int, idle_seconds: float, system: System) -> list[Figure]:
    kube = await KubeClient.connect(user_agent="bench-load", kubeconfig=system.plane.kubeconfig)
    try:
        run = _Run(system, Load(kube), claims, idle_seconds)
        await run.prepare()
        async with run.load.watching():
            figures = [
                *await run.create(),
                *await run.idle(),
                *await run.drift(objects.RESOURCES[:1], "drift of one child", aim=8),
                *await run.drift(objects.RESOURCES, "drift", aim=3),
                *await run.change(),
                *await run.restart(),
                *await run.singles(),
            ]
        return [*figures, *await run.floor()]
    finally:
        await kube.close()


class _Run:
    """The phases, in order, over one set of claims."""

    def __init__(self, system: System, load: Load, claims: int, idle_seconds: float) -> None:
        self.system = system
        self.load = load
        self.claims = claims
        self.idle_seconds = idle_seconds
        self.keys = [Key(f"bench-{number % _NAMESPACES}", f"claim-{number}") for number in range(claims)]
        self.limit = objects.LIMIT
        self._composer: Program | None = None
        self._created_seconds = 0.0

    @property
    def composer(self) -> Program:
        """The composer at work. Raises RuntimeError before `prepare`."""
        if self._composer is None:
            raise RuntimeError("the composer was not started")
        return self._composer

    async def prepare(self) -> None:
        """Have namespaces, the Composition and a composer that has done its first work."""
        for number in range(_NAMESPACES):
            await self.system.namespaced(f"bench-{number}")
        for name in (_NEWCOMERS, "floor"):
            await self.system.namespaced(name)
        await self.system.create(COMPOSITION, objects.composition())
        self._composer = await self.system.start_composer()
        await self.system.until(
            COMPOSITION, "", objects.COMPOSITION_NAME, lambda obj: "conditions" in obj.get("status", {})
        )
        await self.system.at_rest()

    async def create(self) -> list[Figure]:
        """All claims at once, until the last is Ready."""
        audit = self.system.audit()
        began = time.monotonic()
        async with usage.measured(self.composer.pid) as used:
            making = asyncio.create_task(self.load.claims(self.keys))
            composed = await self._until_all(self.load.seen.composed) - began
            ready = await self._until_all(self.load.seen.ready) - began
            await making
            await self.system.at_rest()
        self._created_seconds = ready
        requests = [request for request in audit.requests(Match(user=COMPOSER)) if request.verb != "watch"]
        counted = [request for request in requests if request.resource != "events"]
        return [
            Figure("create: all composed", composed, "s"),
            Figure("create: all Ready", ready, "s", aim=20.5),
            *_per_claim(counted, self.claims),
            Figure("create: events a claim", (len(requests) - len(counted)) / self.claims, ""),
            Figure("create: CPU a claim", used.cpu_seconds / self.claims * 1000, "ms", aim=5),
            Figure("create: peak memory (PSS, workers included)", used.peak_mib, "MiB", aim=150),
            Figure("load average after create", os.getloadavg()[0], ""),
        ]

    async def idle(self) -> list[Figure]:
        """Nothing happens; nothing may be written."""
        audit = self.system.audit()
        async with usage.measured(self.composer.pid) as used:
            await asyncio.sleep(self.idle_seconds)
        requests = [request for request in audit.requests(Match(user=COMPOSER)) if request.verb != "watch"]
        return [
            Figure(f"idle {self.idle_seconds:g} s: requests (Leases, watches apart)", len(requests), "", aim=0),
            *(Figure(f"idle:   {label}", count, "") for label, count in _by_verb(requests)),
            Figure("idle: CPU of one core", used.cpu_seconds / self.idle_seconds * 100, "%"),
        ]

    async def drift(self, resources: Collection[str], label: str, *, aim: float) -> list[Figure]:
        """One field of these children of every claim is overwritten by hand."""
        children = self.load.children_of(resources)
        self.load.seen.overwritten.clear()
        audit = self.system.audit()
        began = time.monotonic()
        async with usage.measured(self.composer.pid) as used:
            await self.load.overwrite(children)
            written = time.monotonic() - began
            await self.load.until(lambda: len(self.load.seen.overwritten) == len(children), "all overwritten")
            corrected = await self._until_carried() - began
            await self.system.at_rest()
        return [
            Figure(f"{label}: overwriting took", written, "s"),
            Figure(f"{label}: all corrected", corrected, "s", aim=aim),
            Figure(f"{label}: requests a claim", _count(audit) / self.claims, ""),
            Figure(f"{label}: CPU a claim", used.cpu_seconds / self.claims * 1000, "ms"),
        ]

    async def change(self) -> list[Figure]:
        """One constant of the Composition changes."""
        audit = self.system.audit()
        self.limit = _NEW_LIMIT
        began = time.monotonic()
        await self.load.change_composition(_NEW_LIMIT)
        carried = await self._until_carried() - began
        await self.system.at_rest()
        return [
            Figure("change: all carry it", carried, "s", aim=4),
            Figure("change: requests a claim", _count(audit) / self.claims, ""),
        ]

    async def restart(self) -> list[Figure]:
        """The composer is started anew; a claim that was made meanwhile must not wait behind the old ones."""
        await self.composer.terminate()
        audit = self.system.audit()
        key = Key(_NEWCOMERS, "newcomer")
        await self.load.claim(key)
        began = time.monotonic()
        self._composer = await self.system.start_composer(wait=False)
        composed = await self.load.until(lambda: key in self.load.seen.composed, "the newcomer is composed") - began
        await self.system.at_rest(for_s=5.0)
        writes = audit.requests(Match(user=COMPOSER, verbs=WRITES))
        others = [write for write in writes if write.namespace != _NEWCOMERS]
        return [
            Figure("restart: a new claim's children", composed, "s"),
            Figure("restart: writes to claims at rest", len(others), "", aim=0),
        ]

    async def singles(self) -> list[Figure]:
        """One claim after the other."""
        composed, ready = [], []
        for number in range(_SINGLES):
            key = Key(f"bench-{number % _NAMESPACES}", f"single-{number}")
            began = time.monotonic()
            await self.load.claim(key)
            await self.load.until(partial(operator.contains, self.load.seen.ready, key), f"{key} is Ready")
            composed.append((self.load.seen.composed[key] - began) * 1000)
            ready.append((self.load.seen.ready[key] - began) * 1000)
        return [*_spread("single: composed", composed, aim=15), *_spread("single: Ready", ready)]

    async def floor(self) -> list[Figure]:
        """The same writes, sent raw."""
        await self.composer.terminate()
        share = self.claims // _FLOOR_PROCESSES
        arguments = [
            (str(self.system.plane.kubeconfig), "floor", str(number * share), str(share))
            for number in range(_FLOOR_PROCESSES)
        ]
        running = [
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "benchmarks.engine_floor",
                *argument,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            for argument in arguments
        ]
        for process in running:
            await _stdout_of(process).readline()
        answers = await asyncio.gather(*(process.communicate(b"go\n") for process in running))
        seconds = max(float(output) for output, _ in answers)
        return [
            Figure("floor: the same writes sent raw", seconds, "s"),
            Figure("create over floor", self._created_seconds / seconds, "x", aim=1.3),
        ]

    async def _until_all(self, seen: dict[Key, float]) -> float:
        return await self.load.until(lambda: len(seen) >= self.claims, "all claims")

    async def _until_carried(self) -> float:
        return await self.load.until(partial(self.load.all_carry, self.limit), "all children carry the value")


def _count(audit: AuditLog) -> int:
    return sum(
        request.verb != "watch" and request.resource != "events" for request in audit.requests(Match(user=COMPOSER))
    )


def _stdout_of(process: asyncio.subprocess.Process) -> asyncio.StreamReader:
    if process.stdout is None:
        raise RuntimeError("started without a pipe")
    return process.stdout


def _per_claim(requests: list[Request], claims: int) -> list[Figure]:
    total = Figure("create: requests a claim", len(requests) / claims, "", aim=7.05)
    return [total, *(Figure(f"create:   {label}", count / claims, "") for label, count in _by_verb(requests))]


def _by_verb(requests: list[Request]) -> list[tuple[str, int]]:
    table = Counter(
        f"{request.verb} {request.resource}{'/' if request.subresource else ''}{request.subresource}"
        for request in requests
    )
    return sorted(table.items())


def _spread(name: str, milliseconds: list[float], *, aim: float | None = None) -> list[Figure]:
    deciles = statistics.quantiles(milliseconds, n=10)
    return [
        Figure(f"{name}, median", statistics.median(milliseconds), "ms", aim=aim),
        Figure(f"{name}, p90", deciles[-1], "ms"),
        Figure(f"{name}, worst of {len(milliseconds)}", max(milliseconds), "ms"),
    ]


def main() -> int:
    """Print all figures; return 1 when an aim is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("--claims", type=int, default=1000)
    parser.add_argument("--idle", type=float, default=120.0, metavar="SECONDS")
    arguments = parser.parse_args()
    return print_figures(figures(claims=arguments.claims, idle_seconds=arguments.idle))


if __name__ == "__main__":
    sys.exit(main())
