"""ARM on this machine, for each test a new one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from providers.external import retries
from runtime.backoff import Backoff
from tests.providers.azure.arm_stub import ArmStub, serving


@pytest.fixture(autouse=True)
def retries_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = Backoff(timedelta(0), timedelta(0))
    monkeypatch.setattr(retries, "READS", replace(retries.READS, backoff=at_once))


@pytest.fixture
async def stub() -> AsyncIterator[ArmStub]:
    async with serving(ArmStub()) as running:
        yield running
        for client in running.connected:
            await client.close()
