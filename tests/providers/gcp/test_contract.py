"""Instances and users of Cloud SQL keep the contract of clouds, over its wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcloud.gcp.server import Options, Served, running
from tests.providers.adapter import Clause
from tests.providers.contract import in_one_life, keep
from tests.providers.gcp.sql_adapter import SqlAdapter
from tests.providers.gcp.sql_users_adapter import SqlUsersAdapter

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def simulator() -> Iterator[Served]:
    # Its clock stands still by itself, and is moved on with the world's; what takes five minutes takes half a minute.
    with running(Options(speed=0.0, durations=0.1)) as served:
        yield served


@pytest.mark.parametrize(
    ("adapter", "clause"),
    [
        pytest.param(adapter, clause, id=f"{adapter.__name__}-{clause.name}")
        for adapter in (SqlAdapter, SqlUsersAdapter)
        for clause in in_one_life(adapter)
    ],
)
async def test_cloud_sql_keeps_the_clause(served: Served, adapter: type[SqlAdapter], clause: Clause) -> None:
    await keep(clause, adapter(served=served))
