"""Work on the database of an instance, as data that outlives a process. Pure; `jobs.carry_out` does it."""

import msgspec


class Make(msgspec.Struct, frozen=True, tag=True):
    """Make an empty database."""


class Restore(msgspec.Struct, frozen=True, tag=True):
    """Make a database with the data of a snapshot."""

    snapshot: str


class Copy(msgspec.Struct, frozen=True, tag=True):
    """Make a database with the present data of another instance, or what is kept of one (its `resource_id`)."""

    source: str


class SetPassword(msgspec.Struct, frozen=True, tag=True):
    """Give the administrator a new password; the former one ends at the same moment, as a role has one."""

    password: str

    def __repr__(self) -> str:
        return "SetPassword()"


class Reboot(msgspec.Struct, frozen=True, tag=True):
    """Cut every session."""


class Upgrade(msgspec.Struct, frozen=True, tag=True):
    """Cut every session, and answer by a server of another version with the same data."""

    version: str


class Stop(msgspec.Struct, frozen=True, tag=True):
    """Cut every session and refuse new ones."""


class Start(msgspec.Struct, frozen=True, tag=True):
    """Accept sessions again."""


class TakeSnapshot(msgspec.Struct, frozen=True, tag=True):
    """Copy the data under a key."""

    snapshot: str


class MoveTo(msgspec.Struct, frozen=True, tag=True):
    """Answer under another identifier or port; sessions are cut."""

    identifier: str
    port: int


class Drop(msgspec.Struct, frozen=True, tag=True):
    """Drop the data; `keeps` says that backups outlive the instance, which only stops."""

    keeps: bool


Work = Make | Restore | Copy | SetPassword | Reboot | Upgrade | Stop | Start | TakeSnapshot | MoveTo | Drop
"""What the data plane has to do; a step does not end before it is done."""
