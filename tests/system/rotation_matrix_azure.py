"""20 rotations on Azure with a kill -9 of the provider in each, run by `make faults`: which logins fail."""

from __future__ import annotations

import pytest

from tests.support.azure import Azure
from tests.support.rotation_runs import Size, flexible_servers

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]
_SIZE = Size(claims=2, rounds=10)


async def test_a_rotation_on_azure_fails_its_one_login_only_for_its_reason(azure: Azure) -> None:
    composer = await azure.system.start_composer()
    try:
        rotations = await flexible_servers(azure, _SIZE)
    finally:
        await composer.terminate()
    assert [application.unexplained() for application in rotations.applications] == [[], []]
