"""Long-running operations: PENDING, RUNNING, DONE with an effect or an error; one open at a time for each instance.

What an operation will bring about is data of the cloud, so that it outlives the process. An operation ends when its
time is up *and* its work on the databases is done; its effect is there with its end, not before.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol

import msgspec

from devcloud.simulator.clock import Clock
from runtime import randomness

Status = Literal["PENDING", "RUNNING", "DONE"]
_KEPT = timedelta(days=1)


class OperationError(msgspec.Struct, frozen=True, kw_only=True):
    """Why an operation failed."""

    code: str
    message: str


class OperationSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation is to do.

    Attributes:
        kind: As the cloud calls it: `CREATE`, `UPDATE_USER`.
        seconds: How long it runs, before the clock's `durations`.
        pending_s: How long it waits before, likewise.
        effect: What it brings about, as data of the cloud.
        error: Why it fails; None is what tests asked for, else success.
    """

    kind: str
    seconds: float
    pending_s: float = 0.0
    effect: dict[str, Any] = {}
    error: OperationError | None = None


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation.

    Attributes:
        id: Its handle.
        target: The instance whose turn it takes; of a child (a database, a firewall rule) its server.
        kind: As the cloud calls it.
        status: How far it is. DONE is not success: see `error`.
        created_at: When it was asked for.
        runs_at: When it begins to run.
        ends_at: When it ends, if its work is done by then; None as long as it does not run.
        ended_at: When it ended.
        seconds: How long it runs, before the clock's `durations`.
        effect: What it brings about, as data of the cloud.
        error: Why it failed, or will fail.
        has_open_work: Whether the databases still work for it.
        is_lost: Whether its handle is answered no more; it goes on.
    """

    id: str
    target: str
    kind: str
    status: Status = "PENDING"
    created_at: datetime
    runs_at: datetime
    ends_at: datetime | None = None
    ended_at: datetime | None = None
    seconds: float
    effect: dict[str, Any] = {}
    error: OperationError | None = None
    has_open_work: bool = False
    is_lost: bool = False


class OperationFailure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Operations that are accepted and fail at their end, as tests ask for.

    Attributes:
        kind: Which, as a pattern.
        target: Of which instances, as a pattern.
        code: The code of the error.
        message: Its sentence.
        times: How often; None is until it is taken away.
    """

    kind: str = "*"
    target: str = "*"
    code: str = "internalError"
    message: str = "Internal error."
    times: int | None = 1


class InProgress(Exception):  # noqa: N818 - a state, that the cloud answers in words of its own
    """The instance has an open operation."""

    def __init__(self, operation: Operation) -> None:
        super().__init__(f"{operation.kind} {operation.id} of {operation.target} is {operation.status}")
        self.operation = operation


class Effects(Protocol):
    """What a cloud does when an operation begins to run and when it ends well."""

    def begin(self, operation: Operation) -> bool:
        """Submit the operation's work on the databases; return whether there is any.

        It comes back by `Operations.work_done`. After a restart of the simulator it is called again for an operation
        whose work was not done.
        """
        ...

    def apply(self, operation: Operation) -> None:
        """Bring about the effect."""
        ...


