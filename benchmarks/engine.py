"""The engine at work on a real API server: 1,000 claims of two children and a Secret each, whose provider is faked.

An aim, whose miss fails the run, is a count. Beside each phase stands its floor, the same requests sent raw in the same
run: the processor time of all processes (API server, etcd, load, composer), and wall time, with the load average.
"""

from __future__ import annotations

import argparse
import asyncio
import operator
import os
import statistics
import sys
import time
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Final

from benchmarks import engine_objects as objects
from benchmarks import engine_phase, usage
from benchmarks.engine_load import Load
from benchmarks.engine_phase import Limits, Phase
from benchmarks.engine_raw import Floor
from benchmarks.plane import on_a_plane
from benchmarks.report import Figure, print_figures
from runtime.kube_client import KubeClient
from runtime.objects import Key
from tests.support.audit import WRITES, Match
from tests.support.grants import let_watch_secrets
from tests.support.kinds import COMPOSITION
from tests.support.processes import Program
from tests.support.system import COMPOSER, System

_SINGLES: Final = 50
_NAMESPACES: Final = 10
_NEW_LIMIT: Final = 33
_NEWCOMERS: Final = "newcomers"
_FLOOR: Final = "floor"
_ONE: Final = "drift of one child"
_BOTH: Final = "drift of both children"
_CREATE_BUT_STATUSES: Final = 4.5
# Until the Secrets of a namespace are watched, claims that come first read their child's. A claim whose children take
# longer than half a second to become ready has a status more: on a slow machine that misses the aim of all requests.
# How often overwriting both children falls into one pass depends on what else runs; so does how many deletions share a
# read of their namespace and CRD (8 requests a deletion if none does).
# With few claims the requests for the Composition show: the limits are for 200 claims and more.
_LIMITS: Final = {
    "create": Limits(requests=5.5, conflicts=0, passes=3.05),
    _ONE: Limits(requests=2.05, conflicts=0.05, passes=1.1),
    _BOTH: Limits(requests=4.05, conflicts=0.05, passes=2.05),
    "change": Limits(requests=3.05, conflicts=0.05, passes=1.5),
    "delete": Limits(requests=8.05, conflicts=0.05, passes=3.2),
}


def figures(
    *, claims: int = 1000, idle_seconds: float = 120.0, singles: int = _SINGLES, has_floor: bool = True
) -> list[Figure]:
    """Run all phases on one fresh control plane, with so many claims and so long a rest; their floors where wanted."""
    return on_a_plane(partial(_measure, claims, idle_seconds, singles, has_floor))


