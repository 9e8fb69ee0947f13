"""What a cloud must implement, in the cloud's own words; all that its author writes.

Guarantees that the generic reconciler builds on:
- Nothing is guessed: `observe` answers Present or Absent from one typed answer; whatever else happened is raised as a
  Failure and becomes Unknown.
- A create writes the owner's tags by itself, so that a lost answer leads back to the same database.
- Update and delete take what was observed in this pass and refuse another incarnation (runtime.errors.Conflict).
- Every mutating call asks its fence in the sending thread, at the last moment before each request leaves.
- No call waits for minutes: a slow change returns an Operation, which is remembered in status and polled. While one is
  open, no other call is made to the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from apis.teardown import Policy
from providers.external.credential import Credential, TryLogin
from providers.external.observation import Absent, Change, FactsT, Observed, Predecessor, Present, SpecT
from providers.external.ownership import Owner
from runtime.errors import Blocked, Conflict, Terminal, Transient


@dataclass(frozen=True, slots=True)
class Operation:
    """A change that the cloud carries out over time, by the cloud's own name for it."""

    id: str
    kind: str


SpecT_contra = TypeVar("SpecT_contra", bound=msgspec.Struct, contravariant=True)


class FenceClosed(Conflict):
    """The time or the leadership under which a call was planned is over: nothing was sent."""


class ListLeftOut(Transient):
    """A list was left out this once to spare the account's budget: what was listed before counts while it is fresh."""


class NotCreated(Terminal):
    """A create met an object of that name, which nothing shows to be ours: somebody made it after our observation."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "NotOwned",
            f"{name} appeared before it could be created, and nothing shows that it was made for this resource; nothing"
            " is changed. Choose another name, or have it removed",
        )


class PushedAside(Blocked):
    """An operation ended without an effect as another change pushed it aside: it is sent again before long."""

    def __init__(self, message: str) -> None:
        super().__init__("CloudBusy", message)


class FailedOperation(NamedTuple):
    """Why an operation that the cloud accepted failed; `is_aside`: another change pushed it aside."""

    reason: str
    message: str
    is_aside: bool = False


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
    `incarnation` is the one that was Ready before, `leaving` says that the resource is being deleted, `only_observed`
    that it is looked at and no more, `is_new` that the object was made a moment ago, so that its absence may be an
    answer of before (`Absent.is_deleted`). `agreed` are the backups of others that the platform agreed to restore,
    `agreed_servers` the servers of others in which it agreed to this object. `siblings` are the specs of what was made
    of this kind for the same claim, where its kind asks for them
    (`Kind.names_siblings`). `restore` is the backup of its own that it begins with after it was lost. `address` is the
    resource as kubectl takes it; `is_by_rule` says that `name` follows from whose it is, and nobody chose it.
    `unanswered` is when a create of what carries no tag was sent that had no answer: what has the name since is ours
    where the cloud proves who made it, and then its observation has the resource's owner. `last_answer` is
    `Observed.answer` of the last look, where it is on record.
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
    only_observed: bool = False
    is_new: bool = False
    agreed: tuple[str, ...] = ()
    agreed_servers: tuple[str, ...] = ()
    siblings: tuple[SpecT, ...] = ()
    restore: str = ""
    address: str = ""
    is_by_rule: bool = False
    unanswered: datetime | None = None
    last_answer: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class ExternalList:
    """A list of all that is ours: a digest by name that changes when anything did. `complete` is False on any doubt.

    `last_seen` are the digests of what the last observation of each name saw, where a cloud knows them: what is listed
    as it was observed wakes nobody, and what was undone between two lists does. `owners` are the owners of all that is
    there, released ones included, as far as the list shows them. `tags` are those of what nobody is at work on, others'
    and released. `answers` are what the list answered about each name,
    encoded by the cloud, where that is as much as a look at it by itself answers (`Listed` reads them).
    """

    items: Mapping[str, str]
    complete: bool
    last_seen: Mapping[str, str] = field(default_factory=dict)
    owners: Mapping[str, Owner] = field(default_factory=dict)
    answers: Mapping[str, bytes] = field(default_factory=dict)
    tags: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class ExternalClient(Protocol[SpecT, FactsT]):
    """What every kind has: its objects in one account of a cloud; methods raise a Failure of runtime.errors."""

    async def observe(self, target: Target[SpecT]) -> Present[SpecT, FactsT] | Absent:
        """Observe one object live."""

    async def create(self, target: Target[SpecT], credential: Credential, fence: Fence) -> Operation | None:
        """Create the object with its tags and login; what an interrupted create left is finished.

        What carries no tag is ours by what was recorded before this call, so the call must fail where the name is
        taken: by a method that creates only, or by a precondition (`If-None-Match: *`, RFC 9110 section 13.1.2). Where
        a cloud has no such call, and its answer does not say what it did, the client looks once more right before it.
        One that had no answer makes nothing ours by itself (`Target.unanswered`).

        Raises:
            NotCreated: The cloud has an object of that name; what was recorded is forgotten.
        """

    async def update(
        self, target: Target[SpecT], observed: Observed[SpecT, FactsT], changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Make the changes true on this incarnation; the deferred ones by the cloud's own queue."""

    async def adopt(self, target: Target[SpecT], observed: Observed[SpecT, FactsT], fence: Fence) -> Operation | None:
        """Write our tags onto an object that a person named."""

    async def release(self, target: Target[SpecT], observed: Observed[SpecT, FactsT], fence: Fence) -> Operation | None:
        """Write into its tags that the object was released; nobody follows the operation."""

    async def delete(
        self, target: Target[SpecT], observed: Observed[SpecT, FactsT] | None, policy: Policy, fence: Fence
    ) -> Operation | None:
        """Delete the object as the policy says, and what an interrupted create or delete left."""


