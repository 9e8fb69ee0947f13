"""Operations: how they go, what they bring about and when, what is kept of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from devcloud.simulator.clock import Clock
from devcloud.simulator.operations import (
    InProgress,
    Operation,
    OperationError,
    OperationFailure,
    Operations,
    OperationSpec,
)

BUSY = OperationError(code="ServerIsBusy", message="Another operation is under way.")


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


def test_operation_is_pending_runs_and_has_its_effect_at_its_end() -> None:
    toy, operations = world()
    operation = start(operations, pending_s=5.0)

    assert status(operations, operation) == "PENDING"
    pass_time(toy, operations, 6)
    assert (status(operations, operation), toy.applied) == ("RUNNING", [])
    pass_time(toy, operations, 60)
    assert (status(operations, operation), toy.applied) == ("DONE", [{"tier": "large"}])
    ended = operations.get(operation.id)
    assert ended is not None
    assert ended.ended_at == operation.created_at + timedelta(seconds=65)


def test_operation_takes_as_long_as_the_clock_says() -> None:
    toy, operations = world()
    toy.clock.durations = 0.1
    operation = start(operations)

    pass_time(toy, operations, 6.1)

    assert status(operations, operation) == "DONE"


def test_second_operation_of_an_instance_is_refused_while_one_is_open() -> None:
    toy, operations = world()
    first = start(operations)

    with pytest.raises(InProgress) as error:
        start(operations, kind="CREATE_USER")
    assert error.value.operation.id == first.id
    assert start(operations, target="db-2").status == "PENDING"
    pass_time(toy, operations, 61)
    assert start(operations, kind="CREATE_USER").target == "db-1"


def test_operation_that_fails_has_its_error_and_no_effect() -> None:
    toy, operations = world(working=("UPDATE",))
    operations.failures.append(OperationFailure(kind="UPD*", target="db-*", code="quota", message="No room."))
    failing, other = start(operations), start(operations, target="db-2", kind="CREATE")

    pass_time(toy, operations, 61)

    ended = operations.get(failing.id)
    assert ended is not None
    assert (ended.status, ended.error) == ("DONE", OperationError(code="quota", message="No room."))
    assert status(operations, other) == "DONE"
    assert toy.begun == ["CREATE"]
    assert len(toy.applied) == 1
    assert operations.failures == []
    assert start(operations).error is None


def test_failure_without_a_number_comes_for_ever() -> None:
    toy, operations = world()
    operations.failures.append(OperationFailure(times=None))

    for _ in range(3):
        assert start(operations).error is not None
        pass_time(toy, operations, 61)


def test_refused_operation_is_accepted_and_failed_beside_an_open_one() -> None:
    toy, operations = world()
    first = start(operations)

    refused = operations.refuse(target="db-1", kind="UPDATE", error=BUSY)

    assert (refused.status, refused.error) == ("DONE", BUSY)
    assert operations.open_of("db-1") == operations.get(first.id)
    pass_time(toy, operations, 61)
    assert len(toy.applied) == 1


def test_lost_handle_is_answered_no_more_while_its_operation_goes_on() -> None:
    toy, operations = world()
    operation = start(operations)

    assert operations.lose(operation.id)
    assert not operations.lose(operation.id)
    assert operations.get(operation.id) is None
    assert operations.list_of("db-1") == []
    with pytest.raises(InProgress):
        start(operations)
    pass_time(toy, operations, 61)
    assert toy.applied == [{"tier": "large"}]


def test_operation_waits_for_its_work_on_the_databases() -> None:
    toy, operations = world(working=("UPDATE",))
    operation = start(operations)

    pass_time(toy, operations, 100)
    assert (status(operations, operation), toy.applied) == ("RUNNING", [])
    operations.work_done(operation.id)
    assert (status(operations, operation), len(toy.applied)) == ("DONE", 1)
    ended = operations.get(operation.id)
    assert ended is not None
    assert ended.ended_at == operation.created_at + timedelta(seconds=100)
    operations.work_done(operation.id, BUSY)
    assert operations.get(operation.id) == ended


def test_operation_whose_work_is_done_early_waits_for_its_time() -> None:
    toy, operations = world(working=("UPDATE",))
    operation = start(operations)
    pass_time(toy, operations, 1)

    operations.work_done(operation.id)

    assert status(operations, operation) == "RUNNING"
    pass_time(toy, operations, 60)
    assert status(operations, operation) == "DONE"


def test_operation_whose_work_fails_has_that_error_and_no_effect() -> None:
    toy, operations = world(working=("UPDATE",))
    operation = start(operations)
    pass_time(toy, operations, 61)

    operations.work_done(operation.id, BUSY)

    ended = operations.get(operation.id)
    assert ended is not None
    assert (ended.status, ended.error, toy.applied) == ("DONE", BUSY, [])


def test_operations_go_on_in_another_process() -> None:
    toy, operations = world(working=("UPDATE",))
    working, pending = start(operations), start(operations, target="db-2", seconds=1.0, pending_s=500.0)
    pass_time(toy, operations, 61)
    kept = msgspec.json.decode(msgspec.json.encode(operations.saved()), type=tuple[Operation, ...])

    toy, operations = world(working=("UPDATE",))
    toy.wall += 61
    operations.restore(kept)

    assert toy.begun == ["UPDATE"]
    assert (status(operations, working), status(operations, pending)) == ("RUNNING", "PENDING")
    with pytest.raises(InProgress):
        start(operations)
    operations.work_done(working.id)
    assert toy.applied == [{"tier": "large"}]


def test_work_that_is_no_more_after_a_restart_ends_its_operation() -> None:
    toy, operations = world(working=("UPDATE",))
    operation = start(operations)
    pass_time(toy, operations, 61)
    kept = operations.saved()

    toy, operations = world()
    toy.wall += 61
    operations.restore(kept)

    assert status(operations, operation) == "DONE"


def test_operation_that_ended_long_ago_is_forgotten() -> None:
    toy, operations = world()
    operation = start(operations)
    pass_time(toy, operations, 61)

    pass_time(toy, operations, 86_401)

    assert status(operations, operation) == "absent"
    start(operations, target="db-2")
    assert [kept.target for kept in operations.saved()] == ["db-2"]


def test_operations_of_an_instance_that_is_gone_have_no_effect() -> None:
    toy, operations = world()
    operation = start(operations)

    operations.abort("db-1")
    pass_time(toy, operations, 61)

    assert (status(operations, operation), toy.applied) == ("absent", [])


def test_operations_are_listed_newest_first() -> None:
    toy, operations = world()
    start(operations)
    pass_time(toy, operations, 61)
    start(operations, kind="DELETE")
    start(operations, target="db-2")

    assert [operation.kind for operation in operations.list_of("db-1")] == ["DELETE", "UPDATE"]
    assert len(operations.list_of()) == 3
