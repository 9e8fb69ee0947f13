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

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from apis.teardown import Policy
from providers.credentials.passwords import Login
from providers.external.observation import Absent, Change, Found, Observed, Present, SpecT
from providers.external.ownership import Identity, Owner
from providers.external.spec import Envelope
from providers.managed.record import Operation
from runtime.errors import Conflict, Transient
from runtime.objects import Object, Resource

ConfigT = TypeVar("ConfigT", bound=msgspec.Struct)


class FenceClosed(Conflict):
    """The time or the leadership under which a call was planned is over: nothing was sent."""


class ServerUnreachable(Transient):
    """The server that holds the databases cannot be reached, so that nobody is known to get in.

    Only a cloud whose account is that server raises it: elsewhere an API may be away while the databases work.
    """


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
class Credential:
    """A login and its password; never printed."""

    username: str
    password: str = field(repr=False)


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


@dataclass(frozen=True, slots=True)
class Rate:
    """How many calls to one account may begin within a second, over all workers."""

    reads_per_second: float = 20.0
    writes_per_second: float = 5.0


class Cloud(Protocol[SpecT]):
    """One account of a cloud, connected; every method may raise a Failure of runtime.errors."""

    async def whoami(self) -> str:
        """Return the account that our credentials reach."""

    async def observe(self, target: Target[SpecT]) -> Present[SpecT] | Absent:
        """Read one database live."""

    async def observe_all(self) -> Sweep:
        """List what is ours, to wake keys; nothing is decided on it."""

    async def find(self, owner: Owner) -> tuple[Found, ...]:
        """Search for databases of the same claim under another identity; complete or a Failure."""

    async def create(self, target: Target[SpecT], credential: Credential, fence: Fence) -> Operation | None:
        """Make the database with its tags and login; what an interrupted create left is finished."""

    async def update(
        self, target: Target[SpecT], observed: Observed[SpecT], changes: tuple[Change, ...], fence: Fence
    ) -> Operation | None:
        """Make the changes true on this incarnation; the deferred ones by the cloud's own queue."""

    async def set_password(
        self, target: Target[SpecT], observed: Observed[SpecT], credential: Credential, fence: Fence
    ) -> Operation | None:
        """Give a login its password, making the login where logins are ours to make."""

    async def login(self, target: Target[SpecT], credential: Credential) -> Login:
        """Try a login as an application would."""

    async def disable(self, target: Target[SpecT], username: str, fence: Fence) -> None:
        """Take a former login away."""

    async def adopt(self, target: Target[SpecT], observed: Observed[SpecT], fence: Fence) -> None:
        """Write our tags onto a database that a person named."""

    async def release(self, target: Target[SpecT], observed: Observed[SpecT], fence: Fence) -> None:
        """Say in its tags that the database was let go."""

    async def backup_of(self, target: Target[SpecT]) -> str:
        """Return the newest backup that is available, of a leaving one the final backup; empty when there is none."""

    async def restorable(self, target: Target[SpecT]) -> tuple[str, ...]:
        """Return the backups of a lost database that this namespace may restore under its name, the newest first."""

    async def delete(
        self, target: Target[SpecT], observed: Observed[SpecT] | None, policy: Policy, fence: Fence
    ) -> Operation | None:
        """Take the database away as the policy says, and what an interrupted create or delete left."""

    async def poll(self, operation: Operation) -> bool:
        """Tell whether an operation has ended well; one that failed is raised."""

    def endpoint(self, target: Target[SpecT]) -> Endpoint:
        """Return how an application reaches the database."""

    def objection(self, spec: SpecT) -> tuple[str, str] | None:
        """Return reason and sentence when this account cannot serve such a spec. Pure."""

    def advice(self) -> str:
        """Return what the platform team should know about this account, empty when nothing. Pure."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A field that names another managed resource of the namespace; both by their names in the model.

    `into` is left to the reference when it is unset; `shown` is its name in `status.resolved`.
    """

    field: str
    into: str
    shown: str
    resource: Resource


@dataclass(frozen=True, slots=True)
class Provider(Generic[SpecT, ConfigT]):
    """The one name that a cloud exports: its kinds, its models, its pure rules and how to connect.

    `secrets` names the Secrets of the provider's own namespace that a ProviderConfig needs; `connect` gets
    their data, and the account that was recorded (empty at first): another one is refused before anything is written.
    `external_name` makes the name by rule from spec, identity and the ProviderConfig's namePrefix.
    `hash_of` finds the hash that an external name by rule carries, empty for any other name.
    `guarded` are the differences from what the provider keeps true whatever the spec says.
    `endpoint_of` is the URL that a ProviderConfig names instead of the cloud's own, empty for none.
    `view` makes this kind's Cloud of what `connect` yields, and `beside` are further kinds that share connection,
    ProviderConfigs and budgets. A `slow` cloud carries changes out after its answer and
    may not show them at once. `born_with_login` tells whether a create sets the published password, which a
    restore does not. `administrator` is the login that the cloud makes, where it may have been published before there
    were two; empty where that never is. `references` are fields that name another managed resource, each with the
    field that takes what it resolves to. `shows_passwords` tells whether a version of `login_versions` changes with a
    password that anybody sets; where it does not, logins are proven anew at each resync. A kind that is not
    `stateful` has no password and no backup, and is made again when it is lost. `probe`, where the account is the
    server that holds the databases, tries a login there with what `connect` yielded and raises ServerUnreachable; it is
    called every few seconds, once for each ProviderConfig in use.
    """

    cloud: str
    resource: Resource
    config_resource: Resource
    spec_type: type[Envelope]
    config_type: type[ConfigT]
    translator: int
    policies: frozenset[Policy]
    external_name: Callable[[SpecT, Identity, str], str]
    hash_of: Callable[[SpecT, str], str]
    logins: Callable[[Target[SpecT]], tuple[str, str]]
    guarded: Callable[[Target[SpecT], Observed[SpecT]], tuple[Change, ...]]
    classify: Callable[[Change, Observed[SpecT]], Change]
    login_versions: Callable[[Observed[SpecT]], Mapping[str, str]]
    secrets: Callable[[ConfigT], tuple[str, ...]]
    connect: Callable[[ConfigT, Mapping[str, Mapping[str, str]], str], AbstractAsyncContextManager[Any]]
    rate: Rate = Rate()
    window_open: Callable[[Observed[SpecT], datetime], bool] = lambda _seen, _now: False
    endpoint_of: Callable[[ConfigT], str] = lambda _config: ""
    view: Callable[[Any], Cloud[SpecT]] = lambda connected: connected
    beside: tuple[Provider[Any, ConfigT], ...] = ()
    slow: bool = False
    references: tuple[Reference, ...] = ()
    born_with_login: Callable[[Target[SpecT]], bool] = lambda _target: True
    administrator: Callable[[Target[SpecT]], str] = lambda _target: ""
    stateful: bool = True
    shows_passwords: bool = True
    probe: Callable[[Any], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class Account(Generic[SpecT, ConfigT]):
    """A connected cloud: `id` is who it said it is, `changed` what to say when that is not who it was."""

    cloud: Cloud[SpecT]
    config: ConfigT
    config_object: Object
    id: str
    changed: str = ""

    @property
    def login_required(self) -> bool:
        """Whether a password counts only after a login: `loginCheck` of the ProviderConfig."""
        return (self.config_object.get("spec") or {}).get("loginCheck") == "Required"


def decode_config(provider: Provider[Any, ConfigT], spec: dict[str, Any]) -> ConfigT:
    """Read a ProviderConfig's spec; raises msgspec.ValidationError."""
    return msgspec.convert(spec, provider.config_type)