class Account(Protocol[SpecT_contra]):
    """What every kind asks of its account."""

    async def whoami(self) -> str:
        """Return the account that our credentials reach."""

    async def list(self) -> ExternalList:
        """List what is ours, to wake keys; nothing is decided on it."""

    async def find_predecessors(self, owner: Owner) -> tuple[Predecessor, ...]:
        """List the objects of the same claim under another identity; complete or a Failure."""

    def refusal(self, spec: SpecT_contra) -> tuple[str, str] | None:
        """Return reason and sentence when this account cannot serve such a spec. Pure."""

    def warnings(self) -> tuple[str, ...]:
        """Return what the platform team should know about this account, empty when nothing. Pure."""


class Logins(Protocol[SpecT, FactsT]):
    """What a kind has to which people log in."""

    async def set(
        self, target: Target[SpecT], observed: Observed[SpecT, FactsT], credential: Credential, fence: Fence
    ) -> Operation | None:
        """Set the password of a login, creating the login where logins are ours to create."""

    async def disable(
        self, target: Target[SpecT], observed: Observed[SpecT, FactsT], username: str, fence: Fence
    ) -> Operation | None:
        """Disable a former login."""


class Backups(Protocol[SpecT]):
    """What a kind has whose data can be kept when it is deleted, and restored when it is lost."""

    async def latest(self, target: Target[SpecT]) -> str:
        """Return the newest backup that is available, of a leaving one the final backup; empty when there is none."""

    async def restorable(self, target: Target[SpecT]) -> tuple[str, ...]:
        """List the backups of a lost database that this namespace may restore under its name, the newest first."""


class KeptBackup(NamedTuple):
    """A backup that outlives its database: by which name it is restored, whose, and the database's name.

    `taken_at`: of when its data are; `until`: when the cloud deletes it by itself (RFC 3339, empty where that is not
    known, or never). `size_gib` is 0 where the cloud does not say it.
    """

    name: str
    owner: Owner
    database: str
    taken_at: str = ""
    until: str = ""
    size_gib: int = 0


class Keeps(Protocol):
    """What a kind has whose cloud lists the backups of databases that are gone, too: asked on request alone."""

    async def kept(self) -> tuple[KeptBackup, ...]:
        """List the backups with an owner that can be restored, but for those that go with a living database."""


class Listed(Protocol[SpecT, FactsT]):
    """What a kind has whose lists answer as much about an object as a look at it by itself."""

    async def observe_listed(self, target: Target[SpecT], answer: bytes) -> Present[SpecT, FactsT] | None:
        """Observe one object by what was answered about it, without a call to the cloud; None where that is in doubt.

        `answer` is of `ExternalList.answers`, or `Observed.answer` of a look.
        """


class Owners(Protocol):
    """What a kind has whose lists show no tags: asked when somebody wants to know what has no resource."""

    async def owners(self, names: Iterable[str]) -> Mapping[str, Owner]:
        """Return the owners of what is there under these names and has one."""


class Strangers(Protocol):
    """What a kind has whose lists show only what is ours: asked when somebody looks for what could be taken over."""

    async def strangers(self) -> Mapping[str, Owner | None]:
        """Return the names of what nobody is at work on, with the owner of what was released or retired."""


class Contents(Protocol):
    """What a kind inside servers has whose cloud lists its objects server by server: asked on request alone."""

    async def contents(self, server: str) -> Collection[str]:
        """Return the names of what is inside a server, whoever made either, but for what the cloud itself makes."""


class ChangeLog(Protocol):
    """What a kind has whose lists show no object, but all changes of the account's objects: `Account.list` reads it.

    What was seen last of an object stands in its status, and counts as long as the log shows no change since. The kind
    is `Listed` too: by it what was seen is read.
    """

    def is_unchanged(self, name: str, since: datetime, now: datetime) -> bool:
        """Return whether nothing changed an object since a look at it began, by the last list; False on any doubt.

        Nor is one unchanged whose next look is due, as what changes without an entry in the log is seen by looks alone.
        """


class Operations(Protocol):
    """What a kind has whose calls return operations."""

    async def poll(self, operation: Operation) -> bool:
        """Return whether an operation has ended.

        One whose handle the cloud does not know any more has ended: the object's state decides what is left to do.

        Raises:
            PushedAside: It failed, and may succeed before long: it is sent again after pauses that double.
            Terminal, Blocked: It failed. The same work is not sent again for hours, unless a person edits something.
            Failure: Nothing was learnt; it is polled again, a day long.
        """


@dataclass(frozen=True, slots=True)
class Clients(Generic[SpecT, FactsT]):
    """What serves one kind in one account; what the kind does not have is None.

    `changes` makes what is in an object's status stand for a look at it (`ChangeLog`).
    `try_login` tries a login in place of `providers.external.login.try_login`, where a cloud knows which endpoints are
    unreachable.
    """

    external: ExternalClient[SpecT, FactsT]
    account: Account[SpecT]
    logins: Logins[SpecT, FactsT] | None = None
    backups: Backups[SpecT] | None = None
    operations: Operations | None = None
    try_login: TryLogin | None = None
    listed: Listed[SpecT, FactsT] | None = None
    changes: ChangeLog | None = None
    owners: Owners | None = None
    strangers: Strangers | None = None
    contents: Contents | None = None
    keeps: Keeps | None = None
