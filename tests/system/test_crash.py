"""Kill -9 at each side effect of one step on each cloud doubles nothing, orphans nothing, and needs nobody.

`make faults` has all steps, at all three moments around each effect.
"""

from __future__ import annotations

import pytest

from tests.support.crash_runs import crash_run
from tests.support.gate import Moment
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_STEPS = {
    "onprem": ("create",),
    "aws": ("create", "update"),
    "azure": ("create", "delete"),
    "gcp": ("create", "rotate"),
}
"""What claims go through on each cloud; processes are killed in the last step."""


@pytest.mark.parametrize("cloud", _STEPS)
async def test_a_kill_at_each_side_effect_ends_as_if_nothing_had_happened(system: System, cloud: str) -> None:
    steps, turns = _STEPS[cloud], [(moment,) for moment in Moment]
    async with crash_run(system, cloud, turns, steps=steps, crashed=steps[-1:]) as run:
        await run.crash(steps[-1])
