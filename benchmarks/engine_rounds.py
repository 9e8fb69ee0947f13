"""Rounds of the engine's phases on one control plane, each begun by a line on standard input. See `paired`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from functools import partial
from typing import Final

import msgspec

from benchmarks import engine_objects as objects
from benchmarks import engine_phase
from benchmarks.engine_load import Load
from benchmarks.engine_phase import Phase
from benchmarks.plane import on_a_plane
from runtime.kube_client import KubeClient
from runtime.objects import Key
from tests.support.grants import let_watch_secrets
from tests.support.kinds import COMPOSITION
from tests.support.system import System

_NAMESPACE: Final = "rounds"
_LIMITS: Final = (33, 34)


async def _serve(claims: int, system: System) -> None:
    """Carry out a round for each line that is read; write its figures as a line of JSON."""
    kube = await KubeClient.connect(user_agent="bench-load", kubeconfig=system.plane.kubeconfig)
    try:
        load = Load(kube)
        await system.namespaced(_NAMESPACE)
        await let_watch_secrets(system, _NAMESPACE)
        await system.create(COMPOSITION, objects.composition())
        composer = await system.start_composer()
        await system.until(COMPOSITION, "", objects.COMPOSITION_NAME, lambda obj: "conditions" in obj.get("status", {}))
        await system.at_rest()
        async with load.watching():
            print("{}", flush=True)  # the answer to who started it
            number = 0
            while await asyncio.to_thread(sys.stdin.readline):
                keys = [Key(_NAMESPACE, f"claim-{number}-{index}") for index in range(claims)]
                figures = await _round(system, load, composer.pid, keys)
                print(msgspec.json.encode(figures).decode(), flush=True)  # likewise
                number += 1
    finally:
        await kube.close()


async def _round(system: System, load: Load, pid: int, keys: list[Key]) -> dict[str, dict[str, float]]:
    """Return figures by phase: the composer's CPU (ms), the API server's (ms), requests and passes of a claim."""
    measured = partial(engine_phase.measured, system, pid)
    phases = [Phase(name, len(keys)) for name in ("create", "drift of one", "drift of both", "change", "delete")]
    create, drift_of_one, drift_of_both, change, delete = phases
    async with measured(create):
        await load.claims(keys)
        await load.until(lambda: load.seen.ready.keys() >= set(keys), "all Ready")
    for phase, resources in ((drift_of_one, objects.RESOURCES[:1]), (drift_of_both, objects.RESOURCES)):
        load.seen.overwritten.clear()
        children = load.children_of(resources)
        async with measured(phase):
            await load.overwrite(children)
            await load.until(partial(_all_overwritten, load, len(children)), "all overwritten")
            await load.until(partial(load.all_carry, objects.LIMIT), "all put back")
    async with measured(change):
        await load.change_composition(_LIMITS[0])
        await load.until(partial(load.all_carry, _LIMITS[0]), "all carry the value")
    await load.change_composition(objects.LIMIT)
    await load.until(partial(load.all_carry, objects.LIMIT), "all carry the former value")
    await system.at_rest()
    everything = {*keys, *load.children_of(objects.RESOURCES)}
    async with measured(delete):
        await load.delete(keys)
        await load.until(lambda: load.seen.gone >= everything, "all gone")
    load.forget()
    return {phase.name: _figures(phase) for phase in phases}


def _all_overwritten(load: Load, number: int) -> bool:
    return len(load.seen.overwritten) == number


def _figures(phase: Phase) -> dict[str, float]:
    milliseconds = 1000 / phase.claims
    return {
        "composer ms": phase.composer.cpu_seconds * milliseconds,
        "API server ms": phase.processor.get("kube-apiserver", 0.0) * milliseconds,
        "requests": phase.per_claim(len(phase.counted)),
        "passes": phase.per_claim(phase.passes),
    }


def main() -> int:
    """Serve rounds until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine_rounds", description=__doc__)
    parser.add_argument("--claims", type=int, default=80)
    on_a_plane(partial(_serve, parser.parse_args().claims))
    return 0


if __name__ == "__main__":
    sys.exit(main())