class Operations:
    """The operations of a simulated cloud.

    Attributes:
        failures: Which of the next ones fail.
        changes: How often one of them changed.
    """

    def __init__(self, clock: Clock, effects: Effects, *, kept: timedelta = _KEPT) -> None:
        self.failures: list[OperationFailure] = []
        self.changes = 0
        self._clock = clock
        self._effects = effects
        self._kept = kept
        self._all: dict[str, Operation] = {}
        self._open: dict[str, str] = {}

    def start(self, target: str, spec: OperationSpec) -> Operation:
        """Start an operation on an instance, whose turn it takes.

        Raises:
            InProgress: The instance has an open operation.
        """
        running = self.open_of(target)
        if running is not None:
            raise InProgress(running)
        self._forget_old()
        now = self._clock.now()
        operation = Operation(
            id=randomness.token_hex(16),
            target=target,
            kind=spec.kind,
            created_at=now,
            runs_at=now + timedelta(seconds=spec.pending_s * self._clock.durations),
            seconds=spec.seconds,
            effect=spec.effect,
            error=spec.error or self._failure_of(target, spec.kind),
        )
        self._store(operation)
        self._open[target] = operation.id
        return operation

    def refuse(self, *, target: str, kind: str, error: OperationError) -> Operation:
        """Return an operation that was accepted and has failed at once, even beside an open one (ServerIsBusy)."""
        now = self._clock.now()
        operation = Operation(
            id=randomness.token_hex(16),
            target=target,
            kind=kind,
            status="DONE",
            created_at=now,
            runs_at=now,
            ended_at=now,
            seconds=0,
            error=error,
        )
        self._store(operation)
        return operation

    def get(self, handle: str) -> Operation | None:
        """Return an operation; None for one that was never there, is lost, or ended long ago."""
        operation = self._all.get(handle)
        if operation is None or operation.is_lost or self._is_forgotten(operation):
            return None
        return operation

    def open_of(self, target: str) -> Operation | None:
        """Return the open operation of an instance."""
        handle = self._open.get(target)
        return None if handle is None else self._all[handle]

    def list_of(self, target: str | None = None) -> list[Operation]:
        """Return the operations that have a handle, of one instance or of all, newest first."""
        known = [operation for operation in reversed(self._all.values()) if self.get(operation.id) is not None]
        return [operation for operation in known if target in {None, operation.target}]

    def lose(self, handle: str) -> bool:
        """Answer a handle no more, while its operation goes on; return whether there is one."""
        operation = self.get(handle)
        if operation is not None:
            self._store(msgspec.structs.replace(operation, is_lost=True))
        return operation is not None

    def settle(self) -> None:
        """Move every operation whose time has come."""
        now = self._clock.now()
        for handle in list(self._open.values()):
            self._advance(self._all[handle], now)

    def work_done(self, handle: str, error: OperationError | None = None) -> None:
        """Take down that the databases did the work of an operation, or why they could not."""
        operation = self._all.get(handle)
        if operation is None or not operation.has_open_work:
            return
        now = self._clock.now()
        self._store(msgspec.structs.replace(operation, has_open_work=False, error=error or operation.error))
        self._advance(self._all[handle], now, ended_at=now)

    def abort(self, target: str) -> None:
        """Forget an instance's operations, without any effect: it is gone."""
        self._open.pop(target, None)
        self._all = {handle: operation for handle, operation in self._all.items() if operation.target != target}
        self.changes += 1

    def reset(self) -> None:
        """Forget all."""
        self._all.clear()
        self._open.clear()
        self.failures.clear()
        self.changes += 1

    # What is kept beyond the process

    def saved(self) -> tuple[Operation, ...]:
        """Return all of them, oldest first."""
        return tuple(self._all.values())

    def restore(self, operations: Iterable[Operation]) -> None:
        """Have the operations of a former process, and their work begun again where it was not done."""
        for operation in operations:
            self._store(operation)
            if operation.status != "DONE":
                self._open[operation.target] = operation.id
            if operation.has_open_work and not self._effects.begin(operation):
                self.work_done(operation.id)

    # Its parts

    def _advance(self, operation: Operation, now: datetime, *, ended_at: datetime | None = None) -> None:
        if operation.status == "PENDING" and operation.runs_at <= now:
            operation = self._begin(operation)
        is_over = operation.ends_at is not None and operation.ends_at <= now
        if operation.status != "RUNNING" or operation.has_open_work or not is_over:
            return
        done = msgspec.structs.replace(operation, status="DONE", ended_at=ended_at or operation.ends_at)
        self._store(done)
        del self._open[done.target]
        if done.error is None:
            self._effects.apply(done)

    def _begin(self, operation: Operation) -> Operation:
        ends_at = operation.runs_at + timedelta(seconds=operation.seconds * self._clock.durations)
        running = msgspec.structs.replace(operation, status="RUNNING", ends_at=ends_at, has_open_work=True)
        # Kept before its work begins, so that its end is known again; one that will fail does no work.
        self._store(running)
        if operation.error is not None or not self._effects.begin(running):
            self._store(msgspec.structs.replace(running, has_open_work=False))
        return self._all[operation.id]

    def _store(self, operation: Operation) -> None:
        self.changes += 1
        self._all[operation.id] = operation

    def _forget_old(self) -> None:
        self._all = {handle: operation for handle, operation in self._all.items() if not self._is_forgotten(operation)}

    def _is_forgotten(self, operation: Operation) -> bool:
        return operation.ended_at is not None and operation.ended_at + self._kept <= self._clock.now()

    def _failure_of(self, target: str, kind: str) -> OperationError | None:
        for index, failure in enumerate(self.failures):
            if fnmatchcase(kind, failure.kind) and fnmatchcase(target, failure.target):
                left = None if failure.times is None else failure.times - 1
                remaining = [] if left == 0 else [msgspec.structs.replace(failure, times=left)]
                self.failures[index : index + 1] = remaining
                return OperationError(code=failure.code, message=failure.message)
        return None
