"""Twenty rotations in each case, a kill -9 of the provider in each, of `make faults`: which logins fail."""

from __future__ import annotations

import pytest

from tests.support.processes import Program
from tests.support.rotation_runs import CASES, rotate
from tests.support.rotations import Size
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]
_SIZE = Size(claims=2, rounds=10)


@pytest.mark.parametrize("case", CASES)
async def test_a_rotation_fails_no_login_of_two_and_one_login_only_for_its_reason(
    system: System, one_composer: Program, case: str
) -> None:
    del one_composer
    rotations = await rotate(system, case, _SIZE)
    assert [len(application.requested_at) for application in rotations.applications] == [_SIZE.rounds] * _SIZE.claims
    failed = [
        application.unexplained() if case.endswith("-1") else application.failed
        for application in rotations.applications
    ]
    assert failed == [[]] * _SIZE.claims
