"""What one account has in one region, and how its instances move with the time.

The only place where state changes. Every answer is given by one coroutine without a pause, so it is whole; the data
plane's work goes on beside, in order for each instance, and is reported back by `finished`.
"""

from collections import deque
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from devcloud.aws.lifecycle import progress
from devcloud.aws.lifecycle.events import RDS_EVENTS
from devcloud.aws.lifecycle.steps import Do, Emit, Finish, Output, Record, Renamed
from devcloud.aws.state.backups import automated_backup_of, latest_restorable, snapshot_of
from devcloud.aws.state.model import (
    AutomatedBackup,
    Endpoint,
    Event,
    Instance,
    ParameterGroup,
    Snapshot,
    SubnetGroup,
)
from devcloud.aws.state.network import DEFAULT_VPC, SUBNETS, subnet
from devcloud.simulator.clock import Clock
from devcloud.simulator.history import History, Schedule
from devcloud.simulator.messages import Refusal
from devcloud.simulator.work import Drop, TakeSnapshot
from runtime import randomness

_EVENTS_KEPT = 20_000  # the API shows fourteen days of them
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


class JobQueue(Protocol):
    """Where a region hands in work for the databases; it comes back to `Region.finished`."""

    def work(self, region: "Region", job: Do) -> None:
        """Do a piece of work after those of the same instance that were handed in before."""
        ...

    def copy(self, source: str, target: str) -> None:
        """Keep a snapshot's data under another key."""
        ...

    def forget(self, key: str) -> None:
        """Drop a snapshot's data."""
        ...

    def delete(self, resource_id: str) -> None:
        """Drop an instance's data."""
        ...


class Cache(Protocol):
    """What answers keep of instances; it never outlives them."""

    def forget(self, resource_id: str) -> None:
        """Forget an instance that is gone."""
        ...


