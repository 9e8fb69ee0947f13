"""A life: a platform, two hours of acts in all weathers, two hours of calm, and its judges."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from runtime import clock
from tests.simulation import acts, judges, virtual
from tests.simulation.history import Recorder
from tests.simulation.judges import Finding
from tests.simulation.platform import Platform

_ACTS_S: Final = 1.25 * 3600.0
_CALM_S: Final = 1.25 * 3600.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a life went."""

    seed: str
    hash: str
    lines: int
    kills: int
    findings: tuple[Finding, ...]
    done: tuple[str, ...]


def live(seed: int, life: int, *, keep: int = 0) -> Outcome:
    """Have one life; it is a function of the two numbers."""
    name = f"{seed}:{life}"
    trace = virtual.Trace(keep=keep)
    return virtual.run(name, lambda: _live(name, trace))


async def _live(name: str, trace: virtual.Trace) -> Outcome:
    platform = Platform(name, trace)
    recorder = Recorder(platform)
    platform.install()
    background = [*platform.background(), asyncio.create_task(recorder.run())]
    for process in ("composer", "provider-gcp"):
        await platform.start(process)
    cast = acts.Cast(platform, virtual.chance_of(name, "acts"))
    await cast.live(_ACTS_S)
    await acts.calm(cast)
    # Failures of before may have their longest pause.
    recorder.history.calm_since = clock.monotonic() + 15 * 60
    await asyncio.sleep(_CALM_S)
    platform.check()
    history = recorder.end()
    for process in tuple(platform.processes):
        await platform.kill(process)
    for task in background:
        task.cancel()
    breaches = judges.findings(history)
    return Outcome(name, trace.hash, trace.lines, platform.kills, tuple(breaches), tuple(cast.done))
