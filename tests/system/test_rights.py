"""What the processes do in lives of claims in every cloud is what `deploy/rights` lists, and all that it lists is used.

`tests/deploy/test_installed.py` holds the lists against the API server's own answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from tests.support import lives
from tests.support.aws import simulated_rds
from tests.support.azure import simulated_azure
from tests.support.gcp import FLAGS, simulated_cloud_sql
from tests.support.kinds import PROVIDER_CONFIG, is_ready
from tests.support.rights import ACCOUNTS, CLOUDS, TAKEN_BY_NO_LIFE, Usage, usage_in
from tests.support.simulated_cloud import QUICK, SimulatedCloud
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def usages(system: System) -> dict[str, Usage]:
    """Return what each account's requests come to, after lives of claims in every cloud."""
    audit = system.audit()
    for cloud in CLOUDS:
        await system.install_cloud(cloud)
    for name in ("composer", "standby"):
        await system.start_composer(name=name)
    for name in ("provider", "provider-standby"):
        await system.start_provider(*QUICK, name=name)
    await system.until(PROVIDER_CONFIG, "", "default", is_ready)
    async with (
        simulated_rds(system) as aws,
        simulated_azure(system) as azure,
        simulated_cloud_sql(system) as gcp,
        _providers(aws, *QUICK),
        _providers(azure, *QUICK),
        _providers(gcp, *FLAGS),
    ):
        await asyncio.gather(
            lives.live_on_prem(system, "rights-onprem"),
            lives.live_on_aws(aws, "rights-aws"),
            lives.live_on_azure(azure, "rights-azure"),
            lives.live_on_cloud_sql(gcp, "rights-gcp"),
        )
    with_claims = frozenset(f"rights-{cloud}" for cloud in CLOUDS)
    requests = [request for request in audit.requests(begun=True) if request.group != lives.FOREIGN.group]
    return {account: usage_in(requests, account, with_claims) for account in ACCOUNTS}


@asynccontextmanager
async def _providers(cloud: SimulatedCloud, *flags: str) -> AsyncIterator[None]:
    """Have a cloud's provider and its standby for the length of a block."""
    providers = [await cloud.start_provider(*flags, name=f"{cloud.cloud}-{number}") for number in (1, 2)]
    yield
    for provider in providers:
        assert await provider.terminate() == 0


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_no_request_was_refused_for_want_of_a_right(usages: dict[str, Usage], account: str) -> None:
    assert usages[account].refused == []


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_no_request_was_unlisted(usages: dict[str, Usage], account: str) -> None:
    assert usages[account].unlisted == []


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_every_right_of_the_file_was_used(usages: dict[str, Usage], account: str) -> None:
    assert [right for right in usages[account].unused if right not in TAKEN_BY_NO_LIFE] == []
