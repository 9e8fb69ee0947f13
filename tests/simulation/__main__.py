"""`python -m tests.simulation --lives N --seed S`, `--replay SEED:LIFE` or `--shrink SEED:LIFE`.

Exit status 1 where a judge has a finding, and with `--twice` where a life is not the same when it is lived again.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import subprocess
import sys
from collections.abc import Iterator

from fairlead.simulation import clouds
from tests.simulation import profiles, shrinking
from tests.simulation.lives import Seed, live
from tests.simulation.many import Lived, be_silent, lived, lived_twice


def main() -> int:
    """Have lives, and say how many there were, their hash and the findings of the judges."""
    arguments = _arguments()
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of a set is part of a run.
        command = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        return subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": "0"}, check=False).returncode
    be_silent()
    if arguments.replay:
        seed, life, acts = shrinking.read(arguments.replay)
        outcome = live(Seed(seed, life, arguments.cloud, arguments.profile), acts=acts)
        _say("\n".join(map(str, outcome.done)), *map(str, outcome.findings))
        return _report([Lived(outcome, 0.0)])
    if arguments.shrink:
        seed, life, _ = shrinking.read(arguments.shrink)
        return shrinking.shrink(Seed(seed, life, arguments.cloud, arguments.profile), arguments.rule, _say)
    seeds = [Seed(arguments.seed, life, arguments.cloud, arguments.profile) for life in range(arguments.lives)]
    if arguments.seeds:
        first, _, last = arguments.seeds.partition("-")
        numbers = range(int(first), int(last) + 1)
        seeds = [
            Seed(seed, life, arguments.cloud, arguments.profile) for seed in numbers for life in range(arguments.lives)
        ]
    if arguments.twice:
        return _report(list(_said(lived_twice(seeds, arguments.jobs))))
    return _report(list(_said(lived(seeds, arguments.jobs, arguments.minutes * 60))))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--lives", type=int, default=10, help="how many lives of each seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", default="", metavar="FIRST-LAST", help="several seeds")
    parser.add_argument("--cloud", default="", choices=("", *clouds.NAMES), help="the cloud of all lives")
    parser.add_argument("--profile", default="long", choices=tuple(profiles.PROFILES), help="how long each life is")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes live at once")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no life after so much real time")
    parser.add_argument("--twice", action="store_true", help="live each life in two processes; they must be the same")
    parser.add_argument("--replay", default="", metavar="SEED:LIFE[:ACTS]")
    parser.add_argument("--shrink", default="", metavar="SEED:LIFE", help="find the fewest acts with the same finding")
    parser.add_argument("--rule", default="", help="the finding to keep; without it the first")
    return parser.parse_args()


def _said(lives: Iterator[Lived]) -> Iterator[Lived]:
    for life in lives:
        for finding in life.outcome.findings:
            _say(f"{life.outcome.seed.command()}: {finding}")
        if life.unlike:
            _say(f"{life.outcome.seed.command()}: not the same life again: {life.unlike}")
        yield life


def _say(*texts: str) -> None:
    sys.stdout.writelines(f"{text}\n" for text in texts)
    sys.stdout.flush()


def _report(lives: list[Lived]) -> int:
    outcomes = [life.outcome for life in lives]
    total = hashlib.sha256("".join(outcome.hash for outcome in outcomes).encode()).hexdigest()
    findings = sum(len(outcome.findings) for outcome in outcomes)
    lines, kills = sum(outcome.lines for outcome in outcomes), sum(outcome.kills for outcome in outcomes)
    served, ended = sum(outcome.served > 0 for outcome in outcomes), sum(outcome.ended > 0 for outcome in outcomes)
    unlike = sum(bool(life.unlike) for life in lives)
    _say(
        f"{len(lives)} lives, {served} with a claim that served, {ended} with a deletion, {kills} kills, {lines} lines"
        f" of trace, {sum(life.seconds for life in lives):.1f} s of processor time, hash {total[:16]}, {findings}"
        f" findings, {unlike} not the same again"
    )
    return 1 if findings or unlike else 0


if __name__ == "__main__":
    sys.exit(main())
