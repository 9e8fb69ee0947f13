"""What is asked of a controller process: whether it is alive, and whether it is ready.

Liveness fails only for what a restart can cure. An API server that is away makes a process not ready, never dead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Final

from runtime.cache import Cache
from runtime.controller import Controller
from runtime.health import Health

# Longer than any one request may take.
AWAY: Final = timedelta(seconds=15)
STALE: Final = timedelta(minutes=3)
STALLED: Final = timedelta(minutes=10)


def checks_of(
    cache: Cache, controllers: Collection[Controller], *, unreachable_for: Callable[[], timedelta] = timedelta
) -> Health:
    """Return the checks over live state; `controllers` is filled once they are built.

    `away_for`: how long the API server has left requests without an answer.
    """

    def unreached() -> str | None:
        away = unreachable_for()
        return f"the API server has not answered for {away.total_seconds():.0f} s" if away > AWAY else None

    def stale() -> str | None:
        longest = cache.stalest()
        return f"a watch has been silent for {longest.total_seconds():.0f} s" if longest > STALE else None

    def stuck() -> str | None:
        # The API server speaks on one watch and not on another: only then would a restart help.
        return stale() if cache.freshest() < STALE else None

    def restored() -> str | None:
        kinds = sorted({informer.resource.group_kind for informer in cache if informer.went_back})
        age = "older than what was seen for minutes; the API server was restored from a backup, and a restart helps"
        return f"each list of {', '.join(kinds)} is {age}" if kinds else None

    def stalled() -> str | None:
        still = [controller.name for controller in controllers if controller.stalled_for() > STALLED]
        return f"no pass has begun or ended for {STALLED} though work waits: {', '.join(still)}" if still else None

    def unbuilt() -> str | None:
        return None if controllers else "the controllers are not built yet"

    def unfilled() -> str | None:
        missing = sorted(
            informer.resource.group_kind for informer in cache if informer.required and not informer.synced.is_set()
        )
        return f"no complete list yet of {', '.join(missing)}" if missing else None

    return Health(
        live={"watches": stuck, "versions": restored, "queues": stalled},
        ready={
            "api-server": unreached,
            "controllers": unbuilt,
            "lists": unfilled,
            "watches": stale,
            "versions": restored,
            "queues": stalled,
        },
    )
