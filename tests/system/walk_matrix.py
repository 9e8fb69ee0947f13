"""Random walks on one on-prem platform and beside one simulated RDS, run by `make faults`: 300 of them.

FAIRLEAD_WALKS and FAIRLEAD_WALKS_AWS are their numbers, FAIRLEAD_WALK_CLAIMS how many go side by side,
FAIRLEAD_WALK_ROUNDS the acts of each, FAIRLEAD_WALK_SEED the first batch's seed. What is known to be said wrongly today
(`open` in the tables of acts and events) is walked with FAIRLEAD_WALK_OPEN=1.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import TypeVar

import pytest
import pytest_asyncio

from tests.support.aws import Aws
from tests.support.system import System
from tests.support.walk import Size, walk_batch
from tests.support.walk_acts import ACTS, ANY_EDIT_WITHDRAWN, Act
from tests.support.walk_acts_aws import ACTS_AWS
from tests.support.walk_aws import EVENTS_AWS, AwsWorld, aws_world
from tests.support.walk_events import EVENTS, NOTHING, Event
from tests.support.walk_onprem import OnPremWorld, onprem_world

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


def _setting(name: str, usual: int) -> int:
    return int(os.environ.get(f"FAIRLEAD_{name}", usual))


_SIZE = Size(claims=_setting("WALK_CLAIMS", 30), rounds=_setting("WALK_ROUNDS", 10))
_FIRST = _setting("WALK_SEED", 1)


Known = TypeVar("Known", Act, Event)


def _chosen(table: tuple[Known, ...]) -> tuple[Known, ...]:
    return table if _setting("WALK_OPEN", 0) else tuple(entry for entry in table if not entry.open)


def _seeds(walks: int) -> range:
    return range(_FIRST, _FIRST + -(-walks // _SIZE.claims))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(system: System) -> AsyncIterator[OnPremWorld]:
    async with onprem_world(system) as made:
        yield made


@pytest.mark.parametrize("seed", _seeds(_setting("WALKS", 300)))
async def test_what_a_claim_says_is_true_all_along_its_walk(world: OnPremWorld, seed: int) -> None:
    await world.start()
    report = await walk_batch(world, seed, _SIZE, acts=_chosen(ACTS), events=_chosen(EVENTS), say=print)
    print(report)  # noqa: T201 - the figures are the result
    assert report.wrong == []


async def test_any_edit_is_taken_back_by_typing_the_former_text(world: OnPremWorld) -> None:
    await world.start()
    size = Size(claims=_setting("WALK_EDITS", 200), rounds=1)
    report = await walk_batch(world, 1_000, size, acts=(ANY_EDIT_WITHDRAWN,), events=(NOTHING,), say=print)
    print(report)  # noqa: T201 - as above
    assert report.wrong == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def beside_rds(aws: Aws) -> AsyncIterator[AwsWorld]:
    async with aws_world(aws) as made:
        yield made


@pytest.mark.parametrize("seed", _seeds(_setting("WALKS_AWS", 30)))
async def test_what_a_claim_on_aws_says_is_true_all_along_its_walk(beside_rds: AwsWorld, seed: int) -> None:
    await beside_rds.start()
    report = await walk_batch(beside_rds, seed, _SIZE, acts=_chosen(ACTS_AWS), events=_chosen(EVENTS_AWS), say=print)
    print(report)  # noqa: T201 - as above
    assert report.wrong == []
