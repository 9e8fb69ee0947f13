"""Random walks on one on-prem platform, run by `make faults`: 300 of them, and 200 edits that are withdrawn.

How many, and how to make one again: tests/support/walk_settings.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from tests.support.system import System
from tests.support.walk import walk_batch
from tests.support.walk_acts import ANY_EDIT_WITHDRAWN
from tests.support.walk_events import NOTHING
from tests.support.walk_onprem import OnPremWorld, onprem_world
from tests.support.walk_settings import proven, seeds, setting, settings_of, size

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_SIZE = size(claims=30)
_FILE = "tests/system/walk_matrix.py"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(system: System) -> AsyncIterator[OnPremWorld]:
    async with onprem_world(system) as made:
        yield made


@pytest.mark.parametrize("seed", seeds("WALKS", 300, _SIZE))
async def test_a_claim_says_what_is_true_all_along_its_walk(world: OnPremWorld, seed: int) -> None:
    await world.start()
    report = await walk_batch(world, seed, _SIZE, say=print)
    proven(report, _FILE, "its_walk", settings_of(report, "WALKS", _SIZE))


@pytest.mark.parametrize("seed", [1_000, 1_001])
async def test_any_edit_is_taken_back_by_typing_the_former_text(world: OnPremWorld, seed: int) -> None:
    await world.start()
    many = replace(_SIZE, claims=setting("WALK_EDITS", 200) // 2, rounds=1)
    report = await walk_batch(world, seed, many, acts=(ANY_EDIT_WITHDRAWN,), events=(NOTHING,), say=print)
    proven(report, _FILE, f"former_text and {seed}")
