"""A cloud that takes its time and an API server in memory, small and behaving, for passes of the generic reconciler."""

from __future__ import annotations

from copy import deepcopy
from datetime import timedelta
from typing import Any

from providers.accounts.connections import Accounts
from providers.external.provider import Provider
from providers.managed.act import Effects
from providers.managed.gather import Gatherer
from providers.managed.reconciler import Around, Reconciler
from providers.managed.writes import Writing
from providers.settings import Settings
from runtime.cache import Cache
from runtime.errors import AlreadyExists, Failure, NotFound, WriteConflict
from runtime.events import EventRecorder
from runtime.kube import Kube, Selection
from runtime.objects import NAMESPACES, SECRETS, Key, Object, Resource, dumps, key_of
from runtime.results import Result
from runtime.store import Listing
from tests.providers.toy import START, ToyCloud, provider_of


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

    async def delete(self, resource: Resource, key: Key, *, uid: str, resource_version: str) -> None:
        self.writes.append(f"delete {resource.plural}")
        stored = self.objects[resource.plural, key]["metadata"]
        assert (stored["uid"], stored["resourceVersion"]) == (uid, resource_version)
        del self.objects[resource.plural, key]


OWN = frozenset(f"fairlead.dev/{name}" for name in ("external-name", "incarnation", "account"))


class World:
    """A reconciler between the two; `step` is one pass, `settle` as many as are asked for."""

    def __init__(
        self,
        cloud: ToyCloud,
        *,
        process: str = "process-1",
        kube: MemoryKube | None = None,
        provider: Provider[Any] | None = None,
    ) -> None:
        self.cloud, self.now = cloud, START
        self.kube = kube or MemoryKube()
        port: Kube | Any = self.kube
        self.cache = Cache(port)
        settings = Settings(
            "home", process, "fairlead-toy", "fairlead.dev/provider-toy", b"key", now=lambda: self.now,
            grace=timedelta(seconds=60),
        )  # fmt: skip
        provider = self.provider = provider or provider_of(cloud)
        kind = self.kind = provider.kinds[0]
        accounts: Accounts[Any, Any] = Accounts(provider, self.cache, "fairlead-toy")
        self.accounts = accounts
        gatherer: Gatherer[Any, Any] = Gatherer(kind, port, accounts, settings, self.cache)
        self.store = self.cache.informer(kind.resource).store
        writing: Writing[Any, Any] = Writing(kind, port, settings, self.store, lambda: lambda _budget: True)
        effects: Effects[Any, Any] = Effects(kind, port, writing)
        self.events = EventRecorder(port, controller="toy", instance=process)
        around: Around[Any, Any] = Around(self.store, self.events, gatherer, effects)
        self.reconcile = Reconciler(kind, port, accounts, settings, around)
        if not self.kube.objects:
            self.kube.put(provider.config_resource, {
                "metadata": {"name": "default", "generation": 1},
                "spec": {"allowedNamespaces": {"selector": {}}, **self.config()},
            })  # fmt: skip
            self.kube.put(NAMESPACES, {"metadata": {"name": "team"}})

    def config(self) -> Object:
        """Return what the ProviderConfig's spec says beside whom it is for."""
        return {}

    def parameters(self, spec: Object) -> Object:
        """Take out of what a person asks for what belongs to `forProvider`, and return it."""
        tags = {"tags": spec.pop("tags")} if "tags" in spec else {}
        return {"size": spec.pop("size", 10), **tags}

    def feed(self) -> None:
        """Let every store see what the API server holds."""
        watched = (
            (self.kind.resource, Selection()),
            (self.provider.config_resource, Selection()),
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
        known, resource = self.get(name), self.kind.resource
        meta: Object = deepcopy(known["metadata"]) if known else {"name": name, "namespace": "team", "generation": 0}
        meta["generation"] += 1
        body: Object = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta}
        body["spec"] = {"forProvider": self.parameters(spec), "deletionPolicy": "Delete", **spec}
        if known and "status" in known:
            body["status"] = deepcopy(known["status"])
        return self.kube.put(resource, body)

    def annotate(self, name: str = "db", **annotations: str) -> None:
        obj = deepcopy(self.get(name) or {})
        obj["metadata"].setdefault("annotations", {}).update(
            {f"fairlead.dev/{key}": value for key, value in annotations.items()}
        )
        self.kube.put(self.kind.resource, obj)

    def delete(self, name: str = "db") -> None:
        obj = deepcopy(self.get(name) or {})
        obj["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
        self.kube.put(self.kind.resource, obj)

    def get(self, name: str = "db") -> Object | None:
        return self.kube.objects.get((self.kind.resource.plural, Key("team", name)))

    def reason(self, kind: str = "Synced", name: str = "db") -> str:
        obj = self.get(name) or {}
        conditions = obj.get("status", {}).get("conditions", [])
        return next((str(one["reason"]) for one in conditions if one["type"] == kind), "")

    def condition(self, kind: str = "Synced", name: str = "db") -> Object:
        conditions = (self.get(name) or {})["status"]["conditions"]
        return next(one for one in conditions if one["type"] == kind)

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
