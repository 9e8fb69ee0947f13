"""One platform for all modules of a worker that need none of their own: a plane, a server, composer and provider.

It is there from the first test that asks for it to the end of the run; the conftest of a folder takes the fixtures of
tests/support/shared.py.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Final

import pytest
import pytest_asyncio

from devcloud.controlplane import Programs
from tests.support.azure import Azure, simulated_azure
from tests.support.gcp import Gcp, simulated_cloud_sql
from tests.support.grants import allow_composer, let_watch_secrets
from tests.support.system import System, rig

WATCHED: Final = "watched"
"""The namespace in which the composer watches Secrets."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_system(
    tmp_path_factory: pytest.TempPathFactory, control_plane_programs: Programs
) -> AsyncIterator[System]:
    """Yield the platform with all installed; no process of ours runs yet."""
    async with rig(tmp_path_factory.mktemp(f"shared-{secrets.token_hex(2)}"), control_plane_programs) as made:
        await allow_composer(made, "", "configmaps")
        await made.namespaced(WATCHED)
        await let_watch_secrets(made, WATCHED)
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_azure(shared_system: System) -> AsyncIterator[Azure]:
    """Yield a simulated Azure beside the platform; no provider of it runs yet."""
    async with simulated_azure(shared_system) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_gcp(shared_system: System) -> AsyncIterator[Gcp]:
    """Yield a simulated Cloud SQL beside the platform; no provider of it runs yet."""
    async with simulated_cloud_sql(shared_system) as made:
        yield made
