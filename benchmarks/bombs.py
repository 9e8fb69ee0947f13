"""What templates that use up their limits cost the others: the loop that waits for renders, and neighbours' claims.

The machine has other work, too. So an idle loop in another process is measured at the same time; and claims alone,
beside claims that are edited without harm, and beside bombs that are edited as often take turns.
"""

from __future__ import annotations

import asyncio
import secrets
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import msgspec
import uvloop

from benchmarks import bomb_objects, loop_stall
from benchmarks.plane import on_a_plane
from benchmarks.report import Figure, print_figures
from composer.render.errors import CompositionError
from composer.workers.pool import RenderPool
from runtime.errors import Transient
from runtime.serve import freeze_imports
from tests.composer.factories import claim as claim_of
from tests.composer.workers.bombs import BOMBS, request_of
from tests.support.api import ApiError
from tests.support.kinds import CLAIM, COMPOSITION, claim
from tests.support.system import System, allow_composer
from tests.support.waiting import eventually

_STALL_AIM_MS = 50.0
# No API server keeps a larger object.
_OBJECT_LIMIT_BYTES = 3 << 19
_SLOWER_AIM_PERCENT = 10.0
_RUNS = 3
_ROUNDS = 5
_NEIGHBOURS = 25
_EDITED_EVERY_S = 0.2
_BURNING_AFTER_S = 2.0


class Stalled(NamedTuple):
    """One run beside all bombs, in milliseconds: the loop that waits for them, an idle loop, what ours computed."""

    loop: float
    idle: float
    busy: float

    @property
    def beyond(self) -> float:
        """What the machine did not do to the idle loop as well."""
        return max(self.loop - self.idle, 0.0)


class Compared(NamedTuple):
    """For each round the median seconds of neighbours' claims until they have their child."""

    alone: list[float]
    harmless: list[float]
    bombs: list[float]
    edits: list[int]


def _slower_percent(than: list[float], runs: list[float]) -> float:
    """Return by how much one is longer in the middle of all rounds: the machine changes meanwhile."""
    return (statistics.median(run / base for base, run in zip(than, runs, strict=True)) - 1) * 100


def figures() -> list[Figure]:
    """Measure the loop with every bomb of the tests, then claims beside bombs on a real control plane."""
    runs = [uvloop.run(_stalls()) for _ in range(_RUNS)]
    # On a machine that is full, the longest wait of each of two processes is a matter of luck.
    middle = sorted(runs, key=lambda run: run.beyond)[len(runs) // 2]
    compared = on_a_plane(_neighbours)
    return [
        Figure("longest stall of the loop beside bombs", middle.loop, "ms"),
        Figure("longest stall of an idle loop at that time", middle.idle, "ms"),
        Figure("the loop's stall beyond the idle loop's", middle.beyond, "ms", aim=_STALL_AIM_MS),
        Figure("longest that the loop itself computed", max(run.busy for run in runs), "ms", aim=_STALL_AIM_MS),
        Figure("a neighbour's claim, median, alone", statistics.median(compared.alone) * 1000, "ms"),
        Figure("the same beside edits that do no harm", statistics.median(compared.harmless) * 1000, "ms"),
        Figure("the same beside bombs", statistics.median(compared.bombs) * 1000, "ms"),
        Figure("beside bombs slower than alone by", _slower_percent(compared.alone, compared.bombs), "%"),
        Figure(
            "beside bombs slower than beside as many edits by",
            _slower_percent(compared.harmless, compared.bombs),
            "%",
            aim=_SLOWER_AIM_PERCENT,
        ),
        Figure("edits meanwhile", sum(compared.edits), "edits"),
    ]


async def _stalls() -> Stalled:
    """Measure how long the loop of this process is kept while it waits for bombs, as the composer's would be."""
    pool = RenderPool(workers=2)
    await asyncio.to_thread(pool.prove)
    # As the composer does once it is loaded.
    freeze_imports()
    requests = [
        msgspec.structs.replace(request_of(bomb), identity=f"uid@bombs-{number}/a")
        for number, bomb in enumerate(BOMBS.values())
        if len(msgspec.json.encode(request_of(bomb))) <= _OBJECT_LIMIT_BYTES
    ]
    await _go_off(pool, msgspec.structs.replace(request_of(BOMBS["a range"]), claim=claim_of(size="warm")))
    async with loop_stall.measured_beside() as (own, idle):
        await asyncio.gather(*(_go_off(pool, request) for request in requests))
    await pool.close()
    return Stalled(own.longest_ms, idle.longest_ms, own.busiest_ms)


async def _go_off(pool: RenderPool, request: Any) -> None:
    with suppress(CompositionError, Transient):
        await pool.render(request)


async def _neighbours(system: System) -> Compared:
    compared = Compared([], [], [], [])
    async with system.namespace() as home, system.namespace() as other:
        await allow_composer(system, "", "configmaps")
        await system.start_composer("--no-elect")
        good, bomb = bomb_objects.harmless(f"{home}-good"), bomb_objects.bomb(f"{other}-bomb")
        for spec in (good, bomb):
            await system.create(COMPOSITION, spec)
        # The first ones pay for informers and compilation.
        await _creations(system, home, good)
        for _ in range(_ROUNDS):
            compared.alone.append(statistics.median(await _creations(system, home, good)))
            for of, times in ((good, compared.harmless), (bomb, compared.bombs)):
                async with _edited(system, other, of) as edits:
                    times.append(statistics.median(await _creations(system, home, good)))
                compared.edits.append(edits[0])
    return compared


def _claim(namespace: str, name: str, of: Any, token: str) -> Any:
    ref = {"name": of["metadata"]["name"]}
    return claim(namespace, name, compositionRef=ref, passwordRotation={"token": token})


async def _creations(system: System, namespace: str, of: Any) -> list[float]:
    """Make claims one after the other; return the seconds until each has its child."""
    took: list[float] = []
    for _ in range(_NEIGHBOURS):
        name = f"neighbour-{secrets.token_hex(4)}"
        began = time.perf_counter()
        await system.create(CLAIM, _claim(namespace, name, of, name))
        await eventually(partial(_has_child, system, namespace, name), "the child is made", every_s=0.001)
        took.append(time.perf_counter() - began)
    return took


async def _has_child(system: System, namespace: str, name: str) -> bool:
    claim = await system.api.get(CLAIM.path(namespace, name))
    return any("uid" in entry for entry in (claim.get("status") or {}).get("inventory") or ())


@asynccontextmanager
async def _edited(system: System, namespace: str, of: Any) -> AsyncIterator[list[int]]:
    """Make three claims and edit each again and again: no two contents are the same. They go in the end."""
    edited = [0]

    async def edit(name: str) -> None:
        for number in count(1):
            await asyncio.sleep(_EDITED_EVERY_S)
            token = {"spec": {"passwordRotation": {"token": f"{name}-{number}"}}}
            with suppress(ApiError):
                await system.edit(CLAIM, namespace, name, token)
                edited[0] += 1

    names = [f"{bomb_objects.BOMB_PREFIX}{secrets.token_hex(4)}" for _ in range(3)]
    for name in names:
        await system.create(CLAIM, _claim(namespace, name, of, name))
    editing = [asyncio.create_task(edit(name)) for name in names]
    await asyncio.sleep(_BURNING_AFTER_S)
    try:
        yield edited
    finally:
        for task in editing:
            task.cancel()
        for name in names:
            await system.delete(CLAIM, namespace, name)


def main() -> int:
    """Print all figures; return 1 when an aim is missed."""
    return print_figures(figures())


if __name__ == "__main__":
    sys.exit(main())
