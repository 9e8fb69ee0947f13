"""A life: a platform, acts in all weathers, a time of calm, and its judges."""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass
from typing import NamedTuple

from fairlead.assets import assets
from fairlead.simulation import clouds, virtual_time
from fairlead.simulation.platform import Platform
from fairlead.yaml_files import objects_in
from runtime import clock
from runtime.objects import Object, dumps, loads
from tests.simulation import acts, judges, profiles
from tests.simulation.cast import Cast
from tests.simulation.history import OTHER, TEAM, Finding
from tests.simulation.recorder import Recorder


class Seed(NamedTuple):
    """What a life follows from: two numbers, the cloud, which the numbers draw where none is named, and the profile."""

    seed: int
    life: int
    cloud: str = ""
    profile: profiles.Name = "long"

    def __str__(self) -> str:
        """Return its numbers as a command takes them."""
        return f"{self.seed}:{self.life}"

    def command(self, acts: str = "") -> str:
        """Return the command that has this life again, or some of its acts."""
        options = f"--profile {self.profile} --cloud {self.cloud}"
        return f"python -m tests.simulation {options} --replay {self}{acts and ':'}{acts}"


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
    """How a life went.

    Attributes:
        seed: Its seed, with the cloud in which it was lived.
        acts: How many acts were planned.
        served: How many claims were Ready with a login that works.
        ended: How many resources were deleted.
        trace: The last lines, as far as they were kept.
    """

    seed: Seed
    hash: str
    lines: int
    kills: int
    acts: int
    served: int
    ended: int
    findings: tuple[Finding, ...]
    done: tuple[str, ...]
    trace: tuple[str, ...] = ()


def live(seed: Seed, *, keep: int = 0, acts: frozenset[int] | None = None) -> Outcome:
    """Have one life; it is a function of its seed, and of the numbers of its acts where not all are kept."""
    trace = virtual_time.Trace(keep=keep)
    seed = seed._replace(cloud=seed.cloud or clouds.name_of(str(seed)))
    return virtual_time.run(str(seed), lambda: _live(seed, trace, acts))


async def _live(seed: Seed, trace: virtual_time.Trace, kept: frozenset[int] | None) -> Outcome:
    life, profile, description = str(seed), profiles.PROFILES[seed.profile], clouds.described(seed.cloud)
    platform = Platform(life, trace, description, profile.replicas)
    recorder = Recorder(platform)
    platform.install((TEAM, OTHER), (_composition(description.name),))
    background = [*platform.background(), asyncio.create_task(recorder.run())]
    for process in platform.names:
        await platform.start(process)
    cast = Cast(platform, life)
    planned = acts.plan(cast, profile)
    await cast.carry_out([step for step in planned if kept is None or step.number in kept], profile.acts_s)
    recorder.history.calm_since = clock.monotonic() + profile.settle_s
    recorder.history.lasting_s = profile.lasting_s
    await acts.rest(cast, profile.calm_s)
    history = recorder.end()
    for alive in platform.processes.values():
        alive.connection.life.is_over = True
    for name in tuple(platform.processes):
        await platform.kill(name)
    for task in background:
        task.cancel()
    breaches = tuple(judges.findings(history))
    return Outcome(
        seed,
        trace.hash,
        trace.lines,
        platform.kills,
        len(planned),
        len({sample.name for sample in history.samples if not sample.role and sample.ready and sample.serves}),
        len(history.ended),
        breaches,
        tuple(cast.done),
        tuple(trace.last),
    )
