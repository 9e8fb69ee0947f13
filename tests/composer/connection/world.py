"""A publisher of connection Secrets over a fake API server that holds the Secret of a login."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import timedelta

from apis.connection import SecretRef
from composer.connection.publisher import Publication, Publisher
from composer.connection.secret import Origin, SecretTarget, Wanted, wanted
from runtime.changes import Change, ChangeKind
from runtime.objects import SECRETS, Key, Object, Resource, dumps, version_of
from runtime.record import record_of
from tests.composer.factories import claim, desired, live
from tests.support.memory_kube import MemoryKube

SECRET = Key("shop", "orders-connection")
CLAIM = Key("shop", "orders")
PLAIN = {"host": "h", "port": "5432", "database": "d", "username": "u", "sslmode": "require"}
TEN_MINUTES = 600.0
OURS = "servicebinding.io/postgresql"


def encoded(**data: str) -> dict[str, str]:
    return {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}


def published(
    source: str = "app-login",
    *,
    of: Object | None = None,
    declared: Object | None = None,
    owned: bool = True,
    **kept: SecretRef,
) -> Wanted:
    """Return the Secret that a claim wants of a login; `of` is the child that has it, `kept` what else is copied."""
    origin = Origin(PLAIN, {"password": SecretRef(source, "password"), **kept})
    target = SecretTarget(SECRET, "claim-uid", owned=owned)
    return wanted(claim(), declared or {"from": "database"}, of or live(desired()), origin, target)


@dataclass
class CountingKube(MemoryKube):
    """Notes the objects that are read by name."""

    reads: list[Key] = field(default_factory=list)

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        self.reads.append(key)
        return await super().get(resource, key, metadata_only=metadata_only)


@dataclass
class World:
    kube: CountingKube = field(default_factory=CountingKube)
    now: float = 0.0
    resync: timedelta = timedelta(minutes=10)
    watched: dict[Key, Object] = field(default_factory=dict)
    are_versions_watched: bool = False
    seen: dict[Key, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.publisher = Publisher(
            self.kube,
            monotonic=lambda: self.now,
            manager="m",
            resync=self.resync,
            watched=self,
        )
        self.login("first")

    def credentials(self, key: Key) -> Object | None:
        return self.watched.get(key)

    def version(self, key: Key) -> str | None:
        """Return the version of a Secret as the watch has it, which is late where `seen` says so."""
        if key in self.seen:
            return self.seen[key]
        stored = self.kube.objects.get((SECRETS, key)) if self.are_versions_watched else None
        return version_of(stored) if stored else None

    def login(self, password: str) -> None:
        self.kube.put(SECRETS, "app-login", namespace="shop", data=encoded(password=password))

    async def publish(self, want: Wanted, *, known: bool = True, is_requested: bool = False) -> Publication:
        return await self.publisher.publish(want, known_hash=want.hash if known else "", is_requested=is_requested)

    def stored(self) -> str:
        data = self.kube.objects[SECRETS, SECRET]["data"]
        return base64.b64decode(data["password"]).decode()

    def change(self, key: Key) -> Change:
        """Return the change that a watch delivers of an object as it is stored now."""
        return change_of(key, self.kube.objects[SECRETS, key])


def change_of(key: Key, obj: Object | None) -> Change:
    after = record_of(dumps(obj), SECRETS, {}) if obj else None
    return Change(key, ChangeKind.MODIFIED if obj else ChangeKind.DELETED, None, after)