async def _measure(
    claims: int,
    idle_seconds: float,
    singles: int,
    has_floor: bool,  # noqa: FBT001 - bound by position
    system: System,
) -> list[Figure]:
    kube = await KubeClient.connect(user_agent="bench-load", kubeconfig=system.plane.kubeconfig)
    try:
        run = _Run(system, Load(kube), claims, idle_seconds)
        await run.prepare()
        async with run.load.watching():
            figures = [
                *await run.create(),
                *await run.idle(),
                *await run.drift(objects.RESOURCES[:1], _ONE, goal=8),
                *await run.drift(objects.RESOURCES, _BOTH, goal=3),
                *await run.change(),
                *await run.restart(),
                *await run.singles(singles),
                *await run.delete(),
            ]
        return [*figures, *(await run.floor() if has_floor else ())]
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
        self._phases: dict[str, Phase] = {}

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
            await let_watch_secrets(self.system, f"bench-{number}")
        for name in (_NEWCOMERS, _FLOOR):
            await self.system.namespaced(name)
        await self.system.create(COMPOSITION, objects.composition())
        self._composer = await self.system.start_composer()
        await self.system.until(
            COMPOSITION, "", objects.COMPOSITION_NAME, lambda obj: "conditions" in obj.get("status", {})
        )
        await self.system.at_rest()

    async def create(self) -> list[Figure]:
        """All claims at once, until the last is Ready."""
        began = time.monotonic()
        async with self._phase("create") as phase:
            making = asyncio.create_task(self.load.claims(self.keys))
            composed = await self._until_all(self.load.seen.composed) - began
            phase.seconds = await self._until_all(self.load.seen.ready) - began
            await making
        return [
            Figure("create: all composed", composed, "s"),
            Figure("create: all Ready", phase.seconds, "s"),
            *engine_phase.request_figures(phase, _LIMITS["create"]),
            _but_statuses(phase),
            *engine_phase.pass_figures(phase, _LIMITS["create"]),
            *engine_phase.processor_figures(phase, goal=5),
            Figure("create: peak memory (PSS, workers included)", phase.composer.peak_mib, "MiB", aim=130, goal=110),
            Figure("create: load average at its end", os.getloadavg()[0], ""),
        ]

    async def idle(self) -> list[Figure]:
        """Nothing happens; nothing may be sent."""
        audit = self.system.audit()
        async with usage.measured(self.composer.pid) as used:
            await asyncio.sleep(self.idle_seconds)
        requests = [request for request in audit.requests(Match(user=COMPOSER)) if request.verb != "watch"]
        requests += audit.requests(Match(user=COMPOSER, resource=engine_phase.REVIEWS))
        return [
            Figure(f"idle {self.idle_seconds:g} s: requests (Leases, watches apart)", len(requests), "", aim=0),
            *(Figure(f"idle:   {label}", count, "") for label, count in engine_phase.by_verb(requests)),
            Figure("idle: CPU of one core", used.cpu_seconds / self.idle_seconds * 100, "%"),
        ]

    async def drift(self, resources: Collection[str], label: str, *, goal: float) -> list[Figure]:
        """One field of these children of every claim is overwritten by hand."""
        children = self.load.children_of(resources)
        self.load.seen.overwritten.clear()
        began = time.monotonic()
        async with self._phase(label) as phase:
            await self.load.overwrite(children)
            written = time.monotonic() - began
            await self.load.until(lambda: len(self.load.seen.overwritten) == len(children), "all overwritten")
            phase.seconds = await self._until_carried() - began
        return [
            Figure(f"{label}: overwriting took", written, "s"),
            Figure(f"{label}: all corrected", phase.seconds, "s", goal=goal),
            *engine_phase.request_figures(phase, _LIMITS[label]),
            *engine_phase.pass_figures(phase, _LIMITS[label]),
            *engine_phase.processor_figures(phase),
        ]

    async def change(self) -> list[Figure]:
        """One constant of the Composition changes."""
        self.limit = _NEW_LIMIT
        began = time.monotonic()
        async with self._phase("change") as phase:
            await self.load.change_composition(_NEW_LIMIT)
            phase.seconds = await self._until_carried() - began
        return [
            Figure("change: all carry it", phase.seconds, "s", goal=4),
            *engine_phase.request_figures(phase, _LIMITS["change"]),
            *engine_phase.pass_figures(phase, _LIMITS["change"]),
            *engine_phase.processor_figures(phase),
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
        await self.composer.until_healthy(self.system.ports["composer"])
        requests = [request for request in audit.requests(Match(user=COMPOSER)) if request.verb != "watch"]
        others = [request for request in requests if request.verb in WRITES and request.namespace != _NEWCOMERS]
        return [
            Figure("restart: a new claim's children", composed, "s", goal=0.7),
            Figure("restart: requests in all", len(requests), ""),
            *(Figure(f"restart:   {label}", count, "") for label, count in engine_phase.by_verb(requests)),
            Figure("restart: writes to claims at rest", len(others), "", aim=0),
        ]

    async def singles(self, count: int) -> list[Figure]:
        """One claim after the other."""
        composed, ready = [], []
        for number in range(count):
            key = Key(f"bench-{number % _NAMESPACES}", f"single-{number}")
            began = time.monotonic()
            await self.load.claim(key)
            await self.load.until(partial(operator.contains, self.load.seen.ready, key), f"{key} is Ready")
            composed.append((self.load.seen.composed[key] - began) * 1000)
            ready.append((self.load.seen.ready[key] - began) * 1000)
        return [*_spread("single: composed", composed, goals=(12, 28)), *_spread("single: Ready", ready)]

    async def delete(self) -> list[Figure]:
        """All claims of `create` are deleted at once, until the last is gone."""
        began = time.monotonic()
        async with self._phase("delete") as phase:
            await self.load.delete(self.keys)
            phase.seconds = await self.load.until(lambda: self.load.seen.gone.issuperset(self.keys), "all gone") - began
        return [
            Figure("delete: all gone", phase.seconds, "s", goal=14),
            *engine_phase.request_figures(phase, _LIMITS["delete"]),
            *engine_phase.pass_figures(phase, _LIMITS["delete"]),
            *engine_phase.processor_figures(phase),
        ]

    async def floor(self) -> list[Figure]:
        """The same requests, sent raw, beside the same watches of the load."""
        await self.composer.terminate()
        async with (
            Floor.started(self.system, _FLOOR, self.claims) as floor,
            self.load.watching(answers=False),
        ):
            return [
                *_ratios(self._phases["create"], await floor.send("create")),
                *_ratios(self._phases[_ONE], await floor.send("drift-one")),
                *_ratios(self._phases[_BOTH], await floor.send("drift-both")),
                *_ratios(self._phases["change"], await floor.send("change")),
            ]

    def _phase(self, name: str) -> AbstractAsyncContextManager[Phase]:
        phase = self._phases[name] = Phase(name, self.claims)
        return engine_phase.measured(self.system, self.composer.pid, phase)

    async def _until_all(self, seen: dict[Key, float]) -> float:
        return await self.load.until(lambda: len(seen) >= self.claims, "all claims")

    async def _until_carried(self) -> float:
        return await self.load.until(partial(self.load.all_carry, self.limit), "all children carry the value")


def _but_statuses(phase: Phase) -> Figure:
    requests = sum(request.subresource != "status" for request in phase.counted)
    return Figure("create: requests a claim, statuses apart", phase.per_claim(requests), "", aim=_CREATE_BUT_STATUSES)


def _ratios(phase: Phase, floor: Phase) -> list[Figure]:
    """Return a phase beside its floor: processor time of all processes, and wall time."""
    ratio = phase.all_processors_ms / floor.all_processors_ms
    return [
        Figure(f"{phase.name}, the same sent raw: CPU a claim, all", floor.all_processors_ms, "ms"),
        Figure(f"{phase.name} over that", ratio, "x", goal=1.1),
        Figure(f"{phase.name}, the same sent raw: wall time", floor.seconds, "s"),
        Figure(f"{phase.name}: wall time over that", phase.seconds / floor.seconds, "x"),
    ]


def _spread(name: str, milliseconds: list[float], *, goals: tuple[float, float] | None = None) -> list[Figure]:
    deciles = statistics.quantiles(milliseconds, n=10)
    median, worst = goals or (None, None)
    return [
        Figure(f"{name}, median", statistics.median(milliseconds), "ms", goal=median),
        Figure(f"{name}, p90", deciles[-1], "ms"),
        Figure(f"{name}, worst of {len(milliseconds)}", max(milliseconds), "ms", goal=worst),
    ]


def main() -> int:
    """Print all figures; return 1 when an aim is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("--claims", type=int, default=1000)
    parser.add_argument("--idle", type=float, default=120.0, metavar="SECONDS")
    parser.add_argument("--singles", type=int, default=_SINGLES)
    arguments = parser.parse_args()
    measured = figures(claims=arguments.claims, idle_seconds=arguments.idle, singles=arguments.singles)
    return print_figures(measured)


if __name__ == "__main__":
    sys.exit(main())
