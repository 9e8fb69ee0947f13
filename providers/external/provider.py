"""The one name that a cloud exports: what it is, and how to connect to an account of it. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar

import msgspec

from apis.names import CONSENT
from providers.external.client import Clients, Target
from providers.external.metering import Meter
from providers.external.observation import Change, FactsT, Observed, SpecT
from providers.external.ownership import Identity
from providers.external.spec import Envelope
from runtime.objects import Object, Resource

ConfigT = TypeVar("ConfigT", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Rate:
    """How many requests to one account may begin within a second, over all ProviderConfigs that reach it.

    `burst` is how long requests that were not made are saved up: those of so much time may begin at once.
    """

    reads_per_second: float = 20.0
    writes_per_second: float = 5.0
    burst: timedelta = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Intervals:
    """How often a cloud is read, and for how long it may lag; the flags of a process override each.

    Each resource is reconciled every `resync`, also when nothing happened. Each account is listed every `sweep`: within
    it a change that somebody else made is seen. For `settle` after it accepted a change the cloud may show nothing of
    it, in its lists either.
    """

    resync: timedelta = timedelta(minutes=10)
    sweep: timedelta = timedelta(seconds=30)
    settle: timedelta = timedelta(seconds=60)
    unlisted: timedelta | None = None


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
class LoginRules(Generic[SpecT, FactsT]):
    """The pure rules of a kind to which people log in.

    `names` are the two logins that take turns, or twice the same. `versions` are the versions of the logins' rows;
    `shows_passwords` says whether one changes with a password that anybody sets; where it does not, logins are proven
    anew at each resync. `set_by_create` says whether a create sets the published password, which a restore does not.
    `administrator` is the login that the cloud makes, where it may have been published before there were two; empty
    where that never is. `missing_database` is the sentence for a login that was accepted to a database that does not
    exist; empty where that ends by itself. `applies` says whether a spec asks for a login with a password at all.
    """

    names: Callable[[Target[SpecT]], tuple[str, str]]
    versions: Callable[[Observed[SpecT, FactsT]], Mapping[str, str]]
    administrator: Callable[[Target[SpecT]], str] = lambda _target: ""
    set_by_create: Callable[[Target[SpecT]], bool] = lambda _target: True
    missing_database: Callable[[Target[SpecT], str], str] = lambda _target, _database: ""
    shows_passwords: bool = True
    applies: Callable[[SpecT], bool] = lambda _spec: True


@dataclass(frozen=True, slots=True)
class Naming(Generic[SpecT]):
    """The names of a kind in its cloud.

    `name` makes the name by rule from spec, identity and the ProviderConfig's namePrefix; `hash_in` finds the hash that
    a name by rule carries, empty for any other name. `fields` are those of the spec that a name in the cloud says.
    """

    name: Callable[[SpecT, Identity, str], str]
    hash_in: Callable[[SpecT, str], str]
    fields: Callable[[str], Mapping[str, Any]] = lambda _name: {}

    def filled(self, spec: SpecT, name: str) -> SpecT:
        """Return a spec with what the name in the cloud says, where the spec leaves it out."""
        named = {field: value for field, value in self.fields(name).items() if not getattr(spec, field)}
        return msgspec.structs.replace(spec, **named) if named else spec


@dataclass(frozen=True, slots=True)
class Revival:
    """How a cloud brings a deleted database back: for how long after its deletion, and its own command for it."""

    period: timedelta
    command: str


@dataclass(frozen=True, slots=True)
class Kind(Generic[SpecT, FactsT]):
    """One kind of managed resource of a cloud: its model, its pure rules, and its clients.

    `invariants` are the differences from what the provider keeps true whatever the spec says, `classify` says what a
    change does to those who use the database. `projection` is raised whenever the same answer of the cloud would be
    read differently. `clients` makes this kind's clients of what the provider's `connect` yields. `logins` are None
    where nobody logs in. `outage` is for how long a change that interrupts does so, in words, empty where the cloud
    says nothing. `next_window` is when the maintenance window opens next, `now` itself while it is open, None where
    there is none. A kind that is not `stateful` holds no data, and is made again when it is lost. An
    `asynchronous` cloud carries changes out after its answer and may not show them at once. `references` are fields
    that name another managed resource, each with the field that takes what it resolves to. `server_of` is the name in
    the cloud of the server that carries an object's changes out, one operation at a time for all that it serves; empty
    while it is not known, None where no two changes meet. What is `inside` a server stays in it: only the policy Delete
    deletes it. What is not `tagged` cannot carry its owner: it is ours by the record that was made before its create.
    Endpoints that are `verified_by_config` have their certificates from the ProviderConfig and not from an answer: a
    list of before shows those of now.
    `revival` is how a person has the cloud bring back what was deleted, None where it keeps nothing of it. `contents`
    are kinds whose objects refer to one of this kind, and of which each that is not Ready has it looked at anew.
    `names_siblings` says whether a spec names others of this kind, which have to be of the same claim.
    `read_answer` reads what was answered (`Observed.answer`) for a target without a call; None where the fields of the
    spec say all that decisions about it read. `refusal` is why a ProviderConfig, or the cloud at once, allows no such
    spec: reason and sentence, from the spec, the ProviderConfig's and `status.atProvider`, which is empty of a new one.
    `is_ownership` says whether a change is what an adoption writes itself: whose the thing is; `adopted` is what else
    it does to what was observed.
    """

    resource: Resource
    spec_type: type[Envelope]
    projection: int
    naming: Naming[SpecT]
    invariants: Callable[[Target[SpecT], Observed[SpecT, FactsT]], tuple[Change, ...]]
    clients: Callable[[Any], Clients[SpecT, FactsT]]
    classify: Callable[[Change, Observed[SpecT, FactsT]], Change] = lambda change, _observed: change
    logins: LoginRules[SpecT, FactsT] | None = None
    outage: Callable[[Change, Observed[SpecT, FactsT]], str] = lambda _change, _observed: ""
    next_window: Callable[[Observed[SpecT, FactsT], datetime], datetime | None] = lambda _observed, _now: None
    references: tuple[Reference, ...] = ()
    stateful: bool = True
    asynchronous: bool = False
    server_of: Callable[[Target[SpecT]], str] | None = None
    inside: bool = False
    tagged: bool = True
    verified_by_config: bool = False
    revival: Revival | None = None
    contents: tuple[Kind[Any, Any], ...] = ()
    names_siblings: Callable[[SpecT], bool] = lambda _spec: False
    read_answer: Callable[[bytes, Target[SpecT]], Observed[SpecT, FactsT]] | None = None
    refusal: Callable[[SpecT, Any, Object], tuple[str, str] | None] = lambda _spec, _config, _at_provider: None
    adopted: Callable[[Observed[SpecT, FactsT]], tuple[Change, ...]] = lambda _observed: ()
    is_ownership: Callable[[Change], bool] = lambda change: change.path[-1].startswith("fairlead-")

    @property
    def doubts_creates(self) -> bool:
        """Whether what turns up after a create without an answer may be another's: no tag, but data or logins."""
        return not self.tagged and (self.stateful or self.logins is not None)


