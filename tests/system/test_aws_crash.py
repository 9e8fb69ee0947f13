"""Kill -9 of AWS's provider at each of its side effects doubles nothing, orphans nothing, and nothing is stuck."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.aws import Aws
from tests.support.crash import CrashRig
from tests.support.crash_rds import RdsRun, crash_rds_rig
from tests.support.gate import Moment

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crashing(aws: Aws) -> AsyncIterator[CrashRig]:
    async with crash_rds_rig(aws) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def run(crashing: CrashRig, aws: Aws) -> RdsRun:
    """Return a run that learned its effects; then each is crashed once, the moments around it taken in turn."""
    learned = RdsRun(crashing, aws=aws, at_once=40)
    await learned.learn([(moment,) for moment in Moment])
    return learned


@pytest.mark.parametrize("step", ["create", "update", "rotate", "delete"])
async def test_a_kill_at_each_side_effect_ends_as_if_nothing_had_happened(run: RdsRun, step: str) -> None:
    await run.crash(step)
