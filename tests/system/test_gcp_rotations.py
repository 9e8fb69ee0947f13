"""Rotations on Google Cloud with a kill -9 in each, under an application that logs in ten times a second."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.gcp import Gcp, simulated_cloud_sql
from tests.support.rotation_gcp import cloud_sql
from tests.support.rotation_runs import Size
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]
_SIZE = Size(claims=1, rounds=2)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gcp(system: System) -> AsyncIterator[Gcp]:
    async with simulated_cloud_sql(system) as made:
        await system.start_composer()
        yield made


async def test_a_rotation_of_two_logins_fails_no_login(gcp: Gcp) -> None:
    rotations = await cloud_sql(gcp, _SIZE, has_two_logins=True)
    assert [application.failed for application in rotations.applications] == [[]]


async def test_a_rotation_of_one_login_fails_one_only_until_its_password_is_published(gcp: Gcp) -> None:
    rotations = await cloud_sql(gcp, _SIZE, has_two_logins=False)
    assert [application.unexplained() for application in rotations.applications] == [[]]
