"""Rounds of the engine's phases on one control plane, each begun by a line on standard input. See `paired`."""

from __future__ import annotations

import argparse
import asyncio
import operator
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
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
from tests.support.processes import Program
from tests.support.system import System

_NAMESPACE: Final = "rounds"
_LIMIT: Final = 33
_SINGLES: Final = 20

Figures = dict[str, dict[str, float]]
"""The figures of a round, by phase and name."""


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
                current = _Round(system, load, composer, keys)
                print(msgspec.json.encode(await current.run()).decode(), flush=True)  # likewise
                composer = current.composer
                number += 1
    finally:
        await kube.close()


@dataclass(slots=True)
class _Round:
    """The phases over one set of claims, which are gone at its end. `composer` is another process after it."""

    system: System
    load: Load
    composer: Program
    keys: list[Key]
    figures: Figures = field(default_factory=dict)

    async def run(self) -> Figures:
        """Carry out all phases; return their figures."""
        async with self._measured("create"):
            await self.load.claims(self.keys)
            await self.load.until(lambda: self.load.seen.ready.keys() >= set(self.keys), "all Ready")
        await self._drift("drift of one", objects.RESOURCES[:1])
        await self._drift("drift of both", objects.RESOURCES)
        async with self._measured("change"):
            await self._change(_LIMIT)
        await self._change(objects.LIMIT)
        await self.system.at_rest()
        others = [*await self._singles(), await self._restart()]
        await self._delete(others)
        async with self._measured("delete"):
            await self._delete(self.keys)
        self.load.forget()
        return self.figures

    async def _drift(self, name: str, resources: tuple[str, ...]) -> None:
        self.load.seen.overwritten.clear()
        children = self.load.children_of(resources)
        async with self._measured(name):
            await self.load.overwrite(children)
            await self.load.until(lambda: len(self.load.seen.overwritten) == len(children), "all overwritten")
            await self.load.until(partial(self.load.all_carry, objects.LIMIT), "all put back")

    async def _change(self, limit: int) -> None:
        await self.load.change_composition(limit)
        await self.load.until(partial(self.load.all_carry, limit), "all carry the value")

    async def _singles(self) -> list[Key]:
        """Make claims one after the other, beside those that are there."""
        keys = [Key(_NAMESPACE, f"{self.keys[0].name}-single-{index}") for index in range(_SINGLES)]
        composed = []
        for key in keys:
            began = time.monotonic()
            await self.load.claim(key)
            await self.load.until(partial(operator.contains, self.load.seen.ready, key), f"{key} is Ready")
            composed.append(1000 * (self.load.seen.composed[key] - began))
        self.figures["single"] = {"median ms": statistics.median(composed), "worst ms": max(composed)}
        return keys

    async def _restart(self) -> Key:
        """Stop the composer and start another one, while a claim is made."""
        await self.composer.terminate()
        key = Key(_NAMESPACE, f"{self.keys[0].name}-newcomer")
        await self.load.claim(key)
        began = time.monotonic()
        self.composer = await self.system.start_composer(wait=False)
        composed = await self.load.until(lambda: key in self.load.seen.composed, "the newcomer is composed")
        self.figures["restart"] = {"seconds": composed - began}
        await self.system.at_rest(for_s=5.0)
        await self.composer.until_healthy(self.system.ports["composer"])
        return key

    async def _delete(self, keys: list[Key]) -> None:
        """Delete claims at once; return when they and all of their children are gone."""
        everything = {*keys, *self.load.children_of_claims(keys)}
        await self.load.delete(keys)
        await self.load.until(lambda: self.load.seen.gone >= everything, "all gone")

    @asynccontextmanager
    async def _measured(self, name: str) -> AsyncIterator[None]:
        """Measure a phase until the composer writes nothing more; its seconds are those of the body."""
        phase = Phase(name, len(self.keys))
        async with engine_phase.measured(self.system, self.composer.pid, phase):
            began = time.monotonic()
            yield
            phase.seconds = time.monotonic() - began
        self.figures[name] = _figures(phase)


def _figures(phase: Phase) -> dict[str, float]:
    milliseconds = 1000 / phase.claims
    return {
        "seconds": phase.seconds,
        "composer ms": phase.composer.cpu_seconds * milliseconds,
        "API server ms": phase.processor.get("kube-apiserver", 0.0) * milliseconds,
        "all ms": phase.all_processors_ms,
        "requests": phase.per_claim(len(phase.counted)),
        "events": phase.per_claim(len(phase.requests) - len(phase.counted)),
        "passes": phase.per_claim(phase.passes),
        "memory MiB": phase.composer.peak_mib,
    }


def main() -> int:
    """Serve rounds until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine_rounds", description=__doc__)
    parser.add_argument("--claims", type=int, default=80)
    on_a_plane(partial(_serve, parser.parse_args().claims))
    return 0


if __name__ == "__main__":
    sys.exit(main())
