"""The toy service keeps the contract of clouds; each clause is run for what its adapters declare."""

from __future__ import annotations

import pytest

from tests.providers.adapter import Adapter, Clause, Property
from tests.providers.contract import CONTRACT, clauses_for, keep
from tests.providers.toy_adapter import PlainServers, ToyChildren, ToyServers

_ADAPTERS: tuple[type[Adapter], ...] = (ToyServers, PlainServers, ToyChildren)


@pytest.mark.parametrize(
    ("adapter", "clause"),
    [
        pytest.param(adapter, clause, id=f"{adapter.__name__}-{clause.name}")
        for adapter in _ADAPTERS
        for clause in clauses_for(adapter)
    ],
)
async def test_toy_keeps_the_clause(adapter: type[Adapter], clause: Clause) -> None:
    await keep(clause, adapter())


def test_every_clause_is_run_for_a_toy_that_has_what_it_needs() -> None:
    covered = {clause.name for adapter in _ADAPTERS for clause in clauses_for(adapter)}
    missing = {clause.name for clause in CONTRACT} - covered
    assert missing == {clause.name for clause in CONTRACT if Property.LAG in clause.needs}
