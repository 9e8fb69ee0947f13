"""What a managed database is to us: seen, absent, unknown, remembered, and different. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, Generic, TypeAlias, TypeVar

import msgspec

from providers.external.endpoint import NO_ENDPOINT, Endpoint
from providers.external.ownership import Owner
from runtime.errors import Blocked, Failure, Terminal, Throttled, Transient
from runtime.objects import Object

SpecT = TypeVar("SpecT", bound=msgspec.Struct)
FactsT = TypeVar("FactsT")
Value: TypeAlias = str | int | bool | tuple[str, ...] | None
SERVER_NOT_OWNED: Final = "AdoptionRefused"
"""The reason of what is unknown since its server is not this namespace's."""
OID_MARK: Final = "@"
"""What stands before the oid in the incarnation of a database to which its cloud gives no id."""
Path: TypeAlias = tuple[str, ...]
"""Where a difference is, segment by segment: a name in it is an element of its own, whatever characters it holds."""
RESTART: Final[Path] = ("restart",)
"""The path of the change that restarts a database, for what takes effect with a restart alone."""
Keys: TypeAlias = Mapping[str, tuple[str, ...]]
"""Keys of maps, by the map's path below forProvider."""


class Class(Enum):
    """What a change does to those who use the database."""

    ONLINE = "online"
    RESTART = "restart"
    LOCKOUT = "lockout"
    LOSS = "loss"


class Phase(Enum):
    """What the cloud lets us do with a database now; FAILED is usable by nobody and takes no change."""

    READY = "ready"
    BUSY = "busy"
    STOPPED = "stopped"
    FAILED = "failed"


class Queue(Enum):
    """How a change stands to the cloud's own queue of what waits for the maintenance window.

    NONE: the cloud makes it whenever it is sent. OPEN: it may be handed to the queue and is not there. WAITING: the
    queue holds the wanted value. CANCEL: the database is as wanted, and the queue holds something else.
    """

    NONE = "none"
    OPEN = "open"
    WAITING = "waiting"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: `path` below forProvider, or of an invariant that the provider keeps by itself.

    Whoever needs a name takes it from its own segment; `shown` is for people, and is never split again.

    `veto` is the reason and the sentence why it cannot be sent as things are; None when it can. `deferred`: it is
    to be handed to the cloud's own queue. `along` is the path of another change without which the cloud refuses it; one
    that is `alone` is refused beside any other in the same request. `starts`: it starts a database that is stopped.
    `first`: nobody took it away, it never was there, so that to make it corrects nothing.
    """

    path: Path
    want: Value
    have: Value
    kind: Class = Class.ONLINE
    queue: Queue = Queue.NONE
    veto: tuple[str, str] | None = None
    deferred: bool = False
    along: Path = ()
    alone: bool = False
    starts: bool = False
    first: bool = False

    @property
    def shown(self) -> str:
        """The path for people: its segments joined by dots."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class Observed(Generic[SpecT, FactsT]):
    """One database as a single answer of the cloud showed it.

    `incarnation` is the cloud's own id of this very database, and `earlier_ids` are others under which it may have been
    recorded; `facts` is what only its provider understands;
    `at_provider` what people see in status; `state` the cloud's own word for how it is, `remedy` what ends it where
    nobody can use it so, and `deadline` after how long in it a person should look. `usable` says whether logins
    may work meanwhile, `pending` which fields the cloud's own queue holds, `password_pending` that a password which was
    sent does not yet count, `password_elsewhere` that another keeper of passwords took it over, `restart` what waits
    for a restart that nobody begins by itself. `tolerated` are differences that `spec` does not show, as nobody is to
    undo them: a later minor version, grown storage. `endpoint` is how an application reaches it, without a host where
    the cloud shows none and where nobody logs in. `incomplete`: a part could not be read, as no session with the server
    came about; nothing is known to differ there, and it is read again before the resync. `expected` is how long the
    present state of a cloud at work is known to take in all, None where that is not known. `answer` is what was
    answered, encoded, where a list answers as much (`providers.external.client.Listed`) or where it counts until a
    change (`ChangeLog`).
    """

    name: str
    incarnation: str
    owner: Owner | None
    phase: Phase
    spec: SpecT
    facts: FactsT
    at_provider: Object
    state: str = ""
    remedy: str = ""
    deadline: timedelta = timedelta(minutes=10)
    usable: bool = True
    pending: tuple[str, ...] = ()
    password_pending: bool = False
    password_elsewhere: bool = False
    restart: str = ""
    tolerated: tuple[Change, ...] = ()
    earlier_ids: tuple[str, ...] = ()
    endpoint: Endpoint = NO_ENDPOINT
    incomplete: bool = False
    expected: timedelta | None = None
    answer: bytes = field(default=b"", repr=False)

    def is_recorded_as(self, incarnation: str) -> bool:
        """Return whether this very database was recorded under an incarnation."""
        return incarnation in {self.incarnation, *self.earlier_ids}


