"""RDS keeps the contract of clouds, over its wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcloud.aws.server import Options, Served, running
from tests.providers.adapter import Clause
from tests.providers.aws.rds_adapter import RdsAdapter
from tests.providers.contract import clauses_for, keep

pytestmark = pytest.mark.rds


@pytest.fixture
def served() -> Iterator[Served]:
    # Its clock stands still by itself, and is moved on with the world's.
    with running(Options(speed=0.0, durations=0.02)) as simulator:
        yield simulator


@pytest.mark.parametrize("clause", clauses_for(RdsAdapter), ids=lambda clause: clause.name)
async def test_rds_keeps_the_clause(served: Served, clause: Clause) -> None:
    await keep(clause, RdsAdapter(served=served))
