"""A simulated Cloud SQL, and no pause between the tries of a call that reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from devcloud.gcp.server import Options, Served, running
from providers.gcp.account import GcpAccount
from tests.providers.gcp.sql_world import SqlWorld
from tests.providers.gcp.wire import Wire, account_on
from tests.support.simulator_control import control


@pytest.fixture(autouse=True)
async def closed_worlds() -> AsyncIterator[None]:
    """Close the connections of all worlds of a test."""
    yield
    while SqlWorld.opened:
        await SqlWorld.opened.pop().close()


@pytest.fixture(scope="module")
def simulator() -> Iterator[Served]:
    with running(Options()) as served:
        yield served


@pytest.fixture
def served(simulator: Served) -> Served:
    """Return the simulator, empty."""
    control(simulator, "POST", "reset")
    return simulator


@pytest.fixture
def wire() -> Wire:
    """Return a wire that answers nothing yet."""
    return Wire()


@pytest.fixture
async def account(wire: Wire) -> AsyncIterator[GcpAccount]:
    """Connect to the wire."""
    async with account_on(wire) as connected:
        yield connected
