"""A few rotations on Azure with a kill in each, under an application that logs in. `make faults` makes 20."""

from __future__ import annotations

import pytest

from tests.support.azure import Azure
from tests.support.rotation_runs import Size, flexible_servers

pytestmark = pytest.mark.asyncio(loop_scope="module")
_SIZE = Size(claims=1, rounds=2)


async def test_a_rotation_on_azure_fails_no_login_of_two_and_one_login_only_for_its_reason(azure: Azure) -> None:
    composer = await azure.system.start_composer()
    try:
        single = await flexible_servers(azure, _SIZE, has_two_logins=False)
        double = await flexible_servers(azure, _SIZE, has_two_logins=True)
    finally:
        await composer.terminate()
    assert [application.unexplained() for application in single.applications] == [[]]
    assert [application.failed for application in double.applications] == [[]]
