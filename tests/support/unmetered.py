"""`python -m tests.support.unmetered <cloud> ...`: a provider whose account grants it every call at once.

A run through the lives of many claims would wait for the budget of its account most of the time; what the budget is
has tests of its own.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace

from providers.__main__ import run
from providers.external.provider import Rate

if __name__ == "__main__":
    cloud = importlib.import_module(f"providers.{sys.argv[1]}")
    cloud.PROVIDER = replace(cloud.PROVIDER, rate=Rate(reads_per_second=1000, writes_per_second=1000))  # type: ignore[attr-defined]  # each cloud has it
    sys.exit(run(sys.argv[1:]))
