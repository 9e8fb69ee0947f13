"""The platform of tests/support/shared.py and the people on it, whose namespaces outlive a module."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest_asyncio

from tests.support.kinds import NAMESPACE
from tests.support.prepared import prepare
from tests.support.shared import alone, running, system
from tests.support.system import System
from tests.support.tenants import Person, platform_team, tenant

__all__ = ["alone", "running", "system"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def alice(running: System) -> AsyncIterator[Person]:
    """Yield a tenant with `edit` in the namespace `alice`: the victim."""
    async with _tenant(running, "alice") as person:
        yield person


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def mallory(running: System) -> AsyncIterator[Person]:
    """Yield a tenant with `edit` in the namespace `mallory`: the attacker."""
    async with _tenant(running, "mallory") as person:
        yield person


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def platform(running: System) -> AsyncIterator[Person]:
    """Yield a person of the platform team, who may write Compositions and ProviderConfigs and read no Secret."""
    async with platform_team(running) as person:
        yield person


@asynccontextmanager
async def _tenant(system: System, namespace: str) -> AsyncIterator[Person]:
    """Have a tenant of a namespace that is prepared for one cloud alone, whichever are installed."""
    if await system.api.find(NAMESPACE.path("", namespace)) is None:
        await system.create(NAMESPACE, NAMESPACE.new("", namespace))
        await prepare(system.api, namespace, "onprem")
    async with tenant(system, namespace) as person:
        yield person
