"""`python -m tests.simulation --lives N --seed S`, `--replay SEED:LIFE` or `--shrink SEED:LIFE`.

Exit status 1 where a judge has a finding, and with `--twice` where a life is not the same when it is lived again.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import multiprocessing
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import structlog

from tests.simulation import shrinking
from tests.simulation.lives import Outcome, live

_ALL_LINES = 10**9
# A process keeps what its lives asked of templates: a new one now and then keeps it small.
_LIVES_OF_A_PROCESS = 50


@dataclass(frozen=True, slots=True)
class _Lived:
    """A life that was lived once, or twice: `unlike` is the first line in which the two differ."""

    outcome: Outcome
    seconds: float
    unlike: str = ""


def main() -> int:
    """Have lives, and say how many there were, their hash and the findings of the judges."""
    arguments = _arguments()
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of a set is part of a run.
        command = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        return subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "0"}, check=False).returncode
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    warnings.simplefilter("ignore")
    if arguments.replay:
        seed, life, acts = shrinking.read(arguments.replay)
        outcome = live(seed, life, acts=acts)
        _say("\n".join(map(str, outcome.done)), *map(str, outcome.findings))
        return _report([_Lived(outcome, 0.0)])
    if arguments.shrink:
        seed, life, _ = shrinking.read(arguments.shrink)
        return shrinking.shrink(seed, life, arguments.rule, _say)
    seeds = [(arguments.seed, life) for life in range(arguments.lives)]
    if arguments.seeds:
        first, _, last = arguments.seeds.partition("-")
        seeds = [(seed, life) for seed in range(int(first), int(last) + 1) for life in range(arguments.lives)]
    return _report(list(_said(_lived(seeds, arguments.jobs, twice=arguments.twice))))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--lives", type=int, default=10, help="how many lives of each seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", default="", metavar="FIRST-LAST", help="several seeds")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes live at once")
    parser.add_argument("--twice", action="store_true", help="live each life twice; the two must be the same")
    parser.add_argument("--replay", default="", metavar="SEED:LIFE[:ACTS]")
    parser.add_argument("--shrink", default="", metavar="SEED:LIFE", help="find the fewest acts with the same finding")
    parser.add_argument("--rule", default="", help="the finding to keep; without it the first")
    return parser.parse_args()


def _lived(seeds: list[tuple[int, int]], jobs: int, *, twice: bool) -> Iterator[_Lived]:
    """Yield the lives in the order of their seeds."""
    have = _twice if twice else _once
    if jobs == 1:
        yield from map(have, seeds)
        return
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(jobs, context, _be_silent, max_tasks_per_child=_LIVES_OF_A_PROCESS) as pool:
        yield from pool.map(have, seeds)


def _be_silent() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    warnings.simplefilter("ignore")


def _once(seed: tuple[int, int]) -> _Lived:
    began = time.process_time()
    return _Lived(live(*seed), time.process_time() - began)


def _twice(seed: tuple[int, int]) -> _Lived:
    began = time.process_time()
    first, second = live(*seed, keep=_ALL_LINES), live(*seed, keep=_ALL_LINES)
    pairs = enumerate(zip(first.trace, second.trace, strict=False))
    unlike = next((f"line {at}: {one[:300]} / {other[:300]}" for at, (one, other) in pairs if one != other), "")
    if first.hash != second.hash:
        unlike = unlike or f"{first.lines} and {second.lines} lines"
    return _Lived(first, time.process_time() - began, unlike)


def _said(lived: Iterator[_Lived]) -> Iterator[_Lived]:
    for life in lived:
        for finding in life.outcome.findings:
            _say(f"{life.outcome.seed}: {finding}")
        if life.unlike:
            _say(f"{life.outcome.seed}: not the same life again: {life.unlike}")
        yield life


def _say(*texts: str) -> None:
    sys.stdout.writelines(f"{text}\n" for text in texts)
    sys.stdout.flush()


def _report(lives: list[_Lived]) -> int:
    outcomes = [life.outcome for life in lives]
    total = hashlib.sha256("".join(outcome.hash for outcome in outcomes).encode()).hexdigest()
    findings = sum(len(outcome.findings) for outcome in outcomes)
    lines, kills = sum(outcome.lines for outcome in outcomes), sum(outcome.kills for outcome in outcomes)
    unlike = sum(bool(life.unlike) for life in lives)
    _say(
        f"{len(lives)} lives, {kills} kills, {lines} lines of trace, {sum(life.seconds for life in lives):.1f} s of"
        f" processor time, hash {total[:16]}, {findings} findings, {unlike} not the same again"
    )
    return 1 if findings or unlike else 0


if __name__ == "__main__":
    sys.exit(main())
