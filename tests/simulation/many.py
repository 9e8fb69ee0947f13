"""Many lives, one after another or in several processes, each once or twice."""

from __future__ import annotations

import gc
import itertools
import logging
import math
import multiprocessing
import os
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

import structlog

from tests.simulation.lives import Outcome, Seed, live

_ALL_LINES = 10**9
_AT_ONCE = 100
_HASHES = "PYTHONHASHSEED"
# A process keeps what its lives asked of templates: a new one now and then keeps it small.
_LIVES_OF_A_PROCESS = 400


@dataclass(frozen=True, slots=True)
class Lived:
    """A life that was lived once, or twice: `unlike` is the first line in which the two differ."""

    outcome: Outcome
    seconds: float
    unlike: str = ""


def lived(seeds: list[Seed], jobs: int, longest_s: float = math.inf) -> Iterator[Lived]:
    """Yield lives in the order of their seeds; none begins after so many seconds of real time."""
    until = time.monotonic() + longest_s
    if jobs == 1:
        yield from map(once, itertools.takewhile(lambda _: time.monotonic() < until, seeds))
        return
    with processes(jobs) as pool:
        for first in range(0, len(seeds), _AT_ONCE):
            if time.monotonic() >= until:
                return
            yield from pool.map(once, seeds[first : first + _AT_ONCE])


def lived_twice(seeds: list[Seed], jobs: int) -> Iterator[Lived]:
    """Yield lives that were lived in two processes: their memory is laid out anew, and other lives went before."""
    with processes(max(1, jobs // 2)) as pool, processes(max(1, jobs // 2)) as others:
        again = {seed: others.submit(_kept, seed) for seed in reversed(seeds)}
        for seed, first in zip(seeds, pool.map(_kept, seeds), strict=True):
            second = again[seed].result()
            unlike = _unlike(first.outcome, second.outcome)
            yield Lived(replace(first.outcome, trace=()), first.seconds + second.seconds, unlike)


def be_silent() -> None:
    """Let no log be written: a life says what it has to say in its trace. What was imported is never garbage."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable()
    warnings.simplefilter("ignore")


@contextmanager
def processes(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Give processes for lives. The order of a set is part of a life: in them it is the same each time."""
    context, before = multiprocessing.get_context("spawn"), os.environ.get(_HASHES)
    os.environ[_HASHES] = "0"
    try:
        with ProcessPoolExecutor(jobs, context, be_silent, max_tasks_per_child=_LIVES_OF_A_PROCESS) as pool:
            yield pool
    finally:
        if before is None:
            del os.environ[_HASHES]
        else:
            os.environ[_HASHES] = before


def once(seed: Seed, *, keep: int = 0) -> Lived:
    """Have one life, and measure it."""
    began = time.process_time()
    return Lived(live(seed, keep=keep), time.process_time() - began)


def _kept(seed: Seed) -> Lived:
    return once(seed, keep=_ALL_LINES)


def _unlike(first: Outcome, second: Outcome) -> str:
    if first.hash == second.hash:
        return ""
    pairs = enumerate(zip(first.trace, second.trace, strict=False))
    line = next((f"line {at}: {left} / {right}" for at, (left, right) in pairs if left != right), "")
    return line or f"{first.lines} and {second.lines} lines"
