"""What every cloud must pass: the clauses of `tests.providers.clauses`, by one adapter for each cloud.

A cloud's tests are three lines: `parametrize("clause", clauses_for(ItsAdapter))`, an adapter on a cloud of its own, and
`await keep(clause, adapter)`.
"""

from __future__ import annotations

from tests.providers.adapter import CLAUSES, USUAL, Adapter, Clause, Property
from tests.providers.clauses import absence, authority, creation, deletion, drift, fence, operations, ownership, secrets

MODULES = (absence, authority, creation, deletion, drift, fence, operations, ownership, secrets)
CONTRACT: tuple[Clause, ...] = tuple(CLAUSES)


def clauses_for(adapter: type[Adapter]) -> list[Clause]:
    """Return the clauses that apply to a cloud, by what its adapter declares."""
    has = adapter.properties | ({Property.LOGINS} if adapter.has_logins else set())
    return [clause for clause in CONTRACT if clause.needs <= has | (USUAL - adapter.lacks)]


def clause_named(name: str) -> Clause:
    """Return one clause; raises StopIteration where there is none."""
    return next(clause for clause in CONTRACT if clause.name == name)


async def keep(clause: Clause, adapter: Adapter) -> None:
    """Run a clause; raises AssertionError where the cloud does not keep it."""
    try:
        await clause.run(adapter)
    finally:
        await adapter.close()
