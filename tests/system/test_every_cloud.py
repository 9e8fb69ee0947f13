"""What the processes do in lives of claims in every cloud is what `deploy/rights` lists, and no secret shows meanwhile.

All that the lists say is used; `tests/deploy/test_installed.py` holds them against the API server's own answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.security.canaries import Exposure
from tests.security.cloud_canaries import ACCOUNTS as KEYS
from tests.security.cloud_canaries import PLACES, exposure_of, with_records
from tests.support import lives
from tests.support.aws import simulated_rds
from tests.support.azure import simulated_azure
from tests.support.gcp import FLAGS, simulated_cloud_sql
from tests.support.kinds import PROVIDER_CONFIG, is_ready
from tests.support.rights import ACCOUNTS, CLOUDS, TAKEN_BY_NO_LIFE, Usage, usage_in
from tests.support.simulated_cloud import QUICK, SimulatedCloud
from tests.support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]


_DEBUG = "--log-level=DEBUG"


@dataclass(frozen=True, slots=True)
class Lives:
    """What each account's requests come to, and what shows of each cloud."""

    usages: dict[str, Usage]
    exposures: dict[str, Exposure]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def lived(system: System) -> Lives:
    """Return what is seen of lives of claims in every cloud, with a standby beside each process."""
    audit = system.audit()
    for cloud in CLOUDS:
        await system.install_cloud(cloud)
    await asyncio.gather(
        *(system.start_composer(_DEBUG, name=name) for name in ("composer", "standby")),
        *(system.start_provider(*QUICK, name=name) for name in ("provider", "provider-standby")),
    )
    await system.until(PROVIDER_CONFIG, "", "default", is_ready)
    shown: dict[str, Exposure] = {}

    def look(cloud: SimulatedCloud) -> lives.BeforeEnd:
        async def before_end(former: str) -> None:
            shown[cloud.cloud] = await exposure_of(cloud, f"rights-{cloud.cloud}", former)

        return before_end

    async with (
        simulated_rds(system) as aws,
        simulated_azure(system) as azure,
        simulated_cloud_sql(system) as gcp,
        _providers([(aws, QUICK), (azure, QUICK), (gcp, FLAGS)]),
    ):
        await asyncio.gather(
            lives.live_on_prem(system, "rights-onprem"),
            lives.live_on_aws(aws, "rights-aws", look(aws)),
            lives.live_on_azure(azure, "rights-azure", look(azure)),
            lives.live_on_cloud_sql(gcp, "rights-gcp", look(gcp)),
        )
        exposures = {cloud.cloud: await with_records(cloud, shown[cloud.cloud]) for cloud in (aws, azure, gcp)}
    with_claims = frozenset(f"rights-{cloud}" for cloud in CLOUDS)
    requests = [request for request in audit.requests(begun=True) if request.group != lives.FOREIGN.group]
    return Lives({account: usage_in(requests, account, with_claims) for account in ACCOUNTS}, exposures)


@asynccontextmanager
async def _providers(flags: Sequence[tuple[SimulatedCloud, tuple[str, ...]]]) -> AsyncIterator[None]:
    """Have each cloud's provider and its standby for the length of a block, each cloud's with its flags."""
    starts = [
        cloud.start_provider(_DEBUG, *own, name=f"{cloud.cloud}-{number}") for cloud, own in flags for number in (1, 2)
    ]
    providers = await asyncio.gather(*starts)
    yield
    ended = await asyncio.gather(*(provider.terminate() for provider in providers))
    assert set(ended) == {0}


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_no_request_was_refused_for_want_of_a_right(lived: Lives, account: str) -> None:
    assert lived.usages[account].refused == []


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_no_request_was_unlisted(lived: Lives, account: str) -> None:
    assert lived.usages[account].unlisted == []


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_every_right_of_the_file_was_used(lived: Lives, account: str) -> None:
    assert [right for right in lived.usages[account].unused if right not in TAKEN_BY_NO_LIFE] == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("cloud", KEYS)
async def test_no_secret_of_a_cloud_shows(lived: Lives, cloud: str, place: str) -> None:
    exposure = lived.exposures[cloud]
    assert len(exposure.places[place]) > 200
    assert exposure.shown(place) == []


@pytest.mark.parametrize("cloud", KEYS)
async def test_the_secrets_that_are_looked_for_are_those_in_use(lived: Lives, cloud: str) -> None:
    canaries = lived.exposures[cloud].canaries

    assert len(set(canaries.values())) >= 4
    assert min(len(text) for text in canaries.values()) >= 16
    assert [name for name in canaries if name.startswith("key ")] != []
