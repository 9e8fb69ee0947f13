"""One rig and one provider at work for each module; resources stand alone, without claim or composer."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from devcloud.controlplane import Programs
from tests.support.system import System, rig


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bare(tmp_path_factory: pytest.TempPathFactory, control_plane_programs: Programs) -> AsyncIterator[System]:
    """Yield a control plane and a PostgreSQL server with all installed, and no process of ours."""
    async with rig(tmp_path_factory.mktemp(f"rig-{secrets.token_hex(2)}"), control_plane_programs) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(bare: System) -> System:
    """Return the rig with a provider whose waits are short."""
    await bare.start_provider("--sweep=1", "--grace=2", "--resync=3", "--rotation-grace=4")
    return bare


@pytest_asyncio.fixture(loop_scope="module")
async def namespace(bare: System) -> AsyncIterator[str]:
    """Yield a fresh namespace; its deletion is begun afterwards."""
    async with bare.namespace() as name:
        yield name
