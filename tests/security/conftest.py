"""The platform of tests/support/shared.py and the people on it, whose namespaces outlive a module."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.support.shared import alone, running, system
from tests.support.system import System
from tests.support.tenants import Person, platform_team, tenant

__all__ = ["alone", "running", "system"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def alice(running: System) -> AsyncIterator[Person]:
    """Yield a tenant with `edit` in the namespace `alice`: the victim."""
    async with tenant(running, "alice") as person:
        yield person


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def mallory(running: System) -> AsyncIterator[Person]:
    """Yield a tenant with `edit` in the namespace `mallory`: the attacker."""
    async with tenant(running, "mallory") as person:
        yield person


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def platform(running: System) -> AsyncIterator[Person]:
    """Yield a person of the platform team, who may write Compositions and ProviderConfigs and read no Secret."""
    async with platform_team(running) as person:
        yield person
