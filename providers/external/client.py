"""What a cloud must offer, in the cloud's own words; all that its author writes.

Guarantees that the generic reconciler builds on:
- Nothing is guessed: `observe` answers Present or Absent from one typed answer; whatever else happened is raised as a
  Failure and becomes Unknown.
- A create writes the owner's tags by itself, so that a lost answer leads back to the same database.
- Update and delete take what was observed in this pass and refuse another incarnation (runtime.errors.Conflict).
- Every mutating call asks its fence in the sending thread, at the last moment before each request leaves.
- No call waits for minutes: a slow change returns an Operation, which is remembered in status and polled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Protocol, TypeVar

import msgspec

from apis.teardown import Policy
from providers.external.credential import Credential, Login
from providers.external.observation import Absent, Change, Found, Observed, Present, SpecT
from providers.external.ownership import Owner
from runtime.errors import Conflict


@dataclass(frozen=True, slots=True)
class Operation:
    """A change that the cloud carries out over time, by the cloud's own name for it."""

    id: str
    kind: str
    started_at: datetime


SpecT_contra = TypeVar("SpecT_contra", bound=msgspec.Struct, contravariant=True)


class FenceClosed(Conflict):
    """The time or the leadership under which a call was planned is over: nothing was sent."""


@dataclass(frozen=True, slots=True)
class Fence:
    """Until when, on the monotonic clock, and under which leadership calls may start."""

    until: float
    leads: Callable[[], bool]
    monotonic: Callable[[], float]

    def check(self) -> None:
        """Raise FenceClosed when no call may start any more."""
        if self.monotonic() >= self.until or not self.leads():
            raise FenceClosed("the time for this call is over; looking again")


@dataclass(frozen=True, slots=True)
class Target(Generic[SpecT]):
    """Which database is meant and whose it is.

    `active` is the login that is published, `retiring` one that still works for its grace; both may be empty.
    `coming` is the login whose password is on its way, `published` the password of `active`. `own_password` follows
    from whose the database is and is known to the provider alone: for a login that nobody else is given. `alternates`:
    the ProviderConfig asks for two logins where the cloud gives one.
    `incarnation` is the one that was Ready before, `leaving` tells that the resource is being deleted, `agreed` are the
    backups of others that the platform agreed to restore, `restore` the backup of its own that it begins with after it
    was lost. `address` is the resource as kubectl takes it.
    """

    name: str
    spec: SpecT
    owner: Owner
    hash: str
    active: str = ""
    retiring: str = ""
    coming: str = ""
    published: str = field(default="", repr=False)
    own_password: str = field(default="", repr=False)
    alternates: bool = False
    incarnation: str = ""
    leaving: bool = False
    agreed: tuple[str, ...] = ()
    restore: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A list of all that is ours: a mark by name that changes when anything did. `complete` is False on any doubt.

    `looks` are the marks of what the last look at each name saw, where a cloud knows them: what is listed as it was
    looked at is no news, and what was undone between two lists is. `owners` are the owners of all that is there, what
    was let go included, as far as the list shows them.
    """

    items: Mapping[str, str]
    complete: bool
    looks: Mapping[str, str] = field(default_factory=dict)
    owners: Mapping[str, Owner] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How an application reaches a database; `ca` is PEM, empty where the system's roots serve."""

    host: str
    port: int
    database: str
    sslmode: str
    ca: str = field(default="", repr=False)

    def __str__(self) -> str:
        """Return host and port, or that there is none yet."""
        return f"{self.host}:{self.port}" if self.host else "the database"


NO_ENDPOINT = Endpoint("", 0, "", "")


class ExternalClient(Protocol[SpecT]):
    """What every kind has: its objects in one account of a cloud; methods raise a Failure of runtime.errors."""

    async def observe(self, target: Target[SpecT]) -> Present[SpecT] | Absent:
        """Observe one object live."""

    async def create(self, target: Target[SpecT], credential: Credential, fence: Fence) -> Operation | None:
        """Create the object with its tags and login; what an interrupted create left is finished."""

    async def update(
        self, target: Target[SpecT], observed: Observed[SpecT], changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Make the changes true on this incarnation; the deferred ones by the cloud's own queue."""

    async def adopt(self, target: Target[SpecT], observed: Observed[SpecT], fence: Fence) -> None:
        """Write our tags onto an object that a person named."""

    async def release(self, target: Target[SpecT], observed: Observed[SpecT], fence: Fence) -> None:
        """Write into its tags that the object was let go."""

    async def delete(
        self, target: Target[SpecT], observed: Observed[SpecT] | None, policy: Policy, fence: Fence
    ) -> Operation | None:
        """Delete the object as the policy says, and what an interrupted create or delete left."""


class AccountClient(Protocol[SpecT_contra]):
    """What every kind asks of its account."""

    async def whoami(self) -> str:
        """Return the account that our credentials reach."""

    async def observe_all(self) -> Sweep:
        """List what is ours, to wake keys; nothing is decided on it."""

    async def find(self, owner: Owner) -> tuple[Found, ...]:
        """List the objects of the same claim under another identity; complete or a Failure."""

    def objection(self, spec: SpecT_contra) -> tuple[str, str] | None:
        """Return reason and sentence when this account cannot serve such a spec. Pure."""

    def advice(self) -> str:
        """Return what the platform team should know about this account, empty when nothing. Pure."""


class Logins(Protocol[SpecT]):
    """What a kind has to which people log in."""

    async def set_password(
        self, target: Target[SpecT], observed: Observed[SpecT], credential: Credential, fence: Fence
    ) -> Operation | None:
        """Give a login its password, creating the login where logins are ours to create."""

    async def login(self, target: Target[SpecT], credential: Credential) -> Login:
        """Try a login as an application would."""

    async def disable(self, target: Target[SpecT], username: str, fence: Fence) -> None:
        """Take a former login away."""

    def endpoint(self, target: Target[SpecT]) -> Endpoint:
        """Return how an application reaches the database."""


class Backups(Protocol[SpecT]):
    """What a kind has whose data can be kept when it is deleted, and restored when it is lost."""

    async def backup_of(self, target: Target[SpecT]) -> str:
        """Return the newest backup that is available, of a leaving one the final backup; empty when there is none."""

    async def restorable(self, target: Target[SpecT]) -> tuple[str, ...]:
        """List the backups of a lost database that this namespace may restore under its name, the newest first."""


class Operations(Protocol):
    """What a kind has whose calls return operations."""

    async def poll(self, operation: Operation) -> bool:
        """Return whether an operation has ended well; one that failed is raised."""


@dataclass(frozen=True, slots=True)
class Clients(Generic[SpecT]):
    """What serves one kind in one account; what the kind does not have is None."""

    external: ExternalClient[SpecT]
    account: AccountClient[SpecT]
    logins: Logins[SpecT] | None = None
    backups: Backups[SpecT] | None = None
    operations: Operations | None = None
