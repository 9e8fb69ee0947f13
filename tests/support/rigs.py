"""A rig for each module of system tests: nothing that one module breaks is seen by another.

The conftest of each folder that runs the whole system imports these fixtures.
"""

import secrets
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from devcloud.controlplane import Programs
from tests.support.aws import Aws, at_work, simulated_rds
from tests.support.azure import Azure, simulated_azure
from tests.support.kinds import PROVIDER_CONFIG, is_ready
from tests.support.staff import Staff, employ
from tests.support.system import System, rig


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory, control_plane_programs: Programs) -> AsyncIterator[System]:
    """Yield a control plane and a PostgreSQL server with all installed, and no process of ours."""
    async with rig(tmp_path_factory.mktemp(f"rig-{secrets.token_hex(2)}"), control_plane_programs) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(system: System) -> System:
    """Return the rig with composer and provider at work."""
    await system.start_composer()
    await system.start_provider()
    # The server was met and prepared: from here on a bad input changes nothing there.
    await system.until(PROVIDER_CONFIG, "", "default", is_ready)
    return system


@pytest_asyncio.fixture(loop_scope="module")
async def namespace(system: System) -> AsyncIterator[str]:
    """Yield a fresh namespace on the module's rig; its deletion is begun afterwards."""
    async with system.namespace() as name:
        yield name


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def _employed(system: System) -> Staff:
    return await employ(system)


@pytest_asyncio.fixture(loop_scope="module")
async def staff(_employed: Staff) -> AsyncIterator[Staff]:
    """Yield composer and provider at work for a test that may stop them; they run again for the next one."""
    await _employed.complete()
    yield _employed


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def aws(system: System) -> AsyncIterator[Aws]:
    """Yield a simulated RDS beside the rig, known to the cluster; no process of ours runs yet."""
    async with simulated_rds(system) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def aws_at_work(aws: Aws) -> Aws:
    """Return the simulated RDS with composer and AWS's provider at work."""
    await at_work(aws)
    return aws


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def azure(system: System) -> AsyncIterator[Azure]:
    """Yield a simulated Azure beside the rig, known to the cluster; no process of ours runs yet."""
    async with simulated_azure(system) as made:
        yield made
