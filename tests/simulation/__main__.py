"""`python -m tests.simulation --lives N --seed S`, or `--replay SEED:LIFE`; exit 1 where anything was count."""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import subprocess
import sys
import time
import warnings

import structlog

from tests.simulation.lives import Outcome, live


def main() -> int:
    """Have lives, and say how many there were, their hash and the findings of the judges."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--lives", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", default="", metavar="SEED:LIFE")
    arguments = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of a set is part of a run.
        command = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        return subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "0"}, check=False).returncode
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    warnings.simplefilter("ignore")
    if arguments.replay:
        seed, life = map(int, arguments.replay.split(":"))
        outcome = live(seed, life, keep=200)
        _say("\n".join(map(str, outcome.done)))
        return _report([outcome], 0.0)
    began = time.process_time()
    outcomes = []
    for life in range(arguments.lives):
        outcomes.append(live(arguments.seed, life))
        for finding in outcomes[-1].findings:
            _say(f"{outcomes[-1].seed}: {finding}")
    return _report(outcomes, time.process_time() - began)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _report(outcomes: list[Outcome], seconds: float) -> int:
    total = hashlib.sha256("".join(outcome.hash for outcome in outcomes).encode()).hexdigest()
    count = sum(len(outcome.findings) for outcome in outcomes)
    lines = sum(outcome.lines for outcome in outcomes)
    if len(outcomes) == 1:
        _say("\n".join(map(str, outcomes[0].findings)))
    _say(
        f"{len(outcomes)} lives, {sum(outcome.kills for outcome in outcomes)} kills, {lines} lines of trace,"
        f" {seconds:.1f} s of processor time, hash {total[:16]}, {count} findings"
    )
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
