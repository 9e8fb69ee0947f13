"""Operations: how they go, what they bring about and when, what is kept of them."""

from __future__ import annotations

from typing import Any

from devcloud.simulator.clock import Clock
from devcloud.simulator.operations import (
    Operation,
    Operations,
    OperationSpec,
)


class Toy:
    """Effects that are written down; operations of the kinds in `working` have work on the databases."""

    def __init__(self, *, working: tuple[str, ...] = ()) -> None:
        self.wall = 1_000_000.0
        self.clock = Clock(wall=lambda: self.wall)
        self.begun: list[str] = []
        self.applied: list[dict[str, Any]] = []
        self._working = working

    def begin(self, operation: Operation) -> bool:
        self.begun.append(operation.kind)
        return operation.kind in self._working

    def apply(self, operation: Operation) -> None:
        self.applied.append(operation.effect)


def world(*, working: tuple[str, ...] = ()) -> tuple[Toy, Operations]:
    toy = Toy(working=working)
    return toy, Operations(toy.clock, toy)


def start(operations: Operations, target: str = "db-1", kind: str = "UPDATE", **changed: Any) -> Operation:
    spec = OperationSpec(kind=kind, **{"seconds": 60.0, "effect": {"tier": "large"}, **changed})
    return operations.start(target, spec)


def pass_time(toy: Toy, operations: Operations, seconds: float) -> None:
    toy.wall += seconds
    operations.settle()


def status(operations: Operations, operation: Operation) -> str:
    present = operations.get(operation.id)
    return "absent" if present is None else present.status


def test_operation_whose_work_is_done_early_waits_for_its_time() -> None:
    toy, operations = world(working=("UPDATE",))
    operation = start(operations)
    pass_time(toy, operations, 1)

    operations.work_done(operation.id)

    assert status(operations, operation) == "RUNNING"
    pass_time(toy, operations, 60)
    assert status(operations, operation) == "DONE"
