"""Kill -9 of Google Cloud's provider at each side effect doubles nothing, orphans nothing, and nothing is stuck."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.crash import CrashRig
from tests.support.crash_gcp import SqlRun, crash_gcp_rig
from tests.support.gate import Moment
from tests.support.gcp import Gcp, simulated_cloud_sql
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gcp(system: System) -> AsyncIterator[Gcp]:
    async with simulated_cloud_sql(system) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crashing(gcp: Gcp) -> AsyncIterator[CrashRig]:
    async with crash_gcp_rig(gcp) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def run(crashing: CrashRig, gcp: Gcp) -> SqlRun:
    """Return a run that learned its effects; then each is crashed once, the moments around it taken in turn."""
    learned = SqlRun(crashing, gcp=gcp, at_once=40)
    await learned.learn([(moment,) for moment in Moment])
    return learned


@pytest.mark.parametrize("step", ["rotate"])
async def test_a_kill_at_each_side_effect_ends_as_if_nothing_had_happened(run: SqlRun, step: str) -> None:
    await run.crash(step)
