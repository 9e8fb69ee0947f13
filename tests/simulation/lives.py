"""A life: a platform, acts in all weathers, a time of calm, and its judges."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass
from typing import Final, NamedTuple

from fairlead.assets import assets
from fairlead.simulation import clouds, virtual_time
from fairlead.simulation.platform import Platform
from fairlead.yaml_files import objects_in
from runtime import clock
from runtime.objects import Object, dumps, loads
from tests.simulation import acts, judges
from tests.simulation.cast import Cast
from tests.simulation.history import OTHER, TEAM
from tests.simulation.judges import Finding
from tests.simulation.recorder import Recorder

_ACTS_S: Final = 40 * 60.0
_CALM_S: Final = 50 * 60.0
# Failures of before may have their longest pause.
_PAUSE_S: Final = 12 * 60.0


class Seed(NamedTuple):
    """What a life follows from: two numbers, and the cloud, which the numbers draw where none is named."""

    seed: int
    life: int
    cloud: str = ""

    def __str__(self) -> str:
        """Return it as a command takes it."""
        return f"{self.seed}:{self.life}"


@functools.cache
def _shipped(cloud: str) -> bytes:
    (composition,) = objects_in(assets("compositions"), f"postgres-{cloud}.yaml")
    return dumps(composition)


def _composition(cloud: str) -> Object:
    """Return the shipped Composition, with a rollout that is over before a life is."""
    composition = loads(_shipped(cloud))
    composition["spec"]["rollout"] = {"waves": ["50%", "100%"], "soakSeconds": 30, "progressDeadlineSeconds": 300}
    return composition


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a life went; `acts` is how many were planned, `trace` the last lines as far as they were kept."""

    seed: str
    cloud: str
    hash: str
    lines: int
    kills: int
    acts: int
    findings: tuple[Finding, ...]
    done: tuple[str, ...]
    trace: tuple[str, ...] = ()


def live(seed: Seed, *, keep: int = 0, acts: frozenset[int] | None = None) -> Outcome:
    """Have one life; it is a function of its seed, and of the numbers of its acts where not all are kept."""
    name, trace = str(seed), virtual_time.Trace(keep=keep)
    description = clouds.described(seed.cloud or clouds.name_of(name))
    return virtual_time.run(name, lambda: _live(name, trace, description, acts))


async def _live(
    name: str, trace: virtual_time.Trace, description: clouds.CloudDescription, kept: frozenset[int] | None
) -> Outcome:
    platform = Platform(name, trace, description)
    recorder = Recorder(platform)
    platform.install((TEAM, OTHER), (_composition(description.name),))
    background = [*platform.background(), asyncio.create_task(recorder.run())]
    for process in ("composer", description.provider_process):
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
        name,
        description.name,
        trace.hash,
        trace.lines,
        platform.kills,
        len(planned),
        breaches,
        tuple(cast.done),
        tuple(trace.last),
    )
