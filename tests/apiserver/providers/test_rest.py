"""A provider with nothing to do does nothing."""

from __future__ import annotations

import pytest

from tests.apiserver.providers.actions import made
from tests.support.audit import WRITES, Match
from tests.support.kinds import DATABASE, is_ready
from tests.support.system import PROVIDER, System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.apiserver, pytest.mark.postgres]


async def test_a_resource_at_rest_costs_no_write_and_no_statement_that_changes(system: System, namespace: str) -> None:
    for number in range(3):
        await made(system, namespace, f"quiet-{number}")
    await system.at_rest()
    audit, mark = system.audit(), system.sql.mark()
    quiet = Match(user=PROVIDER, verbs=WRITES)

    for _ in range(4):
        for number in range(3):
            await system.until(DATABASE, namespace, f"quiet-{number}", is_ready)
        await audit.until_quiet(quiet, for_s=3.0)

    assert [request.uri for request in audit.requests(quiet)] == []
    assert system.sql.changes(mark) == []
