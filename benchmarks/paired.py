"""Two versions of the engine beside each other: rounds by turns, each on a control plane of its own, both up at once.

`python -m benchmarks.paired FOLDER` compares the project in FOLDER (with its `.venv`, and this project's `benchmarks`
copied over its own) with this one. What else the machine does meets both alike: a pair of rounds follows each other
within a minute, and who begins changes from pair to pair. The median of the pairs' ratios says more than any figure.
A version beside itself came out up to a seventh slower as the second: compare both ways what is close.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

_HERE: Final = Path(__file__).resolve().parents[1]
_ROUND: Final = msgspec.json.Decoder(dict[str, dict[str, float]])

Round: TypeAlias = Mapping[str, Mapping[str, float]]
"""The figures of a round, by phase and name."""


class Engine:
    """One version at work on its own control plane."""

    def __init__(self, folder: Path, claims: int) -> None:
        command = [str(folder / ".venv/bin/python"), "-m", "benchmarks.engine_rounds", "--claims", str(claims)]
        self._process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def round(self) -> Round:
        """Carry out one round. Raises EOFError when the program has ended."""
        (self._process.stdin or sys.stdout).write("\n")
        return self.answer()

    def answer(self) -> Round:
        """Wait for the next line. Raises EOFError when the program has ended."""
        for line in self._process.stdout or ():
            if line.startswith("{"):
                return _ROUND.decode(line)
        raise EOFError("the engine's program has ended")

    def close(self) -> None:
        """End the program: its input ends."""
        self._process.communicate()


def compare(base: Path, *, claims: int, pairs: int) -> None:
    """Print each pair of rounds, and the medians at the end; the first round of each version is left out."""
    engines = Engine(base, claims), Engine(_HERE, claims)
    try:
        for engine in engines:
            engine.answer()
        for engine in engines:
            engine.round()
        rounds: list[tuple[Round, Round]] = []
        for number in range(pairs):
            order = (0, 1) if number % 2 == 0 else (1, 0)
            answers = {index: engines[index].round() for index in order}
            rounds.append((answers[0], answers[1]))
            _print(f"pair {number + 1}, load {os.getloadavg()[0]:.1f}", rounds[-1:])
        _print(f"medians of {pairs} pairs", rounds)
    finally:
        for engine in engines:
            engine.close()


def _print(title: str, rounds: list[tuple[Round, Round]]) -> None:
    lines = [f"{title}: base, now, now over base"]
    for phase, figures in rounds[0][0].items():
        for name in figures:
            before = [base[phase][name] for base, _now in rounds]
            after = [now[phase][name] for _base, now in rounds]
            ratios = [new / old for old, new in zip(before, after, strict=True) if old]
            medians = statistics.median(before), statistics.median(after), statistics.median(ratios or [1.0])
            lines.append(f"  {phase + ', ' + name:<34} {medians[0]:8.2f} {medians[1]:8.2f} {medians[2]:6.3f}")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Compare two versions of the engine."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paired", description=__doc__)
    parser.add_argument("base", type=Path, metavar="FOLDER")
    parser.add_argument("--claims", type=int, default=80)
    parser.add_argument("--pairs", type=int, default=8)
    arguments = parser.parse_args()
    compare(arguments.base.resolve(), claims=arguments.claims, pairs=arguments.pairs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
