"""A composer at work on a real API server: ConfigMaps are children that are ready at once."""

from __future__ import annotations

import pytest_asyncio

from tests.support.shared import namespace
from tests.support.system import System

__all__ = ["namespace"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def composing(running: System) -> System:
    return running
