"""How long nobody acts when the leading composer goes, at the default lease: after kill -9 and after a clean stop."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable

from benchmarks.plane import on_a_plane
from benchmarks.report import Figure, print_figures
from tests.support.api import JsonObject
from tests.support.kinds import CLAIM, claim
from tests.support.processes import Program
from tests.support.system import System
from tests.support.waiting import eventually

_KILL_AIM_S = 15.0
_STOP_AIM_S = 3.0
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/fairlead-system/leases/fairlead-composer"


def figures() -> list[Figure]:
    """Measure both hand-overs on a real control plane."""
    return on_a_plane(_measure)


async def _measure(system: System) -> list[Figure]:
    async with system.namespace() as namespace:
        first = await system.start_composer(name="first")
        await _until_led(system)
        second = await system.start_composer(name="second")
        killed_s = await _gap(system, claim(namespace, "after-kill"), first.kill9)
        await system.start_composer(name="third")
        stopped_s = await _gap(system, claim(namespace, "after-stop"), lambda: _stop(second))
    return [
        Figure("hand-over after kill -9", killed_s, "s", aim=_KILL_AIM_S),
        Figure("hand-over after a clean stop", stopped_s, "s", aim=_STOP_AIM_S),
    ]


async def _gap(system: System, body: JsonObject, leave: Callable[[], Awaitable[object]]) -> float:
    """Return the time from the leader's leaving until its successor has written to a new claim, in seconds."""
    began = time.monotonic()
    # Made when the leader is gone, so that only its successor can take it up.
    await leave()
    await system.create(CLAIM, body)
    meta = body["metadata"]
    await system.until(CLAIM, meta["namespace"], meta["name"], _is_taken_up)
    return time.monotonic() - began


async def _stop(program: Program) -> None:
    await program.terminate()


async def _until_led(system: System) -> None:
    async def led() -> bool:
        lease = await system.api.find(_LEASE)
        return lease is not None and bool(lease["spec"].get("holderIdentity"))

    await eventually(led, "a composer leads")


def _is_taken_up(obj: JsonObject) -> bool:
    return "fairlead.dev/identity" in obj["metadata"].get("annotations", {})


def main() -> int:
    """Print both figures; return 1 when an aim is missed."""
    return print_figures(figures())


if __name__ == "__main__":
    sys.exit(main())
