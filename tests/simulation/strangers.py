"""What others do to the cloud, what happens in it, and what processes and networks suffer."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.simulation import cloud_sql, faulty
from tests.simulation.cast import Cast
from tests.simulation.people import CLAIM_KEYS, INNER_NAMES

_NAMES = (*INNER_NAMES, *(key.name for key in CLAIM_KEYS))


async def makes(cast: Cast) -> str:
    instance = cast.instance()
    if cast.happens(1 / 2):
        return cast.ask("POST", f"instances/{instance}/databases", {"name": cast.draw(*_NAMES)})
    name = f"{cast.draw(*_NAMES)}_app"
    return cast.ask("POST", f"instances/{instance}/users", {"name": name, "password": "Strangers-1"})


async def drops(cast: Cast) -> str:
    return cast.ask("DELETE", f"instances/{cast.instance()}/databases/{cast.draw(*_NAMES)}")


async def drops_user(cast: Cast) -> str:
    query = (("name", f"{cast.draw(*_NAMES)}_app"),)
    return cast.ask("DELETE", f"instances/{cast.instance()}/users", query=query)


async def replaces(cast: Cast) -> str:
    instance, name = cast.instance(), cast.draw(*_NAMES)
    dropped = cast.ask("DELETE", f"instances/{instance}/databases/{name}")
    await asyncio.sleep(cast.chance.uniform(3, 30))
    return f"{dropped}, {cast.ask('POST', f'instances/{instance}/databases', {'name': name})}"


async def edits(cast: Cast) -> str:
    """Change a setting, or take the labels by which an instance is known."""
    settings = cast.draw({"activationPolicy": "NEVER"}, {"activationPolicy": "ALWAYS"}, {"userLabels": {}},
                         {"tier": "db-custom-2-8192"}, {"userLabels": {"costs": "77"}})  # fmt: skip
    return cast.ask("PATCH", f"instances/{cast.instance()}", {"settings": settings})


async def deletes(cast: Cast) -> str:
    return cast.ask("DELETE", f"instances/{cast.instance()}")


async def cloud_changes(cast: Cast) -> str:
    instance = cast.instance()
    change = cast.draw({"state": "SUSPENDED"}, {"state": "FAILED"}, {"vanish": True}, {"state": "RUNNABLE"},
                       {"state": "SUSPENDED"}, {"state": "FAILED"}, {"vanish": True},
                       {"grow": 60}, {"replace": True}, {"state": "MAINTENANCE"})  # fmt: skip
    if instance:
        cast.platform.cloud.steer(instance, **change)
    return f"{instance} {change}"


async def weather_turns(cast: Cast) -> str:
    rate = cast.draw(0.0, 0.02, 0.1, 0.3)
    kube, cloud = cast.platform.weather, cast.platform.cloud.weather
    kube.write_refused, kube.answer_lost, kube.read_refused, kube.watch_cut = rate, rate, rate / 4, rate / 8
    cloud.cut_before, cloud.cut_after, cloud.unavailable, cloud.throttled = rate / 2, rate, rate / 2, rate / 4
    cloud.write_cut = cast.draw(0.0, 1.0)
    cloud.absent = cast.draw(0.0, 0.3)
    return f"weather {rate} {cloud.write_cut} {cloud.absent}"


async def kill(cast: Cast) -> str:
    name = cast.draw("composer", "provider-gcp")
    await cast.platform.kill(name)
    await asyncio.sleep(cast.chance.random() * 20)
    await cast.platform.start(name)
    return f"killed {name}"


async def compact(cast: Cast) -> str:
    cast.platform.server.compact()
    return "compacted"


async def calm(cast: Cast) -> str:
    """Let the weather be fair; what stands still in the cloud stands still."""
    _fair(cast.platform.weather, faulty.Weather())
    _fair(cast.platform.cloud.weather, cloud_sql.Weather())
    return "calm"


def _fair(weather: Any, none: Any) -> None:
    for name in none.__slots__:
        setattr(weather, name, getattr(none, name))
