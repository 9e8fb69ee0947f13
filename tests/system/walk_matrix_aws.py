"""Random walks beside one simulated RDS, run by `make faults`: 30 of them, and 200 edits that are withdrawn.

How many, and how to make one again: tests/support/walk_settings.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from tests.support.aws import Aws
from tests.support.walk import walk_batch
from tests.support.walk_acts_aws import ACTS_AWS, ACTS_AWS_TWO_LOGINS, ANY_EDIT_WITHDRAWN_AWS
from tests.support.walk_aws import EVENTS_AWS, AwsWorld, aws_world
from tests.support.walk_events import NOTHING
from tests.support.walk_settings import proven, seeds, setting, settings_of, size

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.rds]

_SIZE = size(claims=15)
_FILE = "tests/system/walk_matrix_aws.py"
_EDITS_OF_EACH = 8


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world(aws: Aws) -> AsyncIterator[AwsWorld]:
    async with aws_world(aws) as made:
        yield made


@pytest.mark.parametrize("seed", seeds("WALKS_AWS", 30, _SIZE))
async def test_a_claim_on_aws_says_what_is_true_all_along_its_walk(world: AwsWorld, seed: int) -> None:
    """Walk claims of one login by odd seeds, of two logins by even ones."""
    await world.start()
    await world.make_logins("Administrator" if seed % 2 else "Alternating")
    acts = ACTS_AWS if seed % 2 else ACTS_AWS_TWO_LOGINS
    report = await walk_batch(world, seed, _SIZE, acts=acts, events=EVENTS_AWS, say=print)
    proven(report, _FILE, "its_walk", settings_of(report, "WALKS_AWS", _SIZE))


@pytest.mark.parametrize("seed", [1_000])
async def test_any_edit_on_aws_is_taken_back_by_typing_the_former_text(world: AwsWorld, seed: int) -> None:
    await world.start()
    await world.make_logins("Alternating")
    many = replace(_SIZE, claims=setting("WALK_EDITS", 200) // _EDITS_OF_EACH, rounds=_EDITS_OF_EACH)
    report = await walk_batch(world, seed, many, acts=(ANY_EDIT_WITHDRAWN_AWS,), events=(NOTHING,), say=print)
    proven(report, _FILE, f"former_text and {seed}")
