"""Seven ways to lose what ties a claim to its data, on our own databases and on another operator's.

`make faults` tries each way, policy and act, those that concern a whole kind as well.
"""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.support.loss_runs import run
from tests.support.loss_ways import WAVES
from tests.support.losses import CLAIM_DELETED, LEFT_OUT, SIDES, WAYS, Case, Outcome, wrongs
from tests.support.staff import employ
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_WAYS = tuple(way for way in WAYS if way not in WAVES)


def _is_of_the_slice(case: Case) -> bool:
    """Choose Orphan, under which nothing may ever go, and Snapshot where our own goes: a backup must be there."""
    if case.policy == "Snapshot":
        return case.side.name == "onprem" and case.act == CLAIM_DELETED
    return case.policy == "Orphan" and case.act == (LEFT_OUT if LEFT_OUT in case.way.acts else CLAIM_DELETED)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def outcomes(alone: System) -> list[Outcome]:
    """Return what became of every claim."""
    return await run(await employ(alone, "--no-elect"), _WAYS, _is_of_the_slice)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("way", [way.name for way in _WAYS])
async def test_a_database_is_never_lost_replaced_or_left_over(outcomes: list[Outcome], way: str, side: str) -> None:
    assert wrongs(outcomes, way, side) == []
