"""Kill -9 of Google Cloud's provider at all three moments around each side effect, run by `make faults`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.crash_gcp import SqlRun, crash_gcp_rig
from tests.support.crash_run import STEPS, summary
from tests.support.gate import Moment
from tests.support.gcp import simulated_cloud_sql
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def run(system: System) -> AsyncIterator[SqlRun]:
    """Yield a run that learned its effects undisturbed; then each is crashed at all moments around it."""
    async with simulated_cloud_sql(system) as gcp, crash_gcp_rig(gcp) as rig:
        learned = SqlRun(rig, gcp=gcp, at_once=40)
        await learned.learn([tuple(Moment)])
        print(summary(learned))  # noqa: T201 - the plans are the result
        yield learned


@pytest.mark.parametrize("step", STEPS)
async def test_a_kill_at_every_moment_of_every_side_effect_ends_as_if_nothing_had_happened(
    run: SqlRun, step: str
) -> None:
    await run.crash(step)
    print(f"{step}: {len(run.planned[step])} crashes")  # noqa: T201 - as above
