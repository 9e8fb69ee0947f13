"""A simulated RDS that is fast, and an account connected to it as a ProviderConfig says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from devcloud.aws.server import Options, Served, running
from providers.aws.account import AwsAccount, connect
from providers.aws.config import ProviderConfigSpec


@pytest.fixture(scope="module")
def simulator() -> Iterator[Served]:
    with running(Options(durations=0.001)) as served:
        yield served


@pytest.fixture
def stopped() -> Iterator[Served]:
    """Run a simulated RDS whose clock stands still by itself, and is moved on with a world's."""
    with running(Options(speed=0.0)) as served:
        yield served


@pytest.fixture
async def account(simulator: Served) -> AsyncIterator[AwsAccount]:
    config = msgspec.convert(
        {
            "region": "eu-west-1",
            "endpoint": simulator.url,
            "credentials": {"source": "Secret", "secretRef": {"name": "keys"}},
        },
        ProviderConfigSpec,
    )
    key, secret = simulator.credentials
    keys = {"aws_access_key_id": key, "aws_secret_access_key": secret}
    async with connect(config, {"keys": keys}) as connected:
        yield connected
