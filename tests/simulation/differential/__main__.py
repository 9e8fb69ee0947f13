"""`python -m tests.simulation.differential --sequences N --seed S`: the API server in memory beside a real one."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from devcloud.controlplane import ensure
from devcloud.controlplane import plane as planes
from devcloud.controlplane.kubectl import Kubectl
from devcloud.daemons import Lifetime
from runtime.objects import dumps
from tests.simulation.differential.generator import Generator
from tests.simulation.differential.requests import Sequence
from tests.simulation.differential.runner import pairs, run_all, shortest
from tests.simulation.differential.worlds import world
from tests.support.api import connect

_PAIRS = 24


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def shown(sequence: Sequence) -> str:
    """Return a sequence as a table has it."""
    requests = "".join(f"    {request!r},\n" for request in sequence.requests)
    return f"Sequence((\n{requests}), {sequence.watched!r})"


def drawn(sequences: int, seed: int, *, collects: bool) -> list[Sequence]:
    """Return sequences; each has a seed of its own."""
    generators = (random.Random(f"{seed}:{number}") for number in range(sequences))  # noqa: S311 - no secret
    return [Generator(world(), chance, collects).sequence() for chance in generators]


async def _compare(kubeconfig: Path, sequences: list[Sequence], most: int) -> int:
    start = time.monotonic()
    async with connect(kubeconfig) as api, pairs(api, world(), _PAIRS) as made:
        results = await run_all(made, sequences, asyncio.get_running_loop().time() + 10_000)
        differing = [(number, difference) for number, difference in results if difference is not None]
        for number, first in differing[:most]:
            try:
                short, difference = await shortest(made[0], sequences[number])
            except AssertionError as error:
                _say(f"--- sequence {number}: {error}; it was, after request {first.step}:")
                _say("\n".join(line[:600] for line in first.lines[:12]))
                continue
            _say(f"--- sequence {number}, request {difference.step}:\n{shown(short)}")
            _say("\n".join(line[:600] for line in difference.lines[:12]))
    _say(f"{len(results)} sequences, {len(differing)} differ, {time.monotonic() - start:.0f} s")
    return 1 if differing else 0


async def _install(kubectl: Kubectl) -> None:
    """Have the kinds before the controllers start, so that the garbage collector knows them."""
    for crd in world().crds:
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            file.write(dumps(crd))
            file.flush()
            await kubectl.run("apply", "--server-side", "-f", file.name)


async def _run(arguments: argparse.Namespace) -> int:
    sequences = drawn(arguments.sequences, arguments.seed, collects=True)
    if arguments.only:
        sequences = [sequences[arguments.only]]
    if arguments.kubeconfig:
        return await _compare(arguments.kubeconfig, sequences, arguments.most)
    programs = await ensure(_say)
    with tempfile.TemporaryDirectory() as folder:
        options = planes.Options(
            folder=Path(folder) / "plane", lifetime=Lifetime.WITH_PARENT, durable=False, before_controllers=_install
        )
        async with planes.ephemeral(options, programs) as plane:
            if arguments.stays:
                _say(str(plane.kubeconfig))
                await asyncio.Event().wait()
            return await _compare(plane.kubeconfig, sequences, arguments.most)


def main() -> int:
    """Return 1 when the servers differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, default=0, help="the number of one sequence")
    parser.add_argument("--most", type=int, default=10, help="how many differences are made short and printed")
    parser.add_argument("--kubeconfig", type=Path, help="a plane that runs")
    parser.add_argument("--stays", action="store_true", help="start a plane, print its kubeconfig and wait")
    return asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
