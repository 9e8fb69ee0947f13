"""20 rotations each on Azure, with one login and with two, a kill -9 in each, of `make faults`: which logins fail."""

from __future__ import annotations

import pytest

from tests.support.azure import Azure
from tests.support.rotation_runs import Size, flexible_servers

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]
_SIZE = Size(claims=2, rounds=10)


async def test_a_rotation_on_azure_fails_no_login_of_two_and_one_login_only_for_its_reason(azure: Azure) -> None:
    composer = await azure.system.start_composer()
    try:
        single = await flexible_servers(azure, _SIZE, has_two_logins=False)
        double = await flexible_servers(azure, _SIZE, has_two_logins=True)
    finally:
        await composer.terminate()
    assert [application.unexplained() for application in single.applications] == [[], []]
    assert [application.failed for application in double.applications] == [[], []]
