"""A cloud that takes its time, before an API server in memory, for passes of the generic reconciler."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from devcloud.apiserver.objects.entries import bare
from providers.accounts import reconciler as config_controller
from providers.accounts.connections import Accounts
from providers.accounts.reconciler import ConfigReconciler
from providers.external.ownership import Owner
from providers.external.provider import Provider
from providers.managed.act import Executor
from providers.managed.gather import Gatherer
from providers.managed.reconciler import Dependencies, Reconciler
from providers.managed.writes import Writer
from providers.settings import Settings
from runtime.cache import Cache
from runtime.errors import Failure
from runtime.events import EventRecorder
from runtime.kube import Kube, Selection
from runtime.objects import CRDS, NAMESPACES, SECRETS, Key, Object, copied, dumps
from runtime.results import Result
from runtime.store import Listing
from tests.providers.toy import START, Toy, ToyCloud, provider_of
from tests.support.memory_kube import MemoryKube

SWEEP = timedelta(minutes=1)
OWN = frozenset(f"fairlead.dev/{name}" for name in ("external-name", "incarnation", "account"))


TEAM_UID = "uid-of-team"
SERVER_OWNER = Owner("home", "uid-of-server", "0123456789abcdef", "team", "pg", "server", TEAM_UID)
"""Whose a server is that was made for the world's namespace, beside what is asked for inside it."""


