"""Many lives, one after another or in several processes, each once or twice."""

from __future__ import annotations

import logging
import multiprocessing
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace

import structlog

from tests.simulation.lives import Outcome, live

_ALL_LINES = 10**9
# A process keeps what its lives asked of templates: a new one now and then keeps it small.
_LIVES_OF_A_PROCESS = 50


@dataclass(frozen=True, slots=True)
class Lived:
    """A life that was lived once, or twice: `unlike` is the first line in which the two differ."""

    outcome: Outcome
    seconds: float
    unlike: str = ""


def lived(seeds: list[tuple[int, int]], jobs: int, *, twice: bool) -> Iterator[Lived]:
    """Yield the lives in the order of their seeds."""
    have = _twice if twice else _once
    if jobs == 1:
        yield from map(have, seeds)
        return
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(jobs, context, be_silent, max_tasks_per_child=_LIVES_OF_A_PROCESS) as pool:
        yield from pool.map(have, seeds)


def be_silent() -> None:
    """Let no log be written: a life says what it has to say in its trace."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    warnings.simplefilter("ignore")


def _once(seed: tuple[int, int]) -> Lived:
    began = time.process_time()
    return Lived(live(*seed), time.process_time() - began)


def _twice(seed: tuple[int, int]) -> Lived:
    began = time.process_time()
    first, second = live(*seed, keep=_ALL_LINES), live(*seed, keep=_ALL_LINES)
    pairs = enumerate(zip(first.trace, second.trace, strict=False))
    unlike = next((f"line {at}: {one[:300]} / {other[:300]}" for at, (one, other) in pairs if one != other), "")
    if first.hash != second.hash:
        unlike = unlike or f"{first.lines} and {second.lines} lines"
    return Lived(replace(first, trace=()), time.process_time() - began, unlike)
