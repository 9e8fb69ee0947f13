"""Rigs that several modules ask for, as each wants its processes at work."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.kinds import CLAIM, NAMESPACE, claim, is_ready
from tests.support.system import System


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def warm(running: System) -> AsyncIterator[System]:
    """Yield the rig with a first claim: the server is prepared, Composition and ProviderConfig stay in use."""
    async with running.namespace() as name:
        await running.create(CLAIM, claim(name, "first"))
        await running.until(CLAIM, name, "first", is_ready)
        await running.at_rest()
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def bare_namespace(system: System) -> AsyncIterator[str]:
    """Yield a namespace as `kubectl create namespace` makes it."""
    name = f"bare-{secrets.token_hex(4)}"
    await system.create(NAMESPACE, NAMESPACE.new("", name))
    yield name
    if await system.api.find(NAMESPACE.path("", name)) is not None:
        await system.api.delete(NAMESPACE.path("", name))
