"""One cluster with Fairlead's pods for all tests that need it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.pods import Cluster, running_cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running