@dataclass(frozen=True, slots=True)
class Present(Generic[SpecT, FactsT]):
    """The cloud showed the database."""

    observed: Observed[SpecT, FactsT]


@dataclass(frozen=True, slots=True)
class Absent:
    """The cloud said, by its typed answer, that no such database exists.

    `remains` says that an interrupted create or delete of ours left something else behind; `renamed` is the name under
    which the database lives on, where somebody gave it another one: then it is not gone. `recorded` is the incarnation
    of a finished database of this owner that the cloud itself remembers, where the resource records another or none.
    `is_deleted`: the cloud's record of what was done shows that it was deleted, so that this is no answer of before.
    """

    remains: bool = False
    renamed: str = ""
    recorded: str = ""
    is_deleted: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nothing was learnt; nothing is created, deleted or released on it. `reason` is a condition reason."""

    reason: str
    message: str


Observation: TypeAlias = Present[SpecT, Any] | Absent | Unknown


@dataclass(frozen=True, slots=True)
class Predecessor:
    """A database of the same claim under another identity."""

    name: str
    incarnation: str
    owner: Owner


@dataclass(frozen=True, slots=True)
class Converged:
    """The last state in which nothing was left to do."""

    generation: int
    spec_hash: str
    observed_hash: str
    projection: int


@dataclass(frozen=True, slots=True)
class ExternalRef:
    """What we remember of a resource across crashes; annotations and status, either counts.

    `former_name` is the name under which the incarnation was seen, where somebody wrote another one since. `restoring`
    is the backup from which the incarnation `lost` is being restored, in status alone: until the restored
    one is seen, no incarnation counts. `applied_keys`, in status alone, are the keys that the spec set in maps which
    others write as well: without it they are left where they are.
    """

    external_name: str = ""
    incarnation: str = ""
    account: str = ""
    converged: Converged | None = None
    absent_since: datetime | None = None
    restoring: str = ""
    lost: str = ""
    applied_keys: Keys = field(default_factory=dict)
    former_name: str = ""


def is_known_as(known: str, recorded: str) -> bool:
    """Return whether a database was recorded under what its cloud knows it by, with the oid of then or without one."""
    return recorded == known or recorded.startswith(f"{known}{OID_MARK}")


def digest(value: object) -> str:
    """Return 16 hex characters that stand for a value; equal values give equal text."""
    encoded = msgspec.json.encode(value, order="deterministic", enc_hook=repr)
    return hashlib.sha256(encoded).hexdigest()[:16]


def describe(value: Value) -> str:
    """Write a value for people, cut to 256 characters."""
    match value:
        case None:
            return "unset"
        case tuple():
            return ", ".join(value)[:256]
        case _:
            return str(value)[:256]


def renamed_text(name: str, now: str) -> str:
    """Return what to say of a database that is to be deleted and has another name."""
    return f"database {name} is not gone: it is called {now} now; rename it back, or drop it"


def unknown_of(failure: Failure) -> Unknown:
    """Turn a failed read into what it teaches about the database: nothing."""
    match failure:
        case Terminal(reason=reason, message=message) | Blocked(reason=reason, message=message):
            return Unknown(reason, message)
        case Throttled():
            return Unknown("Throttled", str(failure))
        case ServerUnreachable():
            return Unknown("ServerUnreachable", str(failure))
        case _:
            return Unknown("CloudUnreachable", str(failure))


class ServerNotOwned(Terminal):
    """The server that an object is to be inside of is not this namespace's: nothing inside it was read or changed."""

    def __init__(self, message: str) -> None:
        super().__init__(SERVER_NOT_OWNED, message)


class ServerUnreachable(Transient):
    """The server that holds the databases cannot be reached, so that nobody is known to get in.

    Only a cloud whose account is that server raises it: elsewhere an API may be away while the databases work.
    """
