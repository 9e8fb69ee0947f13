"""Kill -9 at all three moments around each side effect: the whole matrix, run by `make faults`."""

from __future__ import annotations

import pytest

from tests.support.crash import crash_rig
from tests.support.crash_run import STEPS, CrashRun, summary
from tests.support.gate import Moment
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


async def test_every_moment_around_every_side_effect(system: System) -> None:
    async with crash_rig(system) as rig:
        run = await CrashRun.learn(rig, [tuple(Moment)])
        print(summary(run))  # noqa: T201 - the plans are the result
        for step in STEPS:
            await run.crash(step)
            print(f"{step}: {len(run.planned[step])} crashes")  # noqa: T201 - as above
