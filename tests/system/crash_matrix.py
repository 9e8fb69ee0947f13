"""Kill -9 at all three moments around each side effect, on each cloud, run by `make faults`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.crash_run import STEPS, CrashRun, summary
from tests.support.crash_runs import CLOUDS, crash_run
from tests.support.gate import Moment
from tests.support.reset import reset
from tests.support.shared import dismiss
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=CLOUDS)
async def run(request: pytest.FixtureRequest, system: System) -> AsyncIterator[CrashRun]:
    """Yield a cloud's run; each effect is crashed at all moments around it."""
    async with crash_run(system, request.param, [tuple(Moment)]) as learned:
        print(summary(learned))  # noqa: T201 - the plans are the result
        yield learned
    await dismiss(system)
    await reset(system)


@pytest.mark.parametrize("step", STEPS)
async def test_a_kill_at_every_moment_of_every_side_effect_ends_as_if_nothing_had_happened(
    run: CrashRun, step: str
) -> None:
    await run.crash(step)
    print(f"{step}: {len(run.planned[step])} crashes")  # noqa: T201 - as above
