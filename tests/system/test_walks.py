"""A few random walks: what a claim says is true all along, whatever happens to it. `make faults` walks 300."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.system import System
from tests.support.walk import Size, walk_batch
from tests.support.walk_acts import ACTS
from tests.support.walk_events import EVENTS
from tests.support.walk_onprem import OnPremWorld, onprem_world

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]

# Patient: other tests run beside it.
_SIZE = Size(claims=8, rounds=4, lasting_s=40.0, round_s=40.0, end_s=180.0)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(system: System) -> AsyncIterator[OnPremWorld]:
    async with onprem_world(system) as made:
        yield made


@pytest.mark.parametrize("seed", [1])
async def test_what_a_claim_says_is_true_all_along_a_short_walk(world: OnPremWorld, seed: int) -> None:
    acts = tuple(act for act in ACTS if not act.open)
    events = tuple(event for event in EVENTS if not event.open)
    report = await walk_batch(world, seed, _SIZE, acts=acts, events=events)
    assert report.wrong == [], str(report)