class Region:
    """The state of an account in a region.

    Attributes:
        instances: By identifier.
        snapshots: By identifier; automated ones begin with `rds:`.
        data_keys: Under which key the databases keep a snapshot's data.
        retained: Automated backups of instances that are gone, by DbiResourceId.
        subnet_groups: By name.
        parameter_groups: Those that a user made, by name.
        events: Oldest first.
        changes: How often something of it changed by itself or by a record.
    """

    def __init__(self, account: str, name: str, clock: Clock, jobs: JobQueue, cache: Cache) -> None:
        self.account = account
        self.name = name
        self.clock = clock
        self.instances: dict[str, Record] = {}
        self.snapshots: dict[str, Snapshot] = {}
        self.data_keys: dict[str, str] = {}
        self.retained: dict[str, AutomatedBackup] = {}
        self.subnet_groups: dict[str, SubnetGroup] = {"default": self._default_subnet_group()}
        self.parameter_groups: dict[str, ParameterGroup] = {}
        self.events: deque[Event] = deque(maxlen=_EVENTS_KEPT)
        self.changes = 0
        self._jobs = jobs
        self._cache = cache
        self._schedule = Schedule()
        self._history: History[Instance] = History()

    def arn(self, kind: str, name: str) -> str:
        """Return the ARN of a resource: kinds `db`, `snapshot`, `subgrp`, `pg`, `auto-backup`."""
        return f"arn:aws:rds:{self.name}:{self.account}:{kind}:{name}"

    def now(self) -> datetime:
        """Return the simulated time."""
        return self.clock.now()

    def instance(self, name: str) -> Record:
        """Return an instance by identifier, in any letter case, or by ARN.

        Raises:
            Refusal: `DBInstanceNotFound`.
        """
        identifier = name.rsplit(":", 1)[-1].lower() if name.startswith("arn:") else name.lower()
        record = self.instances.get(identifier)
        if record is None:
            raise Refusal("DBInstanceNotFound", f"DBInstance {name} not found.")
        return record

    def put(self, record: Record) -> None:
        """Keep a record and move it as far as it goes now."""
        self._store(record)
        self._advance(record.shown.db_instance_identifier)

    def remove(self, identifier: str) -> None:
        """Forget an instance, without any lifecycle."""
        self.changes += 1
        gone = self.instances.pop(identifier, None)
        if gone is not None:
            self._cache.forget(gone.shown.dbi_resource_id)
        self._history.add(identifier, self.now(), None)

    def finished(self, resource_id: str, number: int, address: Endpoint | None = None) -> None:
        """Take down that the data plane did a piece of work, the address that it gave, and go on."""
        for identifier, record in self.instances.items():
            if record.shown.dbi_resource_id == resource_id:
                self._store(progress.work_done(record, number, address))
                self._advance(identifier)
                return

    def add_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, with a key for its data that none of that name has had."""
        self.snapshots[snapshot.db_snapshot_identifier] = snapshot
        self.data_keys[snapshot.db_snapshot_identifier] = f"{snapshot.db_snapshot_arn}#{randomness.token_hex(8)}"

    def copy_data(self, source: str, target: str) -> None:
        """Let a snapshot have the data of another one."""
        self._jobs.copy(self.data_keys[source], self.data_keys[target])

    def drop_snapshot(self, name: str) -> None:
        """Forget a snapshot and let its data go."""
        self.changes += 1
        del self.snapshots[name]
        self._jobs.forget(self.data_keys.pop(name))

    def drop_retained(self, resource_id: str) -> None:
        """Forget an instance's retained backups and let its data go."""
        self.changes += 1
        del self.retained[resource_id]
        self._jobs.delete(resource_id)

    def failed(self, resource_id: str) -> None:
        """Take down that the databases could not do their work; see `progress.work_failed`."""
        for record in list(self.instances.values()):
            if record.shown.dbi_resource_id == resource_id:
                after = progress.work_failed(record)
                self.put(after)
                if after.resting == "failed":
                    self.emit(31, self.source(record.shown), self.now())

    @staticmethod
    def source(shown: Instance) -> tuple[str, str, str]:
        """Return an instance as the source of events."""
        return "db-instance", shown.db_instance_identifier, shown.db_instance_arn

    def settle(self) -> None:
        """Move every instance whose time has come."""
        for identifier in self._schedule.due(self.now()):
            self._advance(identifier)

    def emit(self, number: int, source: tuple[str, str, str], at: datetime) -> None:
        """Write an event down.

        Args:
            number: That of the RDS-EVENT.
            source: Type (`db-instance`, `db-snapshot`, `db-parameter-group`), identifier, ARN.
            at: When it happened.
        """
        event = RDS_EVENTS[number]
        kind, identifier, arn = source
        self.events.append(
            Event(
                source_identifier=identifier,
                source_type=kind,
                message=event.sentence,
                event_categories=event.categories,
                date=at,
                source_arn=arn,
                event_id=f"RDS-EVENT-{number:04d}",
            )
        )

    def as_of(self, identifier: str, moment: datetime) -> Instance | None:
        """Return what an instance showed at a moment; None when it did not exist then."""
        return self._history.as_of(identifier, moment)

    def identifiers(self) -> list[str]:
        """Return the identifiers of now and of lately, in order."""
        return self._history.names()

    def _store(self, record: Record) -> None:
        identifier = record.shown.db_instance_identifier
        before = self.instances.get(identifier)
        self.changes += 1
        self.instances[identifier] = record
        if before is None or before.shown is not record.shown or before.status != record.status:
            self._history.add(identifier, self.now(), visible(record))

    def _advance(self, identifier: str) -> None:
        record = self.instances.get(identifier)
        if record is None:
            return
        moved, outputs = progress.advance(record, self.now(), self.clock.durations)
        if moved is None:
            self.remove(identifier)
        elif moved is not record:
            self._store(moved)
        for output in outputs:
            self._carry_out(moved or record, output)
        look = progress.next_look(moved, self.now()) if moved is not None else None
        if moved is not None and look is not None:
            self._schedule.add(look, moved.shown.db_instance_identifier)

    def _carry_out(self, record: Record, output: Output) -> None:
        shown = record.shown
        match output:
            case Emit(number=number, at=at):
                self.emit(number, self.source(shown), at)
            case Do(work=TakeSnapshot(snapshot=key)):
                if key not in self.snapshots:
                    self.add_snapshot(snapshot_of(shown, key, self.arn("snapshot", key), "automated"))
                self._jobs.work(self, output)
            case Do(work=Drop(keeps=keeps)):
                self._end_backups(shown, keeps=keeps)
                self._jobs.work(self, output)
            case Do():
                self._jobs.work(self, output)
            case Finish(snapshot=key, at=at):
                self._finish_snapshot(key, at)
            case Renamed(old=old):
                self.remove(old)

    def _end_backups(self, shown: Instance, *, keeps: bool) -> None:
        if keeps:
            arn = self.arn("auto-backup", f"ab-{shown.dbi_resource_id[3:].lower()}")
            until = latest_restorable(shown, self.now()) or self.now()
            self.retained[shown.dbi_resource_id] = automated_backup_of(shown, status="retained", arn=arn, until=until)
            return
        for key, snapshot in list(self.snapshots.items()):
            if snapshot.snapshot_type == "automated" and snapshot.dbi_resource_id == shown.dbi_resource_id:
                self.drop_snapshot(key)

    def _finish_snapshot(self, key: str, at: datetime) -> None:
        snapshot = self.snapshots.get(key)
        if snapshot is None or snapshot.status != "creating":
            return
        if snapshot.fails:
            self.changes += 1
            self.snapshots[key] = msgspec.structs.replace(snapshot, status="failed")
            return
        ready = msgspec.structs.replace(
            snapshot,
            status="available",
            percent_progress=100,
            snapshot_create_time=at,
            original_snapshot_create_time=at,
        )
        self.changes += 1
        self.snapshots[key] = ready
        self.emit(42 if ready.snapshot_type == "manual" else 91, ("db-snapshot", key, ready.db_snapshot_arn), at)
        self._expire_automated(ready, at)

    def _expire_automated(self, newest: Snapshot, at: datetime) -> None:
        record = self.instances.get(newest.db_instance_identifier)
        days = record.shown.backup_retention_period if record else 0
        if newest.snapshot_type != "automated" or not days:
            return
        for key, snapshot in list(self.snapshots.items()):
            taken = snapshot.snapshot_create_time
            old = taken is not None and taken < at - timedelta(days=days)
            if old and snapshot.snapshot_type == "automated" and snapshot.dbi_resource_id == newest.dbi_resource_id:
                self.drop_snapshot(key)

    def _default_subnet_group(self) -> SubnetGroup:
        return SubnetGroup(
            db_subnet_group_name="default",
            db_subnet_group_description="default",
            vpc_id=DEFAULT_VPC,
            subnets=tuple(subnet(self.name, name) for name, (vpc, _) in SUBNETS.items() if vpc == DEFAULT_VPC),
            db_subnet_group_arn=self.arn("subgrp", "default"),
        )


def resource_id() -> str:
    """Return a DbiResourceId, which no other instance ever has."""
    return "db-" + "".join(randomness.choice(_ALPHABET) for _ in range(26))


def visible(record: Record) -> Instance:
    """Return what DescribeDBInstances shows of a record, but for what follows from the time of the answer."""
    shown = record.shown
    return shown if shown.db_instance_status == record.status else _with_status(shown, record.status)


def _with_status(shown: Instance, status: str) -> Instance:
    return msgspec.structs.replace(shown, db_instance_status=status)
