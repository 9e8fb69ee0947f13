"""Ten ways to lose things, on our own databases and on another operator's, under each policy: run by `make faults`."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.support.loss_runs import run
from tests.support.losses import POLICIES, SIDES, WAYS, Outcome, wrongs
from tests.support.staff import Staff, employ
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def outcomes(alone: System) -> list[Outcome]:
    """Return what became of every claim."""
    staff: Staff = await employ(alone, "--no-elect")
    return await run(staff)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("way", [way.name for way in WAYS])
async def test_a_database_is_never_lost_replaced_or_left_over(
    outcomes: list[Outcome], way: str, side: str, policy: str
) -> None:
    assert wrongs(outcomes, way, side, policy) == []
