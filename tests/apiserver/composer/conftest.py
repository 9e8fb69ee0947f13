"""A composer at work on a real API server, without any provider: ConfigMaps are children that are ready at once."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from devcloud.controlplane import Programs
from tests.support.grants import allow_composer, let_watch_secrets
from tests.support.system import System, rig

WATCHED = "watched"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def composing(
    tmp_path_factory: pytest.TempPathFactory, control_plane_programs: Programs
) -> AsyncIterator[System]:
    async with rig(tmp_path_factory.mktemp(f"rig-{secrets.token_hex(2)}"), control_plane_programs) as made:
        await allow_composer(made, "", "configmaps")
        await made.namespaced(WATCHED)
        await let_watch_secrets(made, WATCHED)
        await made.start_composer("--no-elect", "--resync", "5")
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def namespace(composing: System) -> AsyncIterator[str]:
    """Yield a fresh namespace; its deletion is begun afterwards."""
    async with composing.namespace() as name:
        yield name