class World:
    """A reconciler between the two; `step` is one pass, `settle` as many as are due."""

    def __init__(
        self,
        cloud: ToyCloud,
        *,
        process: str = "process-1",
        kube: MemoryKube | None = None,
        provider: Provider[Any] | None = None,
        resync: timedelta = timedelta(minutes=10),
    ) -> None:
        self.cloud, self.now, self.resync = cloud, START, resync
        self.kube = kube or MemoryKube()
        port: Kube | Any = self.kube
        self.cache = Cache(port)
        settings = self.settings = Settings(
            "home", process, "fairlead-toy", "fairlead.dev/provider-toy", b"key", now=lambda: self.now,
            grace=timedelta(seconds=60), resync=resync, monotonic=self._seconds,
            sweep=SWEEP,
        )  # fmt: skip
        provider = self.provider = provider or provider_of(cloud)
        kind = self.kind = provider.kinds[0]
        accounts: Accounts[Any, Any] = Accounts(provider, self.cache, "fairlead-toy")
        self.accounts = accounts
        gatherer: Gatherer[Any, Any] = Gatherer(kind, port, accounts, settings, self.cache)
        self.gatherer = gatherer
        self.store = self.cache.informer(kind.resource).store
        writer: Writer[Any, Any] = Writer(kind, port, settings, self.store, lambda: lambda _budget: True)
        executor: Executor[Any, Any] = Executor(kind, port, writer)
        self.events = EventRecorder(port, controller="toy", instance=process)
        dependencies: Dependencies[Any, Any] = Dependencies(self.store, self.events, gatherer, executor)
        self.reconcile = Reconciler(kind, port, accounts, settings, dependencies)
        if not self.kube.objects:
            self.kube.store(provider.config_resource, {
                "metadata": {"name": "default", "generation": 1},
                "spec": {"allowedNamespaces": {"selector": {}}, **self.config()},
            })  # fmt: skip
            self.kube.store(NAMESPACES, {"metadata": {"name": "team", "uid": TEAM_UID}})
        self.kube.store(CRDS, {"metadata": {"name": f"{kind.resource.plural}.{kind.resource.group}"}})

    def _seconds(self) -> float:
        return (self.now - START).total_seconds()

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
            for key, obj in self.kube.server.all_of(resource).items():
                if selection.namespace in {"", key.namespace}:
                    listing.add(dumps(bare(obj)))
            tuple(store.replace_all(listing, str(self.kube.server.version)))

    def pass_time(self, by: timedelta) -> None:
        """Let time pass for everybody."""
        self.now += by

    def ask(self, name: str = "db", **spec: Any) -> Object:
        """Create or edit a resource as a person does."""
        known, resource = self.get(name), self.kind.resource
        meta: Object = copied(known["metadata"]) if known else {"name": name, "namespace": "team", "generation": 0}
        meta["generation"] += 1
        body: Object = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta}
        body["spec"] = {"forProvider": self.parameters(spec), "deletionPolicy": "Delete", **spec}
        if known and "status" in known:
            body["status"] = copied(known["status"])
        return self.kube.store(resource, body)

    def configure(self, **spec: Any) -> None:
        """Change the ProviderConfig's spec."""
        config = self.kube.objects[self.provider.config_resource, Key("", "default")]
        self.kube.store(self.provider.config_resource, {**config, "spec": {**config["spec"], **spec}})

    def compose(self) -> None:
        """Mark the resource as composed for claim `shop`."""
        obj = copied(self.get() or {})
        obj["metadata"].setdefault("labels", {})["fairlead.dev/claim"] = "claim-uid"
        self.kube.store(self.kind.resource, obj)
        self.annotate(**{"claim-name": "shop", "resource": "database"})

    def annotate(self, name: str = "db", **annotations: str) -> None:
        obj = copied(self.get(name) or {})
        obj["metadata"].setdefault("annotations", {}).update(
            {f"fairlead.dev/{key}": value for key, value in annotations.items()}
        )
        self.kube.store(self.kind.resource, obj)

    def delete(self, name: str = "db") -> None:
        obj = copied(self.get(name) or {})
        obj["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
        self.kube.store(self.kind.resource, obj)

    def get(self, name: str = "db") -> Object | None:
        return self.kube.objects.get((self.kind.resource, Key("team", name)))

    def config_reconciler(self, enqueue: Callable[[str], None]) -> ConfigReconciler:
        """Return the reconciler of the ProviderConfigs; `enqueue` gets the name of each whose users are due."""
        port: Any = self.kube
        dependencies = config_controller.Dependencies((), self.events, enqueue)
        return ConfigReconciler(self.provider, port, self.accounts, self.settings, dependencies)

    @property
    def status(self) -> Object:
        """The status of the resource `db`."""
        status: Object = (self.get() or {})["status"]
        return status

    @property
    def external_name(self) -> str:
        """The name of what was made in the cloud."""
        return str((self.get() or {})["metadata"]["annotations"]["fairlead.dev/external-name"])

    @property
    def secret(self) -> dict[str, str]:
        """The credentials Secret of `db`."""
        stored = self.kube.objects[SECRETS, Key("team", "db-credentials")]["data"]
        return {name: base64.b64decode(text).decode() for name, text in stored.items()}

    @property
    def toy(self) -> Toy:
        """The one database in the cloud."""
        (toy,) = self.cloud.toys.values()
        return toy

    def reason(self, kind: str = "Synced", name: str = "db") -> str:
        obj = self.get(name) or {}
        conditions = obj.get("status", {}).get("conditions", [])
        return next((str(condition["reason"]) for condition in conditions if condition["type"] == kind), "")

    def condition(self, kind: str = "Synced", name: str = "db") -> Object:
        conditions = (self.get(name) or {})["status"]["conditions"]
        return next(condition for condition in conditions if condition["type"] == kind)

    async def step(self, name: str = "db") -> Result | Failure:
        self.feed()
        try:
            return await self.reconcile(Key("team", name))
        except Failure as failure:
            return failure

    @property
    def uid(self) -> str:
        """The uid of the resource `db`."""
        return str((self.get() or {})["metadata"]["uid"])

    async def step_after(self, by: timedelta = timedelta(minutes=10)) -> None:
        """Let time pass, and make one pass."""
        self.now += by
        await self.step()

    async def passes(self, number: int, every: timedelta = timedelta()) -> None:
        """Make passes, the clock moved on after each."""
        for _ in range(number):
            await self.step()
            self.now += every

    async def lose(self) -> None:
        """Have somebody drop the database, and make passes until that is reported."""
        self.cloud.toys.clear()
        await self.passes(5, timedelta(minutes=1))
        assert self.reason("Ready") == "DatabaseLost"

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


async def settled(cloud: ToyCloud, provider: Provider[Any] | None = None, **spec: Any) -> World:
    """Return a world in which a person asked for one database, and all passes that were due are made."""
    world = World(cloud, provider=provider)
    world.ask(**spec)
    await world.settle()
    return world
