"""The shared platform as it was at first, for each module of system tests; what these ask to be at work on it.

tests/support/own_planes.py has the modules that go on with the processes at work. The conftest of a folder imports the
fixtures that its tests ask for.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from devcloud.controlplane import Programs
from tests.support import shared
from tests.support.aws import Aws, simulated_rds
from tests.support.azure import Azure, simulated_azure
from tests.support.gcp import Gcp, simulated_cloud_sql
from tests.support.kinds import PROVIDER_CONFIG, is_ready
from tests.support.own_planes import AT_WORK
from tests.support.reset import reset
from tests.support.shared import dismiss
from tests.support.staff import Staff, employ
from tests.support.system import System, rig


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def own_system(
    tmp_path_factory: pytest.TempPathFactory, control_plane_programs: Programs
) -> AsyncIterator[System]:
    """Yield a platform that only this module has, and no process of ours."""
    async with rig(tmp_path_factory.mktemp(f"own-{secrets.token_hex(2)}"), control_plane_programs) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def fresh_system(shared_system: System) -> AsyncIterator[System]:
    """Yield the shared platform with all installed, no claim, an empty server, and no process of ours."""
    await dismiss(shared_system)
    await reset(shared_system)
    yield shared_system
    await dismiss(shared_system)


@pytest.fixture(scope="module")
def is_at_work(request: pytest.FixtureRequest) -> bool:
    """Return whether the module goes on with the processes at work."""
    return str(request.path.relative_to(request.config.rootpath)) in AT_WORK


@pytest.fixture(scope="module")
def system(request: pytest.FixtureRequest, is_at_work: bool) -> System:  # noqa: FBT001 - a fixture
    """Return the shared platform as it was at first or, for some modules, as it is."""
    platform: System = request.getfixturevalue("shared_system" if is_at_work else "fresh_system")
    return platform


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def running(system: System, is_at_work: bool) -> System:  # noqa: FBT001 - a fixture
    """Return the platform with composer and provider at work."""
    if is_at_work:
        await shared.begin(system)
        return system
    await asyncio.gather(system.start_composer(), system.start_provider())
    # The server was met and prepared: from here on a bad input changes nothing there.
    await system.until(PROVIDER_CONFIG, "", "default", is_ready)
    return system


@pytest_asyncio.fixture(loop_scope="session")
async def namespace(system: System) -> AsyncIterator[str]:
    """Yield a fresh namespace on the module's platform, which is gone afterwards."""
    async with system.namespace() as name:
        yield name


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def _employed(system: System, is_at_work: bool) -> Staff:  # noqa: FBT001 - a fixture
    return await (shared.staff_of(system) if is_at_work else employ(system))


@pytest_asyncio.fixture(loop_scope="session")
async def staff(_employed: Staff) -> AsyncIterator[Staff]:
    """Yield composer and provider at work for a test that may stop them; they run again for the next one."""
    await _employed.complete()
    yield _employed


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def aws(system: System) -> AsyncIterator[Aws]:
    """Yield a simulated RDS beside the platform, known to the cluster; no process of ours runs yet."""
    async with simulated_rds(system) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def azure(system: System) -> AsyncIterator[Azure]:
    """Yield a simulated Azure beside the platform, known to the cluster; no process of ours runs yet."""
    async with simulated_azure(system) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gcp(system: System) -> AsyncIterator[Gcp]:
    """Yield a simulated Cloud SQL beside the platform, known to the cluster; no process of ours runs yet."""
    async with simulated_cloud_sql(system) as made:
        yield made
