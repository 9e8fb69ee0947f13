"""300 random walks on one on-prem platform: batches of claims side by side, run by `make faults`.

FAIRLEAD_WALKS, FAIRLEAD_WALK_CLAIMS and FAIRLEAD_WALK_ROUNDS change the numbers;
FAIRLEAD_WALK_SEED is the first batch.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.system import System
from tests.support.walk import Size, walk_batch
from tests.support.walk_onprem import OnPremWorld, onprem_world

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]

_CLAIMS = int(os.environ.get("FAIRLEAD_WALK_CLAIMS", "30"))
_ROUNDS = int(os.environ.get("FAIRLEAD_WALK_ROUNDS", "10"))
_BATCHES = -(-int(os.environ.get("FAIRLEAD_WALKS", "300")) // _CLAIMS)
_FIRST = int(os.environ.get("FAIRLEAD_WALK_SEED", "1"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(system: System) -> AsyncIterator[OnPremWorld]:
    async with onprem_world(system) as made:
        yield made


@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + _BATCHES))
async def test_what_a_claim_says_is_true_all_along_its_walk(world: OnPremWorld, seed: int) -> None:
    await world.start()
    report = await walk_batch(world, seed, Size(claims=_CLAIMS, rounds=_ROUNDS))
    print(report)  # noqa: T201 - the figures are the result
    assert report.wrong == []
