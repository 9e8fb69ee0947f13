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


def at_every_moment(adapter: type[Adapter]) -> list[Clause]:
    """Return the clauses of a cloud that kill a process after each of its writes: many lives of an object in one."""
    return [clause for clause in clauses_for(adapter) if clause.name.endswith("_wherever_the_process_is_killed")]


def in_one_life(adapter: type[Adapter]) -> list[Clause]:
    """Return the clauses of a cloud but those at every moment, which `make faults` has where they take long."""
    return [clause for clause in clauses_for(adapter) if clause not in at_every_moment(adapter)]


def clause_named(name: str) -> Clause:
    """Return one clause; raises StopIteration where there is none."""
    return next(clause for clause in CONTRACT if clause.name == name)


async def keep(clause: Clause, adapter: Adapter) -> None:
    """Run a clause; raises AssertionError where the cloud does not keep it."""
    try:
        await clause.run(adapter)
    finally:
        await adapter.close()
