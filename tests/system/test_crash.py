"""Kill -9 between any two side effects leaks nothing, doubles nothing, and needs nobody."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.crash import CrashRig, crash_rig
from tests.support.crash_onprem import OnPremRun
from tests.support.crash_run import CrashRun
from tests.support.gate import Moment
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crashing(system: System) -> AsyncIterator[CrashRig]:
    async with crash_rig(system) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def run(crashing: CrashRig) -> CrashRun:
    """Return a run that learned its effects; then each is crashed once, the moments around it taken in turn."""
    return await OnPremRun(crashing).learn([(moment,) for moment in Moment])


@pytest.mark.parametrize("step", ["create", "update", "rotate", "delete"])
async def test_a_kill_at_each_side_effect_ends_as_if_nothing_had_happened(run: CrashRun, step: str) -> None:
    await run.crash(step)
