"""The closed set of things a pass may do with one resource. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from apis.teardown import Policy
from providers.external.observation import Change


@dataclass(frozen=True, slots=True)
class Settled:
    """Nothing to do."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing is done until a person acts, who need not: `reason` is why."""

    reason: str
    message: str
    held: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """Fairlead or the cloud acts next; reconcile again after `after`. `quiet` leaves the status as it is.

    Where lists of the account show when the cloud is done, `by_list` is after how long to reconcile all the same.
    """

    reason: str
    message: str
    after: timedelta
    quiet: bool = False
    held: tuple[Change, ...] = ()
    by_list: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Create:
    """Make the database; `instead_of` names a lost incarnation, `restore` the backup that it begins with.

    Without such a backup the lost one was given up by a person.
    """

    instead_of: str = ""
    restore: str = ""


@dataclass(frozen=True, slots=True)
class Update:
    """Make `changes` now; `held` wait for their window or for consent, for its cause.

    `queued` are handed to the cloud's own queue, which makes them in the maintenance window.
    """

    changes: tuple[Change, ...]
    held: Rest | Refuse | Wait | None = None
    drift: bool = True
    queued: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Adopt:
    """Write our tags onto a database that a person named."""

    incarnation: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """Only a person's change can help."""

    reason: str
    message: str
    held: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class Orphan:
    """Let the database live on without us; `tagged`: its tags are to show that."""

    tagged: bool


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the database as `policy` says."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    """Nothing of ours is left in the cloud: remove our finalizer."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """Not ours: write nothing at all."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What adopting an incarnation changes: whose it is, and all else with when it is made.

    `hash` stands for all of it: who agreed to it agreed to nothing else.
    """

    incarnation: str
    ownership: tuple[Change, ...]
    changes: tuple[tuple[Change, str], ...]
    hash: str

    @property
    def all(self) -> tuple[Change, ...]:
        """All of both."""
        return (*self.ownership, *(change for change, _ in self.changes))


Plan: TypeAlias = Settled | Rest | Wait | Create | Update | Adopt | Refuse | Orphan | Delete | RemoveFinalizer | Ignore
