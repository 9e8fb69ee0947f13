"""Ten ways to lose things, on our own databases and on another operator's; `make faults` tries each policy and act."""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.support.loss_runs import run
from tests.support.losses import CLAIM_DELETED, SIDES, WAYS, Case, Outcome, wrongs
from tests.support.staff import employ
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


def _is_of_the_slice(case: Case) -> bool:
    """Choose Orphan, under which nothing may ever go; and Snapshot where the claim goes: a backup must be there."""
    return case.policy == "Orphan" or (case.policy, case.act) == ("Snapshot", CLAIM_DELETED)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def outcomes(system: System) -> list[Outcome]:
    """Return what became of every claim."""
    return await run(await employ(system, "--no-elect"), _is_of_the_slice)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("way", [way.name for way in WAYS])
async def test_a_database_is_never_lost_replaced_or_left_over(outcomes: list[Outcome], way: str, side: str) -> None:
    assert wrongs(outcomes, way, side) == []
