"""Kill -9 of Azure's provider at each of its side effects doubles nothing, orphans nothing, and nothing is stuck."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.azure import Azure
from tests.support.crash import CrashRig
from tests.support.crash_azure import AzureRun, crash_azure_rig
from tests.support.gate import Moment

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def crashing(azure: Azure) -> AsyncIterator[CrashRig]:
    async with crash_azure_rig(azure) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def run(crashing: CrashRig, azure: Azure) -> AzureRun:
    """Return a run that learned its effects; then each is crashed once, the moments around it taken in turn."""
    learned = AzureRun(crashing, azure=azure, at_once=40)
    await learned.learn([(moment,) for moment in Moment])
    return learned


@pytest.mark.parametrize("step", ["delete"])
async def test_a_kill_at_each_side_effect_ends_as_if_nothing_had_happened(run: AzureRun, step: str) -> None:
    await run.crash(step)
