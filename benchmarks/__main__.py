"""Run every benchmark, print its figures, and end with status 1 when an aim is missed.

RDS is measured with 100 instances here, in a minute; `python -m benchmarks.rds_sweep` takes 2,000 and a quarter
of an hour.
"""

from __future__ import annotations

import sys
from functools import partial

from benchmarks import bombs, engine, handover, rds_sweep, store
from benchmarks.report import print_figures


def main() -> int:
    """Print all figures."""
    rds = partial(rds_sweep.figures, instances=100, seconds=20.0)
    measures = (store.figures, handover.figures, bombs.figures, engine.figures, rds)
    return print_figures(figure for measure in measures for figure in measure())


if __name__ == "__main__":
    sys.exit(main())
