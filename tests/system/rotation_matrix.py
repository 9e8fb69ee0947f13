"""20 rotations each, on-prem and on RDS, a kill -9 of the provider in each, of `make faults`: which logins fail."""

from __future__ import annotations

import pytest

from tests.support.aws import Aws
from tests.support.rotation_runs import Size, onprem, rds
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]
_SIZE = Size(claims=2, rounds=10)


async def test_a_rotation_onprem_fails_no_login(system: System) -> None:
    composer = await system.start_composer()
    try:
        rotations = await onprem(system, _SIZE)
    finally:
        await composer.terminate()
    assert [application.failed for application in rotations.applications] == [[], []]


async def test_a_rotation_on_rds_fails_no_login_of_two_and_one_login_only_for_its_reason(aws: Aws) -> None:
    composer = await aws.system.start_composer()
    try:
        single = await rds(aws, _SIZE, has_two_logins=False)
        double = await rds(aws, _SIZE, has_two_logins=True)
    finally:
        await composer.terminate()
    assert [application.unexplained() for application in single.applications] == [[], []]
    assert [application.failed for application in double.applications] == [[], []]
