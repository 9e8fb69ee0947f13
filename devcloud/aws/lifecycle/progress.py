"""Move an instance along its steps, to a time that the caller names. Pure.

A step ends when its time is up *and* its work on the database is done. What a long jump of the clock passes over
happens in order, each at its own time. Windows, the end of a stop after seven days (User Guide, "Stopping an Amazon
RDS DB instance temporarily"), the end of a storage optimisation and a forced state's end are seen here too.
"""

from datetime import datetime, timedelta
from typing import assert_never

import msgspec

from devcloud.aws.lifecycle.pending import flush
from devcloud.aws.lifecycle.steps import (
    Addressed,
    Became,
    Do,
    Emit,
    End,
    Finish,
    Flush,
    Gone,
    Initializing,
    Optimizing,
    Output,
    Record,
    Renamed,
    SnapshotReady,
    Step,
    Under,
)
from devcloud.aws.state import catalog, windows
from devcloud.aws.state.model import NOTHING_PENDING, Endpoint
from devcloud.simulator.work import Reboot, SetPassword, Start, TakeSnapshot, Upgrade

OPTIMIZATION = timedelta(hours=6)
STOPPED_AT_MOST = timedelta(days=7)
_STEPS_AT_MOST = 1_000


def advance(record: Record, now: datetime, durations: float) -> tuple[Record | None, tuple[Output, ...]]:
    """Move a record to a time; None when the instance is gone. The outputs are what that asks of the caller."""
    outputs: list[Output] = []
    moved: Record | None = record
    at = now
    for _ in range(_STEPS_AT_MOST):
        if moved is None:
            break
        under = moved.under
        if under is not None:
            if under.work is not None or under.until > now:
                break
            at = now if under.step.work is not None else under.until
            moved = _end(moved, under.step, at, durations, outputs)
        elif moved.agenda:
            moved = _begin(moved, at, durations, outputs)
        else:
            waiting = _at_rest(moved, now, outputs)
            if waiting is moved:
                break
            moved, at = waiting, now
    return moved, tuple(outputs)


def work_done(record: Record, number: int, address: Endpoint | None) -> Record:
    """Take down that a piece of work is done, and the address that it gave; another step's is none of ours."""
    under = record.under
    if under is None or under.work != number:
        return record
    done = msgspec.structs.replace(under, work=None)
    return msgspec.structs.replace(record, under=done, address=address or record.address)


def work_failed(record: Record) -> Record:
    """Take down that the databases could not do their work: `failed`, but for an upgrade that PostgreSQL refused.

    That one leaves the instance as it was ("Upgrading the PostgreSQL DB engine": an upgrade that fails its checks).
    """
    if record.under is None or not isinstance(record.under.step.work, Upgrade):
        return msgspec.structs.replace(record, under=None, agenda=(), resting="failed")
    pending = msgspec.structs.replace(record.shown.pending_modified_values, engine_version=None)
    shown = msgspec.structs.replace(record.shown, pending_modified_values=pending)
    return msgspec.structs.replace(record, under=None, shown=shown)


def next_look(record: Record, now: datetime) -> datetime | None:
    """Return when the record next moves by itself; None: only by a call or by work that is done."""
    if record.under is not None:
        return None if record.under.work is not None else record.under.until
    if record.agenda:
        return now
    times = [
        *(record.resting_until, record.optimizing_until, record.initializing_until),
        record.shown.automatic_restart_time,
    ]
    if record.resting == "available":
        shown = record.shown
        times.append(windows.last_maintenance_start(shown.preferred_maintenance_window, now) + timedelta(weeks=1))
        if shown.backup_retention_period:
            times.append(windows.last_backup_start(shown.preferred_backup_window, now) + timedelta(days=1))
    return min((time for time in times if time is not None), default=None)


def _begin(record: Record, at: datetime, durations: float, outputs: list[Output]) -> Record:
    step = record.agenda[0]
    outputs.extend(Emit(number, at) for number in step.began)
    number = record.jobs + 1 if step.work is not None else None
    begun = msgspec.structs.replace(
        record,
        under=Under(step=step, until=at + timedelta(seconds=step.seconds * durations), work=number),
        agenda=record.agenda[1:],
        jobs=number or record.jobs,
    )
    if step.work is not None and number is not None:
        outputs.append(Do(begun, step.work, number))
    return begun


def _end(record: Record, step: Step, at: datetime, durations: float, outputs: list[Output]) -> Record | None:
    moved: Record | None = msgspec.structs.replace(record, under=None)
    for end in step.ends:
        if moved is None:
            break
        moved = _apply(moved, end, at, durations, outputs)
    outputs.extend(Emit(number, at) for number in step.ended)
    if moved is not None and isinstance(step.work, Start):
        # Windows that passed while it was stopped are gone.
        moved = msgspec.structs.replace(moved, window_seen=at, backup_seen=at)
    return moved if moved is None or not isinstance(step.work, Reboot | Start) else _restarted(moved)


