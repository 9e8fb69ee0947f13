"""Run every benchmark, print its figures, and end with status 1 when an aim is missed.

RDS is measured with 100 instances here, in a minute; `python -m benchmarks.rds_sweep` takes 2,000 and a quarter
of an hour.
"""

from __future__ import annotations

import sys
from functools import partial

from benchmarks import bombs, engine, handover, rds_sweep, store


def main() -> int:
    """Print all figures."""
    missed = 0
    rds = partial(rds_sweep.figures, instances=100, seconds=20.0)
    for measure in (store.figures, handover.figures, bombs.figures, engine.figures, rds):
        for figure in measure():
            print(figure.line(), flush=True)
            missed += not figure.met
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
