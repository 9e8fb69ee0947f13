"""A cloud that takes its time and an API server in memory, small and behaving, for passes of the generic reconciler."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from providers.accounts import Accounts
from providers.cloud import Credential, Endpoint, Fence, Provider, Rate, Sweep, Target
from providers.effects import Effects
from providers.envelope import Envelope
from providers.gather import Gatherer
from providers.identity import Owner
from providers.managed import Absent, Change, Class, Found, Observed, Phase, Present
from providers.passwords import Login
from providers.plan import Policy
from providers.reading import Operation
from providers.reconcile import Around, Reconciler
from providers.settings import Settings
from runtime.cache import Cache
from runtime.errors import AlreadyExists, Failure, NotFound, WriteConflict
from runtime.events import EventRecorder
from runtime.kube import Kube, Selection
from runtime.objects import NAMESPACES, SECRETS, Key, Object, Resource, dumps, key_of
from runtime.results import Result
from runtime.store import Listing

TOYS = Resource("toy.example.org", "v1", "Toy", "toys")
CONFIGS = Resource("toy.example.org", "v1", "ProviderConfig", "providerconfigs", namespaced=False)
START = datetime(2026, 11, 21, 12, tzinfo=UTC)


class ToyParameters(msgspec.Struct, frozen=True):
    size: int | None = None


class ToySpec(Envelope, frozen=True, rename="camel", kw_only=True):
    for_provider: ToyParameters


class ToyConfig(msgspec.Struct, frozen=True):
    pass


@dataclass
class Toy:
    """One database of the toy cloud; it is busy for so many looks."""

    incarnation: str
    owner: Owner | None
    size: int | None
    passwords: dict[str, str] = field(default_factory=dict)
    busy: int = 0
    released: bool = False


@dataclass
class ToyCloud:
    """Implements providers.cloud.Cloud; `slow` is how many looks a change takes, `faults` fail the next calls."""

    slow: int = 0
    toys: dict[str, Toy] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    faults: list[tuple[str, Failure, bool]] = field(default_factory=list)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    leaving: set[str] = field(default_factory=set)
    account: str = "account-1"

    def _fails(self, call: str, *, done: bool) -> None:
        for fault in tuple(self.faults):
            name, failure, after = fault
            if name == call and after is done:
                self.faults.remove(fault)
                raise failure

    def _changed(self, kind: str, name: str) -> Operation | None:
        return Operation(f"{kind}/{name}", kind, START) if self.slow else None

    async def whoami(self) -> str:
        return self.account

    async def observe(self, target: Target[ToyParameters]) -> Present[ToyParameters] | Absent:
        self._fails("observe", done=False)
        toy = self.toys.get(target.name)
        if toy is None:
            return Absent()
        phase = Phase.BUSY if toy.busy else Phase.READY
        self._progress(target.name)
        seen = Observed(target.name, toy.incarnation, toy.owner, phase, ToyParameters(toy.size), None, {})
        return Present(seen)

    async def observe_all(self) -> Sweep:
        return Sweep({name: repr(toy) for name, toy in self.toys.items()}, complete=True)

    async def find(self, owner: Owner) -> tuple[Found, ...]:
        found = [(name, toy) for name, toy in self.toys.items() if toy.owner is not None and toy.owner.precedes(owner)]
        return tuple(Found(name, toy.incarnation, toy.owner) for name, toy in found if toy.owner is not None)

    async def create(self, target: Target[ToyParameters], credential: Credential, fence: Fence) -> Operation | None:
        fence.check()
        self._fails("create", done=False)
        self.calls.append("create")
        if target.name not in self.toys:
            toy = Toy(f"incarnation-{next(self.numbers)}", target.owner, target.spec.size, busy=self.slow)
            toy.passwords[credential.username] = credential.password
            self.toys[target.name] = toy
        self._fails("create", done=True)
        return self._changed("Create", target.name)

    async def update(
        self,
        target: Target[ToyParameters],
        observed: Observed[ToyParameters],
        changes: tuple[Change, ...],
        fence: Fence,
    ) -> Operation | None:
        fence.check()
        self._fails("update", done=False)
        self.calls.append(f"update {[change.path for change in changes]}")
        toy = self.toys[target.name]
        assert toy.incarnation == observed.incarnation
        toy.size, toy.busy, toy.owner = target.spec.size, self.slow, target.owner
        self._fails("update", done=True)
        return self._changed("Update", target.name)

    async def set_password(
        self,
        target: Target[ToyParameters],
        observed: Observed[ToyParameters],
        credential: Credential,
        fence: Fence,
    ) -> Operation | None:
        fence.check()
        self._fails("set_password", done=False)
        self.calls.append(f"set_password {credential.username}")
        assert self.toys[target.name].incarnation == observed.incarnation
        self.toys[target.name].passwords[credential.username] = credential.password
        return None

    async def login(self, target: Target[ToyParameters], credential: Credential) -> Login:
        toy = self.toys.get(target.name)
        if toy is None:
            return Login.UNKNOWN
        return Login.OK if toy.passwords.get(credential.username) == credential.password else Login.REFUSED

    async def disable(self, target: Target[ToyParameters], username: str, fence: Fence) -> None:
        fence.check()
        self.calls.append(f"disable {username}")
        self.toys[target.name].passwords.pop(username, None)

    async def adopt(self, target: Target[ToyParameters], observed: Observed[ToyParameters], fence: Fence) -> None:
        fence.check()
        self.calls.append("adopt")
        assert self.toys[target.name].incarnation == observed.incarnation
        self.toys[target.name].owner = target.owner

    async def release(self, target: Target[ToyParameters], observed: Observed[ToyParameters], fence: Fence) -> None:
        fence.check()
        self.calls.append("release")
        assert self.toys[target.name].incarnation == observed.incarnation
        self.toys[target.name].released = True

    async def backup_of(self, target: Target[ToyParameters]) -> str:
        return f"backup-of-{target.name}" if f"backup {target.name}" in self.calls else ""

    async def delete(
        self,
        target: Target[ToyParameters],
        observed: Observed[ToyParameters] | None,
        policy: Policy,
        fence: Fence,
    ) -> Operation | None:
        fence.check()
        self._fails("delete", done=False)
        self.calls.append(f"delete {policy.value}")
        if policy is Policy.SNAPSHOT:
            self.calls.append(f"backup {target.name}")
        if observed is not None:
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

    def endpoint(self, target: Target[ToyParameters]) -> Endpoint:
        return Endpoint("toy.example.org", 5432, target.name, "require")

    def objection(self, spec: ToyParameters) -> tuple[str, str] | None:
        return ("InvalidValue", "no toy is larger than 100") if (spec.size or 0) > 100 else None

    def advice(self) -> str:
        return ""


class MemoryKube:
    """What the reconciler asks of an API server, kept in a dictionary; one version space, every write counted."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, Key], Object] = {}
        self.version = 100
        self.writes: list[str] = []

    def _store(self, resource: Resource, obj: Object) -> Object:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        if "deletionTimestamp" in obj["metadata"] and not obj["metadata"].get("finalizers"):
            self.objects.pop((resource.plural, key_of(obj)), None)
        else:
            self.objects[resource.plural, key_of(obj)] = obj
        return deepcopy(obj)

    def put(self, resource: Resource, obj: Object) -> Object:
        """Store an object as somebody else would."""
        known = self.objects.get((resource.plural, key_of(obj)))
        obj["metadata"].setdefault("uid", known["metadata"]["uid"] if known else f"uid-{self.version}")
        return self._store(resource, deepcopy(obj))

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        assert metadata_only in {True, False}
        if resource.plural == "customresourcedefinitions":
            return {"metadata": {"name": key.name}}
        found = self.objects.get((resource.plural, key))
        if found is None:
            raise NotFound(f"{resource.plural} {key}", status=404)
        return deepcopy(found)

    async def create(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        self.writes.append(f"create {resource.plural} by {manager}")
        if (resource.plural, key_of(obj)) in self.objects:
            raise AlreadyExists("exists", status=409)
        return self.put(resource, obj)

    async def replace(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        self.writes.append(f"replace {resource.plural} by {manager}")
        stored = self.objects[resource.plural, key_of(obj)]
        if stored["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
            raise WriteConflict("version", status=409)
        return self._store(resource, deepcopy(obj))

    async def apply(
        self, resource: Resource, obj: Object, *, manager: str, force: bool = False, subresource: str = ""
    ) -> Object:
        assert force
        self.writes.append(f"apply {resource.plural} {subresource} by {manager}")
        stored = deepcopy(self.objects[resource.plural, key_of(obj)])
        for name in ("uid", "resourceVersion"):
            if obj["metadata"].get(name, stored["metadata"][name]) != stored["metadata"][name]:
                raise WriteConflict(name, status=409)
        if subresource:
            stored["status"] = deepcopy(obj["status"])
        else:
            marks = {key: value for key, value in stored["metadata"].get("annotations", {}).items() if "." not in key}
            own = obj["metadata"].get("annotations", {})
            kept = {key: value for key, value in stored["metadata"].get("annotations", {}).items() if key not in OWN}
            stored["metadata"]["annotations"] = {**marks, **kept, **own}
            stored["metadata"]["finalizers"] = obj["metadata"].get("finalizers", [])
        return self._store(resource, stored)

    async def json_patch(
        self, resource: Resource, key: Key, operations: list[Object], *, manager: str, subresource: str = ""
    ) -> Object:
        self.writes.append(f"patch {resource.plural} {subresource} by {manager}")
        stored = deepcopy(self.objects[resource.plural, key])
        for test in operations[:-1]:
            parts = test["path"].split("/")[1:]
            found = stored["metadata"][parts[1]]
            if (found[int(parts[2])] if len(parts) > 2 else found) != test["value"]:
                raise WriteConflict(test["path"], status=409)
        if operations[-1]["path"] == "/status":
            stored["status"] = deepcopy(operations[-1]["value"])
            return self._store(resource, stored)
        del stored["metadata"]["finalizers"][int(operations[-1]["path"].rpartition("/")[2])]
        return self._store(resource, stored)

    async def delete(self, resource: Resource, key: Key, *, uid: str) -> None:
        self.writes.append(f"delete {resource.plural}")
        assert self.objects[resource.plural, key]["metadata"]["uid"] == uid
        del self.objects[resource.plural, key]


OWN = frozenset(f"fairlead.dev/{name}" for name in ("external-name", "incarnation", "account"))


class World:
    """A reconciler between the two; `step` is one pass, `settle` as many as are asked for."""

    def __init__(self, cloud: ToyCloud, *, process: str = "process-1", kube: MemoryKube | None = None) -> None:
        self.cloud, self.now = cloud, START
        self.kube = kube or MemoryKube()
        port: Kube | Any = self.kube
        self.cache = Cache(port)
        settings = Settings(
            "home", process, "fairlead-toy", "fairlead.dev/provider-toy", b"key", now=lambda: self.now,
            grace=timedelta(seconds=60),
        )  # fmt: skip
        provider = provider_of(cloud)
        accounts: Accounts[Any, Any] = Accounts(provider, self.cache, "fairlead-toy")
        gatherer: Gatherer[Any, Any] = Gatherer(provider, port, accounts, settings, self.cache)
        self.store = self.cache.informer(TOYS).store
        effects: Effects[Any, Any] = Effects(provider, port, settings, self.store, lambda: lambda _budget: True)
        self.events = EventRecorder(port, controller="toy", instance=process)
        around: Around[Any, Any] = Around(self.store, self.events, gatherer, effects)
        self.reconcile = Reconciler(provider, port, accounts, settings, around)
        if kube is None:
            self.kube.put(CONFIGS, {
                "metadata": {"name": "default", "generation": 1},
                "spec": {"allowedNamespaces": {"selector": {}}},
            })  # fmt: skip
            self.kube.put(NAMESPACES, {"metadata": {"name": "team"}})

    def feed(self) -> None:
        """Let every store see what the API server holds."""
        watched = (
            (TOYS, Selection()),
            (CONFIGS, Selection()),
            (NAMESPACES, Selection(metadata_only=True)),
            (SECRETS, Selection(namespace="fairlead-toy")),
        )
        for resource, selection in watched:
            store = self.cache.informer(resource, selection=selection).store
            listing = Listing(store)
            for (plural, key), obj in self.kube.objects.items():
                if plural == resource.plural and selection.namespace in {"", key.namespace}:
                    listing.add(dumps(obj))
            tuple(store.replace_all(listing, str(self.kube.version)))

    def ask(self, name: str = "db", **spec: Any) -> Object:
        """Create or edit a resource as a person does."""
        known = self.kube.objects.get(("toys", Key("team", name)))
        meta: Object = deepcopy(known["metadata"]) if known else {"name": name, "namespace": "team", "generation": 0}
        meta["generation"] += 1
        body: Object = {"apiVersion": "toy.example.org/v1", "kind": "Toy", "metadata": meta}
        size = spec.pop("size", 10)
        body["spec"] = {"forProvider": {"size": size}, "deletionPolicy": "Delete", **spec}
        if known and "status" in known:
            body["status"] = deepcopy(known["status"])
        return self.kube.put(TOYS, body)

    def annotate(self, name: str = "db", **annotations: str) -> None:
        obj = deepcopy(self.kube.objects["toys", Key("team", name)])
        obj["metadata"].setdefault("annotations", {}).update(
            {f"fairlead.dev/{key}": value for key, value in annotations.items()}
        )
        self.kube.put(TOYS, obj)

    def delete(self, name: str = "db") -> None:
        obj = deepcopy(self.kube.objects["toys", Key("team", name)])
        obj["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
        self.kube.put(TOYS, obj)

    def get(self, name: str = "db") -> Object | None:
        return self.kube.objects.get(("toys", Key("team", name)))

    def reason(self, kind: str = "Synced", name: str = "db") -> str:
        obj = self.get(name) or {}
        conditions = obj.get("status", {}).get("conditions", [])
        return next((str(one["reason"]) for one in conditions if one["type"] == kind), "")

    async def step(self, name: str = "db") -> Result | Failure:
        self.feed()
        try:
            return await self.reconcile(Key("team", name))
        except Failure as failure:
            return failure

    async def settle(self, name: str = "db", *, most: int = 20) -> int:
        """Make passes as their results ask for, the clock moved on; return how many it took."""
        for number in range(1, most + 1):
            result = await self.step(name)
            if self.get(name) is None:
                return number
            if isinstance(result, Result) and result.requeue_after is None:
                return number
            after = result.requeue_after if isinstance(result, Result) else None
            self.now += after or timedelta(seconds=5)
        raise AssertionError(f"not settled after {most} passes: {self.reason()}: {self.get(name)}")


def provider_of(cloud: ToyCloud) -> Provider[ToyParameters, ToyConfig]:
    @asynccontextmanager
    async def connect(
        _config: ToyConfig, _given: Mapping[str, Mapping[str, str]], _recorded: str
    ) -> AsyncIterator[ToyCloud]:
        await asyncio.sleep(0)
        yield cloud

    return Provider(
        cloud="toy",
        resource=TOYS,
        config_resource=CONFIGS,
        spec_type=ToySpec,
        config_type=ToyConfig,
        translator=1,
        policies=frozenset(Policy),
        external_name=lambda _spec, identity_hash: f"toy-{identity_hash}",
        hash_of=lambda _spec, _name: "",
        logins=lambda target: (f"app_{target.hash}_a", f"app_{target.hash}_b"),
        guarded=lambda target, observed: (
            () if target.owner.owns(observed.owner) else (Change("owner", "ours", "nobody's"),)
        ),
        classify=lambda change: replace(change, kind=Class.ONLINE),
        login_versions=lambda observed: dict(cloud.toys[observed.name].passwords),
        secrets=lambda _config: (),
        connect=connect,
        rate=Rate(10_000, 10_000),
    )
