"""What happens to a platform in any cloud: weather, kills, compaction, and calm."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fairlead.simulation import calls, faulty
from tests.simulation.cast import Cast

_EFFECTS: Final = 12


async def weather_turns(cast: Cast) -> str:
    rate = cast.draw(0.0, 0.02, 0.1, 0.3)
    kube, cloud = cast.platform.weather, cast.platform.cloud.weather
    kube.write_refused, kube.answer_lost, kube.read_refused, kube.watch_cut = rate, rate, rate / 4, rate / 8
    cloud.cut_before, cloud.cut_after, cloud.unavailable, cloud.throttled = rate / 2, rate, rate / 2, rate / 4
    cloud.write_cut = cast.draw(0.0, 1.0)
    cloud.absent = cast.draw(0.0, 0.3)
    if cast.platform.replicas > 1:
        kube.write_late = rate / 4
    return f"weather {rate} {cloud.write_cut} {cloud.absent}"


async def kill(cast: Cast) -> str:
    name = cast.draw(*cast.platform.names)
    await cast.platform.kill(name)
    await asyncio.sleep(cast.chance.random() * 20)
    await cast.platform.start(name)
    return f"killed {name}"


async def kill_at(cast: Cast) -> str:
    """Have a process die right before or right after one of its next effects."""
    name, moment = cast.draw(*cast.platform.names), cast.draw("before", "after")
    effect, pause_s = cast.chance.randint(1, _EFFECTS), cast.chance.random() * 20
    cast.platform.kill_at(name, effect, moment, pause_s)
    return f"{name} dies {moment} effect {effect}"


async def freeze_at(cast: Cast) -> str:
    """Have a process stand still around one of its next effects, mostly until another has taken its Lease."""
    name, moment = cast.draw(*cast.platform.names), cast.draw("before", "after")
    effect, seconds = cast.chance.randint(1, _EFFECTS), cast.chance.uniform(2, 40)
    cast.platform.freeze_at(name, effect, moment, seconds)
    return f"{name} stands still for {seconds:.0f} s {moment} effect {effect}"


async def cut_off(cast: Cast) -> str:
    """Let a process reach nothing for as long as another may take its Lease, or not quite."""
    name, seconds = cast.draw(*cast.platform.names), cast.chance.uniform(2, 40)
    cast.platform.cut_off(name, seconds)
    return f"{name} is cut off for {seconds:.0f} s"


async def compact(cast: Cast) -> str:
    cast.platform.server.compact()
    return "compacted"


async def calm(cast: Cast) -> str:
    """Let the weather be fair; what stands still in the cloud stands still."""
    _fair(cast.platform.weather, faulty.Weather())
    _fair(cast.platform.cloud.weather, calls.Weather())
    return "calm"


def _fair(weather: Any, none: Any) -> None:
    for name in none.__slots__:
        setattr(weather, name, getattr(none, name))
