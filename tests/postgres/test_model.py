"""The PostgreSQL in memory (tests/simulation/postgres) is judged by a real one: both answer the same."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from devcloud.onprem import OnPremServer
from tests.simulation.postgres.cases import CASES, Case
from tests.simulation.postgres.comparing import Comparison, compared, comparison
from tests.simulation.postgres.sequences import Names, sequence

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.postgres]
_SEQUENCES = 20
"""`python -m tests.simulation.postgres` compares more."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(onprem_server: OnPremServer) -> AsyncIterator[Comparison]:
    async with comparison(onprem_server) as made:
        yield made


async def test_random_sequences_are_answered_alike_and_leave_the_same_catalogs(both: Comparison) -> None:
    differences = [
        difference async for _, difference in compared(both, [f"1:{number}" for number in range(_SEQUENCES)])
    ]

    assert differences == [None] * _SEQUENCES


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.words)
async def test_a_case_is_answered_alike(both: Comparison, case: Case) -> None:
    names = both.names()

    assert await both.run(case.steps(names), names) is None


async def test_sequences_are_a_function_of_the_seed() -> None:
    names = Names("q00001zz")

    assert sequence("1:1", names, "admin") == sequence("1:1", names, "admin")
    assert sequence("1:1", names, "admin") != sequence("1:2", names, "admin")
