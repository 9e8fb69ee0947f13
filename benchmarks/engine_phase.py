"""What one phase of the engine's benchmark took: seconds, requests, passes, and processor time of every process.

Processor time decides where wall time says little: on a machine with other work a phase takes longer, and the processes
of the benchmark use little more for it.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import aiohttp

from benchmarks import usage
from benchmarks.report import Figure
from tests.support.audit import Match, Request
from tests.support.system import COMPOSER, System

_COUNTER: Final = re.compile(
    r'^(?P<name>\w+_total)\{[^}]*controller="postgresqlinstance"[^}]*\} (?P<value>\S+)$', re.MULTILINE
)
PASSES: Final = "controller_runtime_reconcile_total"
_ADDS: Final = "workqueue_adds_total"
_CONFLICT: Final = 409
_MS: Final = 1000
REVIEWS: Final = "selfsubjectaccessreviews"
"""Questions about one's own rights, which the audit log's readers leave out unless they are named."""


@dataclass(slots=True)
class Phase:
    """One phase over so many claims. `processor` has seconds by program; all but the composer's are of the bench."""

    name: str
    claims: int
    seconds: float = 0.0
    requests: list[Request] = field(default_factory=list)
    passes: int = 0
    adds: int = 0
    processor: dict[str, float] = field(default_factory=dict)
    composer: usage.Usage = field(default_factory=usage.Usage)

    @property
    def counted(self) -> list[Request]:
        """The composer's requests without events."""
        return [request for request in self.requests if request.resource != "events"]

    @property
    def all_processors_ms(self) -> float:
        """Milliseconds of processor time that all processes used for a claim: composer, API server, etcd, load."""
        return sum(self.processor.values()) / self.claims * _MS

    def per_claim(self, count: float) -> float:
        """Return a count divided by the claims."""
        return count / self.claims


class Limits(NamedTuple):
    """The aims of a phase, each for one claim."""

    requests: float
    conflicts: float
    passes: float


async def counters(port: int) -> Counter[str]:
    """Return the counters of the controller of claims, by name, from the composer's metrics."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        text = await answer.text()
    values: Counter[str] = Counter()
    for match in _COUNTER.finditer(text):
        values[match["name"]] += int(float(match["value"]))
    return values


@asynccontextmanager
async def measured(system: System, pid: int, phase: Phase) -> AsyncIterator[Phase]:
    """Measure while the body runs, and until the composer has written nothing for a while."""
    audit, port = system.audit(), system.ports["composer"]
    before = await counters(port)
    async with usage.measured(pid) as phase.composer, _processor(phase):
        yield phase
        await system.at_rest()
    after = await counters(port)
    phase.passes, phase.adds = after[PASSES] - before[PASSES], after[_ADDS] - before[_ADDS]
    phase.requests = [request for request in audit.requests(Match(user=COMPOSER)) if request.verb != "watch"]


@asynccontextmanager
async def measured_raw(name: str, claims: int, *, rest_seconds: float) -> AsyncIterator[Phase]:
    """Measure what other programs than the composer send, and as long a rest after it."""
    phase = Phase(name, claims)
    async with _processor(phase):
        yield phase
        await asyncio.sleep(rest_seconds)


@asynccontextmanager
async def _processor(phase: Phase) -> AsyncIterator[None]:
    before = usage.cpu_by_program(os.getpid())
    yield
    after = usage.cpu_by_program(os.getpid())
    phase.processor = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in after.keys() | before.keys()}


def request_figures(phase: Phase, limits: Limits) -> list[Figure]:
    """Return the figures of a phase's requests, events apart."""
    conflicts = sum(request.code == _CONFLICT for request in phase.requests)
    events = len(phase.requests) - len(phase.counted)
    return [
        Figure(f"{phase.name}: requests a claim", phase.per_claim(len(phase.counted)), "", aim=limits.requests),
        *(Figure(f"{phase.name}:   {verb}", phase.per_claim(n), "") for verb, n in by_verb(phase.counted)),
        Figure(f"{phase.name}: events a claim", phase.per_claim(events), ""),
        Figure(f"{phase.name}: answered 409, a claim", phase.per_claim(conflicts), "", aim=limits.conflicts, goal=0),
    ]


def pass_figures(phase: Phase, limits: Limits) -> list[Figure]:
    """Return the figures of a phase's passes."""
    return [
        Figure(f"{phase.name}: passes a claim", phase.per_claim(phase.passes), "", aim=limits.passes),
        Figure(f"{phase.name}: adds to the queue a claim", phase.per_claim(phase.adds), ""),
    ]


def processor_figures(phase: Phase, *, goal: float | None = None) -> list[Figure]:
    """Return the processor time of a phase by program; `goal` is the composer's, in milliseconds a claim."""
    composer = phase.composer.cpu_seconds / phase.claims * _MS
    programs = ((name, phase.processor.get(name, 0.0)) for name in ("kube-apiserver", "etcd"))
    return [
        Figure(f"{phase.name}: CPU a claim, composer", composer, "ms", goal=goal),
        *(Figure(f"{phase.name}: CPU a claim, {name}", used / phase.claims * _MS, "ms") for name, used in programs),
        Figure(f"{phase.name}: CPU a claim, all processes", phase.all_processors_ms, "ms"),
    ]


def by_verb(requests: list[Request]) -> list[tuple[str, int]]:
    """Count requests by verb, resource and subresource."""
    table = Counter(
        f"{request.verb} {request.resource}{'/' if request.subresource else ''}{request.subresource}"
        for request in requests
    )
    return sorted(table.items())
