"""One cluster with Fairlead's pods for all tests that need it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.support.kinds import CLAIM
from tests.support.pods import Cluster, running_cluster
from tests.support.system import System

_LIMIT_S = 120.0


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def running(cluster: Cluster) -> AsyncIterator[System]:
    """Yield the cluster, whose pods are at work, without claims and databases of attacks of another module."""
    async with cluster.system() as system:
        for namespace in ("alice", "mallory"):
            names = [claim["metadata"]["name"] for claim in await system.api.items(CLAIM.path(namespace))]
            for name in names:
                await system.edit(CLAIM, namespace, name, {"spec": {"deletionPolicy": "Delete"}})
                await system.api.delete(CLAIM.path(namespace, name))
            for name in names:
                await system.api.until_gone(CLAIM.path(namespace, name), limit_s=_LIMIT_S)
        yield system
