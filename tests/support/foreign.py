"""Databases of another operator: a kind modelled on CloudNativePG's `Cluster`, and the operator that makes them.

Their data live in this process, so that an oracle looks where no code of ours can write. Like CloudNativePG it deletes
the data with the object, and its CRD requires `metadata` and `spec` (config/crd of cloudnative-pg 1.28).
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.api import ApiError, JsonObject
from tests.support.kinds import CLUSTER_ROLE, CRD, SECRET, Kind, composition, crd_of
from tests.support.system import System, decoded

_EVERY_S = 1.0
_STATEFUL = "fairlead.dev/stateful"
_SETTINGS: JsonObject = {"name": "settings", "template": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}}


@dataclass(slots=True)
class Data:
    """What one object's database holds.

    Attributes:
        uid: Of the object that it belongs to.
        password: How a login finds it.
        published_for: The uid of the object for which Secret and status were written.
        rows: What was written into it.
    """

    uid: str
    password: str
    published_for: str = ""
    rows: list[str] = field(default_factory=list)


class ForeignApi(NamedTuple):
    """A kind in a group of its own, and who says that it holds data.

    `by_crd`: its CRD; else the Composition. `late`: the CRD says so only when `Operator.label` was called; by then
    there are claims whose policy is Snapshot, which a Composition of data that nobody backs up may not offer.
    """

    group: str
    by_crd: bool = False
    late: bool = False

    @property
    def kind(self) -> Kind:
        return Kind(self.group, "v1", "Cluster", "clusters")

    def crd(self) -> JsonObject:
        """Return the CRD: `required` as in CloudNativePG's, a status that only the operator writes."""
        free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        conditions = {"type": "array", "items": free}
        schema = {
            "type": "object",
            "required": ["metadata", "spec"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": {"type": "object"},
                "spec": {"type": "object", "properties": {"instances": {"type": "integer", "minimum": 1}}},
                "status": {
                    "type": "object",
                    "properties": {"phase": {"type": "string"}, "conditions": conditions},
                },
            },
        }
        stateful = {"stateful": "true"} if self.by_crd and not self.late else {}
        return crd_of(self.kind, schema, composable="true", **stateful)

    def composition(self, name: str, *, with_data: bool = True) -> JsonObject:
        """Return a Composition of a ConfigMap and a database; or of the ConfigMap alone."""
        policies = ["Orphan", "Snapshot", "Delete"] if self.late else ["Orphan", "Delete"]
        if not with_data:
            return composition(name, _SETTINGS, deletionPolicies=policies)
        template = {"apiVersion": self.kind.api_version, "kind": "Cluster", "spec": {"instances": 1}}
        database: JsonObject = {"name": "database", "template": template}
        if not self.by_crd:
            database["stateful"] = True
        keys = {"host": "host", "port": "port", "database": "dbname", "username": "username", "password": "password"}
        name_of_secret = "{{ resources.database.metadata.name }}-app"
        connection = {"secretRef": {"resource": "database", "name": name_of_secret, "keys": keys}, "sslmode": "require"}
        return composition(name, _SETTINGS, database, deletionPolicies=policies, connection=connection)

    def role(self) -> JsonObject:
        """Return the ClusterRole that lets the composer write the kind."""
        verbs = ["get", "list", "watch", "create", "patch", "delete"]
        rules = [{"apiGroups": [self.group], "resources": ["clusters"], "verbs": verbs}]
        made = CLUSTER_ROLE.new("", f"composer-{self.group}", rules=rules)
        made["metadata"]["labels"] = {"fairlead.dev/aggregate-to-composer": "true"}
        return made


@dataclass(slots=True, eq=False)
class Operator:
    """Makes a database for each object of its kind; destroys it when the object is gone."""

    system: System
    api: ForeignApi
    databases: dict[tuple[str, str], Data] = field(default_factory=dict)
    _is_away: bool = False
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def install(self) -> None:
        """Bring the CRD and let the composer write the kind, as a platform team does."""
        await self.system.apply(CLUSTER_ROLE, self.api.role())
        await self.system.apply(CRD, self.api.crd())
        await self.system.api.until_served(self.api.kind.path())

    async def label(self) -> None:
        """Have the CRD say that its objects hold data."""
        path = CRD.path("", f"clusters.{self.api.group}")
        await self.system.api.merge(path, {"metadata": {"labels": {_STATEFUL: "true"}}})

    @contextmanager
    def away(self) -> Iterator[None]:
        """Have no operator for the length of a block; its volumes stay, and are taken up again by their names."""
        self._is_away = True
        yield
        self._is_away = False

    async def work(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            if not self._is_away:
                await self.look()
            await asyncio.sleep(_EVERY_S)

    async def look(self) -> None:
        """Make what is missing, destroy what belongs to no object any more."""
        async with self._looking:
            items = await self._items()
            if items is None or self._is_away:
                return
            here = {(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in items}
            for key in [key for key in self.databases if key not in here]:
                del self.databases[key]
            for key, item in here.items():
                await self._reconcile(key, item)

    async def _items(self) -> list[JsonObject] | None:
        """Return every object of the kind; nothing where the kind is gone, None where that cannot be known."""
        try:
            return await self.system.api.items(self.api.kind.path())
        except ApiError as error:
            if error.status != 404:
                return None
        definition = CRD.path("", f"clusters.{self.api.group}")
        return [] if await self.system.api.find(definition) is None else None

    async def _reconcile(self, key: tuple[str, str], item: JsonObject) -> None:
        uid = item["metadata"]["uid"]
        data = self.databases.get(key)
        if data is None:
            if "deletionTimestamp" in item["metadata"]:
                return
            data = self.databases[key] = Data(uid, secrets.token_hex(8))
        data.uid = uid
        if data.published_for == uid:
            return
        with contextlib.suppress(ApiError):
            await self._publish(key, data)
            await self._report(key)
            data.published_for = uid

    async def _publish(self, key: tuple[str, str], data: Data) -> None:
        namespace, name = key
        path = SECRET.path(namespace, f"{name}-app")
        secret = await self.system.api.find(path)
        if secret is not None and decoded(secret).get("password") == data.password:
            return
        login = {"host": f"{name}-rw.{namespace}.svc", "port": "5432", "dbname": "app", "username": "app"}
        made = SECRET.new(namespace, f"{name}-app", stringData={**login, "password": data.password})
        if secret is None:
            await self.system.api.create(SECRET.path(namespace), made)
        else:
            await self.system.api.merge(path, {"stringData": made["stringData"]})

    async def _report(self, key: tuple[str, str]) -> None:
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "ClusterIsReady",
            "message": "Cluster is Ready",
            "lastTransitionTime": "2026-11-01T00:00:00Z",
        }
        status = {"phase": "Cluster in healthy state", "conditions": [ready]}
        await self.system.api.merge(self.api.kind.path(*key, "status"), {"status": status})

    def reached_by(self, password: str) -> Data | None:
        """Return the database that a password logs in to."""
        return next((data for data in self.databases.values() if data.password == password), None)


@asynccontextmanager
async def operating(system: System, *apis: ForeignApi) -> AsyncIterator[tuple[Operator, ...]]:
    """Have the operators of some kinds at work for the length of a block."""
    operators = tuple(Operator(system, api) for api in apis)
    await asyncio.gather(*(operator.install() for operator in operators))
    tasks = [asyncio.create_task(operator.work()) for operator in operators]
    try:
        yield operators
        for task in tasks:
            assert not task.done(), task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
