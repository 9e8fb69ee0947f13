"""Twenty rotations on Google Cloud, each with a kill -9 of the provider in it, run by `make faults`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.gcp import Gcp, simulated_cloud_sql
from tests.support.rotation_gcp import cloud_sql
from tests.support.rotation_runs import Size
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]

_SIZE = Size(claims=1, rounds=20)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gcp(system: System) -> AsyncIterator[Gcp]:
    async with simulated_cloud_sql(system) as made:
        await system.start_composer()
        yield made


async def test_rotations_of_two_logins(gcp: Gcp) -> None:
    rotations = await cloud_sql(gcp, _SIZE, has_two_logins=True)
    assert [len(application.requested_at) for application in rotations.applications] == [_SIZE.rounds]
    assert [application.failed for application in rotations.applications] == [[]]


async def test_rotations_of_one_login(gcp: Gcp) -> None:
    rotations = await cloud_sql(gcp, _SIZE, has_two_logins=False)
    assert [len(application.requested_at) for application in rotations.applications] == [_SIZE.rounds]
    assert [application.unexplained() for application in rotations.applications] == [[]]
