"""How many walks `make faults` makes, by environment, and the command that makes some of them again.

FAIRLEAD_WALKS and FAIRLEAD_WALKS_AWS are their numbers, FAIRLEAD_WALK_CLAIMS how many go side by side,
FAIRLEAD_WALK_ROUNDS the acts of each, FAIRLEAD_WALK_SEED the seed of the first batch, FAIRLEAD_WALK_ONLY the number of
the one walk to make of it (the digits of the claim's name).
"""

from __future__ import annotations

import os
from dataclasses import replace

from tests.support.walk import Report, Size


def setting(name: str, usual: int) -> int:
    """Return a number from the environment."""
    return int(os.environ.get(f"FAIRLEAD_{name}", usual))


SIZE = Size(claims=setting("WALK_CLAIMS", 30), rounds=setting("WALK_ROUNDS", 10), only=setting("WALK_ONLY", 0))
_FIRST = setting("WALK_SEED", 1)


def seeds(name: str, usual: int) -> range:
    """Return the seeds of the batches that make so many walks; `name` is the setting of their number."""
    return range(_FIRST, _FIRST + -(-setting(name, usual) // SIZE.claims))


def proven(report: Report, file: str, test: str, name: str) -> None:
    """Print a batch's figures; raises AssertionError with the command that makes it again where something is wrong."""
    settings = f"FAIRLEAD_WALK_SEED={report.seed} FAIRLEAD_{name}={SIZE.claims} FAIRLEAD_WALK_CLAIMS={SIZE.claims}"
    command = f".venv/bin/pytest -s -o faulthandler_timeout=0 {file} -k {test}"
    one = "one walk alone: FAIRLEAD_WALK_ONLY=<digits of its claim's name> before it"
    said = replace(report, again=f"{settings} FAIRLEAD_WALK_ROUNDS={SIZE.rounds} {command} ({one})")
    print(said)  # noqa: T201 - the figures are the result
    assert not report.wrong, str(said)
