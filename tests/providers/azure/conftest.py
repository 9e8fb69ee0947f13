"""ARM on this machine, for each test a new one: a stub of it, or the simulated one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from devcloud.azure.server import Options, running
from tests.providers.azure.arm_stub import ArmStub, serving
from tests.providers.azure.simulated_arm import Arm


@pytest.fixture
async def stub() -> AsyncIterator[ArmStub]:
    async with serving(ArmStub()) as running:
        yield running


@pytest.fixture
async def arm() -> AsyncIterator[Arm]:
    # Its clock stands still by itself, and is moved on with the world's.
    with running(Options(speed=0.0, durations=0.2)) as served:
        simulated = Arm(served)
        async with simulated.connected:
            yield simulated