@dataclass(frozen=True, slots=True)
class RecordedAccount:
    """The account that holds the databases of a ProviderConfig, as its status says; `id` is empty at first.

    `accept` returns the command by which a person accepts the account of an id in its place.
    """

    id: str = ""
    accept: Callable[[str], str] = lambda account: f"{CONSENT}=account={account}"


NO_ACCOUNT: Final = RecordedAccount()


@dataclass(frozen=True, slots=True)
class Provider(Generic[ConfigT]):
    """The one name that a cloud exports: what belongs to the cloud, how to connect, and its kinds.

    `secrets` names the Secrets of the provider's own namespace that a ProviderConfig needs; `connect` gets
    their data, the account that was recorded (another one is refused before anything is written), and the meter that
    each request to the account passes through. `rate` is that of an account, or of a part of it that has a quota of its
    own: `quota_of` is which part a ProviderConfig uses, as a region. `intervals` say how often it is read.
    `endpoint_of` is the URL that a ProviderConfig names instead of the cloud's own, empty for none. All `kinds` share
    connection, ProviderConfigs and rate; the first one says whose account it is. `probe`, where the account is the
    server that holds the databases, tries a login there with what `connect` yielded and raises ServerUnreachable; it is
    called every few seconds, once for each ProviderConfig in use.
    """

    cloud: str
    config_resource: Resource
    config_type: type[ConfigT]
    secrets: Callable[[ConfigT], tuple[str, ...]]
    connect: Callable[
        [ConfigT, Mapping[str, Mapping[str, str]], RecordedAccount, Meter], AbstractAsyncContextManager[Any]
    ]
    kinds: tuple[Kind[Any, Any], ...]
    rate: Rate = Rate()
    quota_of: Callable[[ConfigT], str] = lambda _config: ""
    intervals: Intervals = Intervals()
    endpoint_of: Callable[[ConfigT], str] = lambda _config: ""
    probe: Callable[[Any], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class ConnectedAccount(Generic[SpecT, ConfigT]):
    """A connected account as one kind sees it: `id` is who it is, `changed` what to say when that was another one."""

    clients: Clients[SpecT, Any]
    config: ConfigT
    config_object: Object
    id: str
    changed: str = ""

    @property
    def login_required(self) -> bool:
        """Whether a password counts only after a login."""
        return self.login_check == "Required"

    @property
    def login_check(self) -> str:
        """Return `loginCheck` of the ProviderConfig: Auto, Required or Off."""
        return str((self.config_object.get("spec") or {}).get("loginCheck", "Auto"))


def decode_config(provider: Provider[ConfigT], spec: dict[str, Any]) -> ConfigT:
    """Read a ProviderConfig's spec; raises msgspec.ValidationError."""
    return msgspec.convert(spec, provider.config_type)
