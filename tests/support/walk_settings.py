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


def size(claims: int) -> Size:
    """Return how large a batch is; `claims` go side by side unless the environment says otherwise."""
    return Size(claims=setting("WALK_CLAIMS", claims), rounds=setting("WALK_ROUNDS", 10), only=setting("WALK_ONLY", 0))


def seeds(name: str, usual: int, of: Size) -> range:
    """Return the seeds of the batches that make so many walks; `name` is the setting of their number."""
    first = setting("WALK_SEED", 1)
    return range(first, first + -(-setting(name, usual) // of.claims))


def settings_of(report: Report, name: str, of: Size) -> str:
    """Return the environment that makes one batch of walks again."""
    size_ = f"FAIRLEAD_WALK_CLAIMS={of.claims} FAIRLEAD_WALK_ROUNDS={of.rounds}"
    return f"FAIRLEAD_WALK_SEED={report.seed} FAIRLEAD_{name}={of.claims} {size_}"


def proven(report: Report, file: str, test: str, settings: str = "") -> None:
    """Print a batch's figures; raises AssertionError with the command that makes it again where something is wrong."""
    command = f"{settings} .venv/bin/pytest -s -o faulthandler_timeout=0 {file} -k '{test}'".strip()
    shown = replace(
        report, again=f"{command} (one walk alone: FAIRLEAD_WALK_ONLY=<digits of the claim's name> before it)"
    )
    print(shown)  # noqa: T201 - the figures are the result
    assert not report.wrong, str(shown)
