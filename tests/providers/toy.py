"""A cloud of toys: slow, failing at will, with logins and incarnations; it keeps its databases in a dictionary."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any, TypeAlias

import msgspec

from apis.teardown import Policy
from providers.external.client import Clients, ExternalList, Fence, Operation, Target
from providers.external.credential import NO_ANSWER, Credential, Login, LoginAnswer
from providers.external.diff import Compare, compared
from providers.external.endpoint import VERIFIED, Endpoint
from providers.external.metering import Meter
from providers.external.observation import Absent, Change, Class, Observed, Phase, Predecessor, Present
from providers.external.ownership import Owner
from providers.external.provider import Kind, LoginRules, Naming, Provider, Rate, RecordedAccount
from providers.external.spec import DatabaseEnvelope
from runtime.objects import Resource

TOYS = Resource("toy.example.org", "v1", "Toy", "toys")
CONFIGS = Resource("toy.example.org", "v1", "ProviderConfig", "providerconfigs", namespaced=False)
START = datetime(2026, 11, 21, 12, tzinfo=UTC)


class ToyParameters(msgspec.Struct, frozen=True):
    size: int | None = None
    tags: Annotated[dict[str, str], compared(Compare.SUB_MAP)] | None = None


class ToySpec(DatabaseEnvelope, frozen=True, rename="camel", kw_only=True):
    for_provider: ToyParameters


class ToyConfig(msgspec.Struct, frozen=True):
    pass


Seen: TypeAlias = Observed[ToyParameters, None]


@dataclass
class Toy:
    """One database of the toy cloud; it is busy for so many looks, and `ca` proves that it is it who answers."""

    incarnation: str
    owner: Owner | None
    size: int | None
    passwords: dict[str, str] = field(default_factory=dict)
    busy: int = 0
    released: bool = False
    tags: dict[str, str] = field(default_factory=dict)
    ca: str = ""


@dataclass
class ToyCloud:
    """Implements all protocols of `providers.external.client`.

    `slow` is how many looks a change takes, `faults` fail the next calls; while it is `rebooting` nothing takes logins.
    """

    slow: int = 0
    rebooting: bool = False
    toys: dict[str, Toy] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    faults: list[tuple[str, BaseException, bool]] = field(default_factory=list)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    leaving: set[str] = field(default_factory=set)
    account: str = "account-1"
    lists: int = 0
    own_backups: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def _fails(self, call: str, *, done: bool) -> None:
        for fault in tuple(self.faults):
            name, failure, after = fault
            if name == call and after is done:
                self.faults.remove(fault)
                raise failure

    def _takes_effect(self, kind: str) -> bool:
        """Return whether a change of a kind does anything; it is accepted in any case."""
        return bool(kind)

    def _changed(self, kind: str, name: str) -> Operation | None:
        is_long = self.slow and kind in {"Create", "Update", "Delete"}
        return Operation(f"{kind}/{name}", kind) if is_long else None

    async def whoami(self) -> str:
        return self.account

    async def observe(self, target: Target[ToyParameters]) -> Present[ToyParameters, Any] | Absent:
        await self.looked(target)
        self._fails("observe", done=False)
        toy = self.toys.get(target.name)
        if toy is None:
            return Absent()
        phase = Phase.BUSY if toy.busy else Phase.READY
        self._progress(target.name)
        seen = Observed(
            target.name, toy.incarnation, toy.owner, phase, ToyParameters(toy.size, dict(toy.tags)), None, {}
        )
        seen = replace(seen, usable=not self.rebooting, endpoint=self.endpoint(target.name))
        return Present(self.shown(target, seen))

    async def looked(self, target: Target[ToyParameters]) -> None:
        """Do what a cloud does before it answers a look."""

    def shown(self, _target: Target[ToyParameters], observed: Seen) -> Seen:
        """Return what a cloud shows of a database."""
        return observed

    async def list(self) -> ExternalList:
        self.lists += 1
        return ExternalList({name: repr(toy) for name, toy in self.toys.items()}, complete=True)

    async def find_predecessors(self, owner: Owner) -> tuple[Predecessor, ...]:
        predecessors = [
            (name, toy) for name, toy in self.toys.items() if toy.owner is not None and toy.owner.precedes(owner)
        ]
        return tuple(
            Predecessor(name, toy.incarnation, toy.owner) for name, toy in predecessors if toy.owner is not None
        )

    async def create(self, target: Target[ToyParameters], credential: Credential, fence: Fence) -> Operation | None:
        fence.check()
        self._fails("create", done=False)
        self.calls.append(f"restore {target.restore}" if target.restore else "create")
        if target.name not in self.toys and self._takes_effect("Create"):
            toy = Toy(f"incarnation-{next(self.numbers)}", target.owner, target.spec.size, busy=self.slow)
            toy.passwords[credential.username] = credential.password
            toy.tags = dict(target.spec.tags or {})
            self.toys[target.name] = toy
        self._fails("create", done=True)
        return self._changed("Create", target.name)

    async def update(
        self,
        target: Target[ToyParameters],
        observed: Seen,
        changes: tuple[Change, ...],
        fence: Fence,
    ) -> Operation | None:
        fence.check()
        self._fails("update", done=False)
        self.calls.append(f"update {[change.shown for change in changes]}")
        toy = self.toys[target.name]
        assert toy.incarnation == observed.incarnation
        if not self._takes_effect("Update"):
            return self._changed("Update", target.name)
        toy.size, toy.busy, toy.owner = target.spec.size, self.slow, target.owner
        for change in changes:
            if change.path[0] == "tags":
                key = change.path[1]
                toy.tags.pop(key, None)
                toy.tags |= {} if change.want is None else {key: str(change.want)}
        self._fails("update", done=True)
        return self._changed("Update", target.name)

    async def set(
        self,
        target: Target[ToyParameters],
        observed: Seen,
        credential: Credential,
        fence: Fence,
    ) -> Operation | None:
        fence.check()
        self._fails("set_password", done=False)
        self.calls.append(f"set_password {credential.username}")
        assert self.toys[target.name].incarnation == observed.incarnation
        if self._takes_effect("SetPassword"):
            self.toys[target.name].passwords[credential.username] = credential.password
        return self._changed("SetPassword", target.name)

    async def try_login(self, endpoint: Endpoint, credential: Credential) -> LoginAnswer:
        toy = self.toys.get(endpoint.database)
        if toy is None:
            return NO_ANSWER
        is_right = toy.passwords.get(credential.username) == credential.password
        return LoginAnswer(Login.OK if is_right else Login.REFUSED)

    async def disable(
        self, target: Target[ToyParameters], observed: Seen, username: str, fence: Fence
    ) -> Operation | None:
        del observed
        fence.check()
        self.calls.append(f"disable {username}")
        self.toys[target.name].passwords.pop(username, None)
        return self._changed("Disable", target.name)

    async def adopt(self, target: Target[ToyParameters], observed: Seen, fence: Fence) -> Operation | None:
        fence.check()
        self.calls.append("adopt")
        assert self.toys[target.name].incarnation == observed.incarnation
        self.toys[target.name].owner = target.owner
        return self._changed("Adopt", target.name)

    async def release(self, target: Target[ToyParameters], observed: Seen, fence: Fence) -> None:
        fence.check()
        self.calls.append("release")
        assert self.toys[target.name].incarnation == observed.incarnation
        self.toys[target.name].released = True

    async def latest(self, target: Target[ToyParameters]) -> str:
        self._fails("backup_of", done=False)
        return f"backup-of-{target.name}" if f"backup {target.name}" in self.calls else ""

    async def restorable(self, target: Target[ToyParameters]) -> tuple[str, ...]:
        self._fails("restorable", done=False)
        return self.own_backups.get(target.name, ())

    async def delete(
        self,
        target: Target[ToyParameters],
        observed: Seen | None,
        policy: Policy,
        fence: Fence,
    ) -> Operation | None:
        fence.check()
        self._fails("delete", done=False)
        self.calls.append(f"delete {policy.value}")
        if policy is Policy.SNAPSHOT:
            self.calls.append(f"backup {target.name}")
        if observed is not None and self._takes_effect("Delete"):
            assert self.toys[target.name].incarnation == observed.incarnation
            if self.slow:
                self.toys[target.name].busy = self.slow
                self.leaving.add(target.name)
            else:
                del self.toys[target.name]
        self._fails("delete", done=True)
        return self._changed("Delete", target.name)

    async def poll(self, operation: Operation) -> bool:
        self._fails("poll", done=False)
        name = operation.id.partition("/")[2]
        if name in self.toys:
            self._progress(name)
        return name not in self.toys or not self.toys[name].busy

    def _progress(self, name: str) -> None:
        """Time passes between two looks, whether or not anybody follows the operation."""
        toy = self.toys[name]
        toy.busy = max(0, toy.busy - 1)
        if not toy.busy and name in self.leaving:
            del self.toys[name]

    def endpoint(self, name: str) -> Endpoint:
        return Endpoint("toy.example.org", 5432, name, VERIFIED, self.toys[name].ca if name in self.toys else "")

    def refusal(self, spec: ToyParameters) -> tuple[str, str] | None:
        return ("InvalidValue", "no toy is larger than 100") if (spec.size or 0) > 100 else None

    def warnings(self) -> tuple[str, ...]:
        return ()


def logins_of(cloud: ToyCloud) -> LoginRules[ToyParameters, Any]:
    return LoginRules(
        names=lambda target: (f"app_{target.hash}_a", f"app_{target.hash}_b"),
        versions=lambda observed: dict(cloud.toys[observed.name].passwords),
    )


def kind_of(cloud: ToyCloud) -> Kind[ToyParameters, Any]:
    return Kind(
        resource=TOYS,
        spec_type=ToySpec,
        projection=1,
        naming=Naming(name=lambda _spec, identity, _prefix: f"toy-{identity.hash}", hash_in=lambda _spec, _name: ""),
        invariants=lambda target, observed: (
            () if target.owner.owns(observed.owner) else (Change(("owner",), "ours", "nobody's"),)
        ),
        clients=lambda toys: Clients(toys, toys, toys, toys, toys, toys.try_login),
        classify=lambda change, _observed: replace(change, kind=Class.ONLINE),
        logins=logins_of(cloud),
        is_ownership=lambda change: change.path == ("owner",),
    )


def dialled(
    provider: Provider[ToyConfig], dial: Callable[[RecordedAccount, Meter], Awaitable[ToyCloud]]
) -> Provider[ToyConfig]:
    """Return the provider with connections that `dial` makes, by what is recorded of the account and a meter."""

    @asynccontextmanager
    async def connect(
        _config: ToyConfig, _secrets: Mapping[str, Mapping[str, str]], recorded: RecordedAccount, meter: Meter
    ) -> AsyncIterator[ToyCloud]:
        yield await dial(recorded, meter)

    return replace(provider, connect=connect)


def provider_of(cloud: ToyCloud, **kind: Any) -> Provider[ToyConfig]:
    """Return the toy cloud's provider, its one kind with these in place of its own."""

    @asynccontextmanager
    async def connect(
        _config: ToyConfig, _secrets: Mapping[str, Mapping[str, str]], _recorded: RecordedAccount, _meter: Meter
    ) -> AsyncIterator[ToyCloud]:
        await asyncio.sleep(0)
        yield cloud

    return Provider(
        cloud="toy",
        config_resource=CONFIGS,
        config_type=ToyConfig,
        secrets=lambda _config: (),
        connect=connect,
        kinds=(replace(kind_of(cloud), **kind),),
        rate=Rate(10_000, 10_000),
    )
