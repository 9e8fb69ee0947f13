"""What the contract suite asks of a cloud under test: an adapter, and the passes that its clauses make.

An adapter shows and changes the cloud from its own side, and calls no code of the provider to find out what is true.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto
from typing import Any, ClassVar, Literal, TypeAlias

from providers.external.client import Account
from providers.external.ownership import Owner, identity_of
from providers.managed.record import envelope_of
from runtime.errors import Blocked, Failure, Terminal, Throttled
from runtime.objects import SECRETS, Key, Object
from runtime.results import Result
from tests.providers.gates import Gate, GatedKube
from tests.providers.world import World

Verb: TypeAlias = Literal["create", "update", "password", "delete", "observe", "list"]
Mode: TypeAlias = Literal["refused", "unanswered", "throttled", "forbidden", "absent", "invalid"]
"""What becomes of a call: an error of the server, its effect without an answer, 429, 403, 404, 400."""
PREFIX = "fl-"


class Property(Enum):
    """What a cloud has, and others have not: clauses about it are run for those that declare it."""

    TAGS = auto()
    """Its objects carry their owner."""
    BACKUPS = auto()
    """A deletion can leave a backup."""
    OPERATIONS = auto()
    """Its calls return operations."""
    CHILDREN = auto()
    """Its objects are inside one server, which takes one change at a time."""
    PAGES = auto()
    """A list has several pages, of which a later one may fail."""
    LAG = auto()
    """What was created is not shown at once."""
    NOT_FOUND = auto()
    """A single read may answer that an object is not there although it is."""
    ACCOUNTS = auto()
    """A second account is at hand, to which the credentials may lead."""
    LOSS = auto()
    """An edit of it may lose data."""
    AUTHORITY = auto()
    """The authority of an endpoint may be renewed."""
    STARTS = auto()
    """A stopped object is started where its spec wants it running."""
    LOGINS = auto()
    """People log in to its objects, with passwords: so it is where an adapter does not say otherwise."""
    DATA = auto()
    """Its objects hold data: what is lost is made again by nobody; another one of its name is known as another."""
    CREATES_ONLY = auto()
    """Its create never changes what is there already."""
    EDITS = auto()
    """Its fields can be changed after the create."""
    SERVERS = auto()
    """Its objects are inside servers whose tags say whose they are."""
    HALTS = auto()
    """The server of its objects may serve nobody, and may vanish."""
    INCARNATIONS = auto()
    """Each of its objects with data has an identity of its own, beside its name."""
    PROOFS = auto()
    """What turns up after a create without an answer is its own by proof alone."""


USUAL = frozenset({Property.DATA, Property.CREATES_ONLY, Property.EDITS, Property.INCARNATIONS, Property.PROOFS})
"""What a cloud has unless its adapter says that it `lacks` it."""


@dataclass(frozen=True, slots=True)
class ExternalObject:
    """One object as the cloud has it; `owner` is installation and identity of its tags, None without them."""

    name: str
    incarnation: str
    owner: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Drift:
    """A change that somebody else makes: what to call with the object's name, and the reason under which it is held.

    `is_there` returns whether the foreign value is there; what is put back has no `held`.
    """

    field: str
    change: Callable[[str], object]
    is_there: Callable[[str], bool]
    held: str = ""


@dataclass
class Adapter(ABC):
    """A cloud under test: its world, what it shows, and what can be done to it.

    `spec` is what a resource asks for beside its defaults, `edit` the `parameters` of an edit that is made at once, and
    empty without EDITS; `errors` are what failed observations answer, `loss` are the `parameters` of an edit that may
    lose data (LOSS), `policies` those under which a child stays (CHILDREN), `never_observed` the fields that no cloud
    shows. `has_logins` says whether people log in to its objects (LOGINS).
    Methods that belong to a `Property` are implemented by clouds that declare it.
    """

    properties: ClassVar[frozenset[Property]]
    lacks: ClassVar[frozenset[Property]] = frozenset()
    policies: ClassVar[tuple[str, ...]] = ("Snapshot", "Orphan")
    edit: ClassVar[Object] = {}
    spec: ClassVar[Object] = {}
    loss: ClassVar[Object] = {}
    never_observed: ClassVar[frozenset[str]] = frozenset()
    errors: ClassVar[tuple[Mode, ...]] = ("refused", "forbidden", "throttled")
    has_logins: ClassVar[bool] = True

    gate: Gate = field(default_factory=Gate)

    def __post_init__(self) -> None:
        self.kube = GatedKube(self.gate)
        self.world = self.new_world("process-1")
        self.worlds = [self.world]

    @abstractmethod
    def new_world(self, process: str) -> World:
        """Return a world over the same API server and cloud."""

    @abstractmethod
    def objects(self) -> Mapping[str, ExternalObject]:
        """Return all objects of the cloud by name, from the cloud's own state."""

    @abstractmethod
    def writes(self) -> list[str]:
        """Return the changing calls that reached the cloud since the last `forget`: verb and name."""

    @abstractmethod
    def forget(self) -> None:
        """Count calls from here on."""

    @abstractmethod
    def fail(self, verb: Verb, mode: Mode, times: int | None = 1) -> None:
        """Let the next calls go wrong; None is all of them until `heal`."""

    @abstractmethod
    def heal(self) -> None:
        """Take away all faults."""

    @abstractmethod
    def put(self, name: str, owner: tuple[str, ...] | None) -> None:
        """Create an object of that name as somebody else does, with the tags of an installation and an identity."""

    def give_server(self, owner: Owner | None) -> str:
        """Write whose the server of all objects is into its tags; return the server's name (SERVERS)."""
        raise NotImplementedError

    def calls_inside(self) -> list[str]:
        """Return the calls since the last `forget` that read or changed what is inside the server (SERVERS)."""
        raise NotImplementedError

    def halt_server(self, *, halted: bool) -> None:
        """Have the server of all objects serve nobody, or serve again (HALTS)."""
        raise NotImplementedError

    def take_server(self) -> None:
        """Have the server of all objects vanish (HALTS)."""
        raise NotImplementedError

    @abstractmethod
    def before_create(self, act: Callable[[], None]) -> None:
        """Call `act` once, when the next create has left the provider and did not arrive yet."""

    @abstractmethod
    def vanish(self, name: str) -> None:
        """Have somebody delete an object."""

    @abstractmethod
    def drifts(self) -> tuple[Drift, ...]:
        """Return a foreign change of each kind of field."""

    def pass_time(self, by: timedelta) -> None:
        """Let time pass in a cloud that has a clock of its own."""
        del by

    def strip_owner(self, name: str) -> None:
        """Have somebody take the owner off an object (TAGS)."""
        raise NotImplementedError

    def change_account(self) -> None:
        """Let the ProviderConfig's credentials lead to another account, which is empty (ACCOUNTS)."""
        raise NotImplementedError

    def backups(self) -> tuple[str, ...]:
        """List the backups of deleted objects (BACKUPS)."""
        raise NotImplementedError

    def refuse_backups(self) -> None:
        """Take no backup from now on (BACKUPS)."""
        raise NotImplementedError

    def operations(self) -> Mapping[str, bool]:
        """Return every operation since the start, and whether its end was read (OPERATIONS)."""
        raise NotImplementedError

    def overlaps(self) -> list[str]:
        """Return the changing calls that met an open operation of their turn (OPERATIONS)."""
        raise NotImplementedError

    def fail_operations(self, verb: Verb, sentence: str) -> None:
        """Let operations of a verb be accepted, have no effect and fail from now on (OPERATIONS)."""
        raise NotImplementedError

    def lose_operations(self) -> None:
        """Forget the handles of all operations, which go on (OPERATIONS)."""
        raise NotImplementedError

    def lag(self, by: timedelta) -> None:
        """Show what was created only after so long (LAG)."""
        raise NotImplementedError

    def delete_by_hand(self, name: str) -> None:
        """Have somebody delete an object by the cloud's API (LAG)."""
        raise NotImplementedError

    def renew_authority(self, pem: str) -> None:
        """Let endpoints be verified by another authority from now on (AUTHORITY)."""
        raise NotImplementedError

    def stop(self, name: str) -> None:
        """Have somebody stop an object (STARTS)."""
        raise NotImplementedError

    def is_running(self, name: str) -> bool:
        """Return whether an object runs (STARTS)."""
        raise NotImplementedError

    # What clauses do with it.

    def ask(self, name: str = "db", *, policy: str = "Delete", **spec: Any) -> Object:
        """Create or edit a resource as a person does; `parameters` are fields of `forProvider`."""
        return self.world.ask(name, **{**self.spec, "deletionPolicy": policy, **spec})

    def watch(self, name: str) -> None:
        """Have a person observe what has a name in the cloud, and say nothing else about it."""
        obj = self.ask(managementPolicy="Observe")
        self.kube.store(self.world.kind.resource, {**obj, "spec": {**obj["spec"], "forProvider": {}}})
        self.world.annotate(**{"external-name": name})

    def restart(self, *, after: timedelta = timedelta(seconds=30)) -> None:
        """Go on with another process, which begins when the time of its predecessor's calls is over."""
        now = self.world.now
        self.gate.open()
        self.world = self.new_world(f"process-{len(self.worlds) + 1}")
        self.worlds.append(self.world)
        self.world.now = now
        self.move_on(after)

    async def close(self) -> None:
        """Close the connections of all processes."""
        for world in self.worlds:
            for entry in world.accounts._entries.values():
                await entry.stack.aclose()

    def store_secret(self, name: str, values: Mapping[str, str]) -> None:
        """Store a Secret in the provider's own namespace."""
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        self.kube.store(SECRETS, {"metadata": {"name": name, "namespace": "fairlead-toy"}, "data": data})

    def allow_adoption(self) -> None:
        """Let the ProviderConfig allow to adopt what somebody else made."""
        resource = self.world.provider.config_resource
        config = deepcopy(self.kube.objects[resource, Key("", "default")])
        config["metadata"]["generation"] += 1
        config["spec"]["allowAdoption"] = True
        self.kube.store(resource, config)

    def move_on(self, by: timedelta) -> None:
        """Let time pass for everybody."""
        self.world.now += by
        self.pass_time(by)

    def external_name(self, name: str = "db") -> str:
        """Return the name in the cloud: the recorded one, else the one that a create would give."""
        obj = self.world.get(name) or {}
        recorded = obj["metadata"].get("annotations", {}).get("fairlead.dev/external-name")
        parameters = envelope_of(obj, self.world.kind.spec_type).for_provider
        by_rule = self.world.kind.naming.name(parameters, identity_of(obj), PREFIX)
        return str(recorded or by_rule)

    def own(self, name: str = "db") -> list[ExternalObject]:
        """List the objects that carry a resource's identity; of a cloud without tags those of its name."""
        uid = str((self.world.get(name) or {})["metadata"]["uid"])
        if Property.TAGS in self.properties:
            return [thing for thing in self.objects().values() if thing.owner == ("home", uid)]
        return [thing for thing in self.objects().values() if thing.name == self.external_name(name)]

    def creates(self) -> int:
        """Return how many creates reached the cloud since the last `forget`."""
        return sum(write.startswith("create ") for write in self.writes())

    def is_ready(self, name: str = "db") -> bool:
        """Return whether a resource is Ready, in sync, and nothing of it is under way."""
        reasons = self.world.reason("Ready", name), self.world.reason("Synced", name)
        status = (self.world.get(name) or {}).get("status", {})
        return reasons == ("Available", "InSync") and "operation" not in status

    def status(self, name: str = "db") -> Object:
        """Return the status of a resource."""
        status: Object = (self.world.get(name) or {}).get("status", {})
        return status

    def secret(self, name: str = "db") -> Object | None:
        """Return the credentials Secret of a resource."""
        return self.kube.objects.get((SECRETS, Key("team", f"{name}-credentials")))

    async def account(self) -> Account[Any]:
        """Return the client of the connected account."""
        self.world.feed()
        return (await self.world.accounts.connect("default")).clients.account

    async def step(self, name: str = "db") -> None:
        """Make a pass, and let the time pass until the next is due."""
        self.move_on(_due_after(await self.world.step(name)))

    async def until(self, goal: Callable[[], bool], name: str = "db", *, most: int = 100) -> None:
        """Make passes until a goal is reached."""
        for _ in range(most):
            if goal():
                return
            await self.step(name)
        raise AssertionError(f"not reached after {most} passes: {self.world.get(name)}")

    async def until_ready(self, name: str = "db", *, most: int = 100) -> None:
        """Make passes until the resource is Ready and in sync."""
        await self.until(lambda: self.is_ready(name), name, most=most)

    async def create(self, name: str = "db", *, policy: str = "Delete", **spec: Any) -> str:
        """Create a resource and its object; return the object's name, the calls forgotten."""
        self.ask(name, policy=policy, **spec)
        await self.until_ready(name)
        self.forget()
        return self.external_name(name)

    async def until_gone(self, name: str = "db", *, most: int = 100) -> None:
        """Make passes until the resource is gone."""
        await self.until(lambda: self.world.get(name) is None, name, most=most)

    async def pass_for(self, span: timedelta, name: str = "db") -> set[str]:
        """Make the passes that are due within a span; return the reasons of Synced that were seen."""
        end, reasons = self.world.now + span, set()
        while self.world.now < end:
            await self.step(name)
            reasons.add(self.world.reason("Synced", name))
        return reasons


def _due_after(result: Result | Failure) -> timedelta:
    """Return when the next pass is due: as it asks for, within five minutes as an event or the resync may bring it."""
    match result:
        case Result(requeue_after=timedelta() as after):
            return min(max(after, timedelta(seconds=1)), timedelta(minutes=5))
        case Throttled(after=after):
            return max(after, timedelta(seconds=1))
        case Result() | Terminal() | Blocked():
            return timedelta(minutes=1)
        case _:
            return timedelta(seconds=5)


Run: TypeAlias = Callable[[Any], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of the contract, and what a cloud must have for it to apply."""

    run: Run
    needs: frozenset[Property]

    @property
    def name(self) -> str:
        """The clause as a sentence."""
        return str(getattr(self.run, "__name__", ""))


CLAUSES: list[Clause] = []


def clause(*needs: Property) -> Callable[[Run], Run]:
    """Add a function to the contract."""

    def add(run: Run) -> Run:
        CLAUSES.append(Clause(run, frozenset(needs)))
        return run

    return add