def _restarted(record: Record) -> Record:
    """A restart makes static parameters true (User Guide, "Working with parameter groups")."""
    joined = tuple(
        msgspec.structs.replace(group, parameter_apply_status="in-sync") for group in record.shown.db_parameter_groups
    )
    return msgspec.structs.replace(record, shown=msgspec.structs.replace(record.shown, db_parameter_groups=joined))


def _apply(record: Record, end: End, at: datetime, durations: float, outputs: list[Output]) -> Record | None:
    match end:
        case Flush():
            return msgspec.structs.replace(record, agenda=(*flush(record), *record.agenda))
        case Became():
            return _became(record, end, outputs)
        case Optimizing() | Initializing():
            return _in_background(record, end, at, durations)
        case Addressed(created=created):
            return _addressed(record, at, created=created)
        case SnapshotReady(snapshot=snapshot):
            outputs.append(Finish(snapshot, at))
            return record
        case Gone():
            return None
        case _:
            assert_never(end)


def _in_background(record: Record, end: Optimizing | Initializing, at: datetime, durations: float) -> Record:
    if isinstance(end, Optimizing):
        return msgspec.structs.replace(record, optimizing_until=at + OPTIMIZATION * durations)
    return msgspec.structs.replace(record, initializing_until=at + timedelta(seconds=end.seconds * durations))


def _addressed(record: Record, at: datetime, *, created: bool) -> Record:
    shown = msgspec.structs.replace(record.shown, endpoint=record.address)
    if created:
        shown = msgspec.structs.replace(shown, instance_create_time=at)
        if not any(isinstance(step.work, SetPassword) for step in record.agenda):
            pending = msgspec.structs.replace(shown.pending_modified_values, master_user_password=None)
            shown = msgspec.structs.replace(shown, pending_modified_values=pending)
    return msgspec.structs.replace(record, shown=shown)


def _became(record: Record, end: Became, outputs: list[Output]) -> Record:
    pending = msgspec.structs.replace(record.shown.pending_modified_values, **dict.fromkeys(end.clears))
    shown = msgspec.structs.replace(record.shown, **{"pending_modified_values": pending, **end.shown})
    old = record.shown.db_instance_identifier
    if shown.db_instance_identifier != old:
        outputs.append(Renamed(old))
    return msgspec.structs.replace(record, shown=shown, **end.hidden)


def _at_rest(record: Record, now: datetime, outputs: list[Output]) -> Record:
    """Return the record with what its time brings about; the same record when that is nothing."""
    if record.optimizing_until is not None and record.optimizing_until <= now:
        return msgspec.structs.replace(record, optimizing_until=None)
    if record.initializing_until is not None and record.initializing_until <= now:
        return msgspec.structs.replace(record, initializing_until=None)
    if record.resting_until is not None and record.resting_until <= now:
        return msgspec.structs.replace(record, resting="available", resting_until=None)
    restart = record.shown.automatic_restart_time
    if record.resting == "stopped" and restart is not None and restart <= now:
        outputs.append(Emit(154, restart))
        return msgspec.structs.replace(record, agenda=starting())
    if record.resting != "available":
        return record
    return _in_window(record, now)


def starting() -> tuple[Step, ...]:
    """Return the steps from `stopped` to `available`."""
    became = Became(shown={"automatic_restart_time": None}, hidden={"resting": "available"})
    return (Step(status="starting", seconds=120, work=Start(), ends=(became,), ended=(88,)),)


def _in_window(record: Record, now: datetime) -> Record:
    shown = record.shown
    maintenance = windows.last_maintenance_start(shown.preferred_maintenance_window, now)
    if record.window_seen < maintenance:
        seen = msgspec.structs.replace(record, window_seen=maintenance)
        return _maintained(seen)
    backup = windows.last_backup_start(shown.preferred_backup_window, now)
    if shown.backup_retention_period and record.backup_seen < backup:
        return msgspec.structs.replace(record, backup_seen=backup, agenda=(daily_backup(record, backup),))
    return record


def _maintained(record: Record) -> Record:
    shown = record.shown
    target = catalog.automatic_target(shown.engine_version) if shown.auto_minor_version_upgrade else None
    if target is not None and shown.pending_modified_values.engine_version is None:
        pending = msgspec.structs.replace(shown.pending_modified_values, engine_version=target)
        shown = msgspec.structs.replace(shown, pending_modified_values=pending)
        record = msgspec.structs.replace(record, shown=shown)
    if shown.pending_modified_values == NOTHING_PENDING:
        return record
    return msgspec.structs.replace(record, agenda=flush(record))


def daily_backup(record: Record, at: datetime) -> Step:
    """Return the step that takes an automated snapshot, named as RDS names it."""
    key = f"rds:{record.shown.db_instance_identifier}-{at:%Y-%m-%d-%H-%M}"
    return Step(
        status="backing-up",
        seconds=60,
        work=TakeSnapshot(key),
        ends=(SnapshotReady(key),),
        began=(1,),
        ended=(2,),
    )
