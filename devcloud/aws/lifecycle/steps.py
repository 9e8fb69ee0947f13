"""What an instance goes through, step by step, as frozen data; `lifecycle` moves along it. Pure."""

from datetime import datetime

import msgspec

from devcloud.aws.state.model import Endpoint, Instance, SubnetGroup
from devcloud.simulator.work import Work


class Flush(msgspec.Struct, frozen=True, tag=True):
    """At its end: apply all pending values, as ApplyImmediately and the maintenance window do."""


class Became(msgspec.Struct, frozen=True, tag=True):
    """At its end: fields of the shown instance and of the record have these values; pending values are cleared."""

    shown: dict[str, object] = {}
    clears: tuple[str, ...] = ()
    hidden: dict[str, object] = {}


class Optimizing(msgspec.Struct, frozen=True, tag=True):
    """At its end: the new storage is optimised in the background, for six hours before `durations`."""


class Initializing(msgspec.Struct, frozen=True, tag=True):
    """At its end: blocks are still read from S3 in the background, for so many seconds before `durations`."""

    seconds: float


class Addressed(msgspec.Struct, frozen=True, tag=True):
    """At its end: the endpoint is the one that the data plane gave; `created`: it exists since then."""

    created: bool = msgspec.field(default=False, name="born")


class SnapshotReady(msgspec.Struct, frozen=True, tag=True):
    """At its end: that snapshot is available."""

    snapshot: str


class Gone(msgspec.Struct, frozen=True, tag=True):
    """At its end: the instance is no more."""


End = Flush | Became | Optimizing | Initializing | Addressed | SnapshotReady | Gone
"""What is true at the end of a step."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step.

    Attributes:
        status: The DBInstanceStatus that it shows; None shows what the instance shows at rest.
        seconds: How long it takes before the clock's `durations`.
        work: What the data plane does meanwhile.
        ends: What is true at its end, in order.
        began: The numbers of the RDS-EVENTs at its beginning.
        ended: Those at its end.
    """

    status: str | None
    seconds: float
    work: Work | None = None
    ends: tuple[End, ...] = ()
    began: tuple[int, ...] = ()
    ended: tuple[int, ...] = ()


class Under(msgspec.Struct, frozen=True, kw_only=True):
    """The step that is under way: until when at least, and the number of its work, None when that is done."""

    step: Step
    until: datetime
    work: int | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """An instance with what the API does not show.

    Attributes:
        shown: What it does show; its DBInstanceStatus is the one at rest.
        password: The master password that logs in.
        port: The port that it was made with.
        next_subnet_group: The group that a pending DBSubnetGroupName means.
        under: The step under way.
        agenda: The steps after it.
        address: Where the data plane answers for it.
        optimizing_until: Until when a change of the storage is refused.
        initializing_until: Until when a restored instance reads its blocks from S3.
        resting: The status at rest: `available`, `stopped`, or a forced one, as `storage-full`.
        resting_until: When a forced status ends by itself.
        window_seen: Until when the passing of maintenance windows was looked at.
        backup_seen: The same for backup windows.
        jobs: How many jobs were numbered; `works` in state files.
    """

    shown: Instance
    password: str
    port: int = 5432
    next_subnet_group: SubnetGroup | None = None
    under: Under | None = None
    agenda: tuple[Step, ...] = ()
    address: Endpoint | None = None
    optimizing_until: datetime | None = None
    initializing_until: datetime | None = None
    resting: str = "available"
    resting_until: datetime | None = None
    window_seen: datetime
    backup_seen: datetime
    jobs: int = msgspec.field(default=0, name="works")

    def __repr__(self) -> str:
        return f"Record({self.shown.db_instance_identifier}, {self.status})"

    @property
    def status(self) -> str:
        """The DBInstanceStatus that it shows now."""
        if self.under is not None and self.under.step.status is not None:
            return self.under.step.status
        if self.resting == "available" and self.initializing_until is not None:
            return "storage-initialization"
        if self.resting == "available" and self.optimizing_until is not None:
            return "storage-optimization"
        return self.resting


class Emit(msgspec.Struct, frozen=True, tag=True):
    """Write down that an RDS-EVENT happened."""

    number: int
    at: datetime


class Do(msgspec.Struct, frozen=True, tag=True):
    """Let the data plane work for this record; its number comes back when done."""

    record: Record
    work: Work
    number: int


class Finish(msgspec.Struct, frozen=True, tag=True):
    """A snapshot is available."""

    snapshot: str
    at: datetime


class Renamed(msgspec.Struct, frozen=True, tag=True):
    """The record has another identifier."""

    old: str


Output = Emit | Do | Finish | Renamed
"""What a move along the steps asks of its caller, in order."""
