"""Kill -9 at each side effect of a creation doubles nothing, orphans nothing, and needs nobody.

`make faults` has all steps on all clouds, at all three moments around each effect. A kill of each cloud's provider
is in test_rotations.py.
"""

from __future__ import annotations

import pytest

from tests.support.crash_runs import crash_run
from tests.support.gate import Moment
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


async def test_a_kill_at_each_side_effect_ends_as_if_nothing_had_happened(system: System) -> None:
    turns, step = [(moment,) for moment in Moment], ("create",)
    async with crash_run(system, "onprem", turns, steps=step, crashed=step) as run:
        await run.crash(*step)
