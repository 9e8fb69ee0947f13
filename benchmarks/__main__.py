"""Run every benchmark, print its figures, and end with status 1 when an aim is missed."""

from __future__ import annotations

import sys

from benchmarks import bombs, engine, handover, rds_sweep, store


def main() -> int:
    """Print all figures."""
    missed = 0
    for measure in (store.figures, handover.figures, bombs.figures, engine.figures, rds_sweep.figures):
        for figure in measure():
            print(figure.line(), flush=True)
            missed += not figure.met
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
