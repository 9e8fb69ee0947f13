"""A life: a platform, acts in all weathers, a time of calm, and its judges."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from runtime import clock
from tests.simulation import acts, judges, virtual
from tests.simulation.cast import Cast
from tests.simulation.judges import Finding
from tests.simulation.platform import Platform
from tests.simulation.recorder import Recorder

_ACTS_S: Final = 40 * 60.0
_CALM_S: Final = 50 * 60.0
# Failures of before may have their longest pause.
_PAUSE_S: Final = 12 * 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a life went; `acts` is how many were planned, `trace` the last lines as far as they were kept."""

    seed: str
    hash: str
    lines: int
    kills: int
    acts: int
    findings: tuple[Finding, ...]
    done: tuple[str, ...]
    trace: tuple[str, ...] = ()


def live(seed: int, life: int, *, keep: int = 0, acts: frozenset[int] | None = None) -> Outcome:
    """Have one life; it is a function of the two numbers, and of the numbers of its acts where not all are kept."""
    trace = virtual.Trace(keep=keep)
    return virtual.run(f"{seed}:{life}", lambda: _live(f"{seed}:{life}", trace, acts))


async def _live(name: str, trace: virtual.Trace, kept: frozenset[int] | None) -> Outcome:
    platform = Platform(name, trace)
    recorder = Recorder(platform)
    platform.install()
    background = [*platform.background(), asyncio.create_task(recorder.run())]
    for process in ("composer", "provider-gcp"):
        await platform.start(process)
    cast = Cast(platform, name)
    planned = acts.plan(cast, _ACTS_S)
    await cast.carry_out([step for step in planned if kept is None or step.number in kept], _ACTS_S)
    recorder.history.calm_since = clock.monotonic() + _PAUSE_S
    await acts.rest(cast, _CALM_S)
    history = recorder.end()
    for process in tuple(platform.processes):
        await platform.kill(process)
    for task in background:
        task.cancel()
    breaches = tuple(judges.findings(history))
    return Outcome(
        name, trace.hash, trace.lines, platform.kills, len(planned), breaches, tuple(cast.done), tuple(trace.last)
    )
