"""What is written down of a life for its judges: what was there each minute, what was changed and by whom."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from runtime import clock
from runtime.objects import EVENTS, SECRETS, Key, Object, Resource
from tests.simulation.cloud_sql import Made
from tests.simulation.platform import DATABASES, INSTANCES, USERS, Platform
from tests.simulation.watching import Change

_WATCHED = (INSTANCES, DATABASES, USERS)


@dataclass(frozen=True, slots=True)
class Sample:
    """A resource at one time: what it says, and what its cloud has.

    Attributes:
        at: Seconds of the life.
        name: Kind, namespace, name and uid.
        external: Its name in the cloud, empty for none yet.
        ready: Whether it says Ready=True.
        serves: Whether what it stands for is there and takes logins.
        policy: What is to be done with the cloud's object at its deletion.
        leaving: Whether it is being deleted.
        incarnation: The number of the database behind it in the cloud, 0 for none.
        says: Its conditions in words.
    """

    at: float
    name: str
    external: str
    ready: bool
    serves: bool
    policy: str
    leaving: bool
    incarnation: int
    says: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A resource that was deleted: its last state."""

    at: float
    name: str
    external: str
    policy: str


@dataclass(slots=True)
class History:
    """All of a life."""

    samples: list[Sample] = field(default_factory=list)
    calls: list[Made] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    warnings: list[tuple[float, str]] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    calm_since: float = 0.0
    until: float = 0.0


class Recorder:
    """Writes a life down."""

    def __init__(self, platform: Platform) -> None:
        self.history = History(calls=platform.cloud.history)
        self._platform = platform
        platform.server.listeners.append(self._listen)

    async def run(self) -> None:
        """Take a sample each minute."""
        while True:
            await asyncio.sleep(60)
            self.history.samples += self._samples()

    def end(self) -> History:
        """Return the history, with what is left in the cloud."""
        for instance in self._platform.cloud.instances().values():
            self.history.left[instance.name] = ""
            for name in (*instance.databases, *instance.users):
                self.history.left[f"{instance.name}/{name}"] = ""
        self.history.until = clock.monotonic()
        return self.history

    def _listen(self, resource: Resource, change: Change) -> None:
        if resource in _WATCHED and change.after is None and change.before is not None:
            before = change.before
            external, policy = _external(before), str(before["spec"].get("deletionPolicy", ""))
            self.history.ended.append(Ended(clock.monotonic(), _name(resource, before), external, policy))
        if resource == EVENTS and change.after is not None and change.after.get("type") == "Warning":
            about = change.after.get("regarding") or {}
            name = f"{about.get('kind')} {about.get('namespace')}/{about.get('name')} {about.get('uid')}"
            self.history.warnings.append((clock.monotonic(), f"{name}: {change.after.get('note', '')}"))

    def _samples(self) -> Iterator[Sample]:
        for resource in _WATCHED:
            for obj in self._platform.server.all_of(resource).values():
                yield self._sample(resource, obj)

    def _sample(self, resource: Resource, obj: Object) -> Sample:
        conditions = {item["type"]: item for item in (obj.get("status") or {}).get("conditions") or ()}
        serves, incarnation = self._truth(resource, obj)
        return Sample(
            at=clock.monotonic(),
            name=_name(resource, obj),
            external=_external(obj),
            ready=conditions.get("Ready", {}).get("status") == "True",
            serves=serves,
            policy=str(obj["spec"].get("deletionPolicy", "")),
            leaving="deletionTimestamp" in obj["metadata"],
            incarnation=incarnation,
            says="; ".join(f"{name} {item['status']} {item['reason']}: {item.get('message', '')}"
                           for name, item in sorted(conditions.items())),
        )  # fmt: skip

    def _truth(self, resource: Resource, obj: Object) -> tuple[bool, int]:
        server, _, inner = _external(obj).partition("/")
        instance = self._platform.cloud.instances().get(server)
        if instance is None or not instance.runs:
            return False, 0
        if resource == INSTANCES:
            return True, 0
        behind = self._platform.cloud.logins.servers[instance.uid]
        if resource == DATABASES:
            return inner in behind.databases, behind.databases.get(inner, 0)
        return self._logs_in(instance.uid, obj), 0

    def _logs_in(self, uid: str, obj: Object) -> bool:
        connection: Any = (obj.get("status") or {}).get("connection")
        if not connection:
            return False
        place = Key(obj["metadata"]["namespace"], connection["passwordRef"]["name"])
        secret = self._platform.server.find(SECRETS, place) or {}
        password = base64.b64decode((secret.get("data") or {}).get(connection["passwordRef"]["key"], "")).decode()
        database = connection.get("database") or "postgres"
        return self._platform.cloud.logins.admits(uid, connection["username"], password, database)


def _name(resource: Resource, obj: Object) -> str:
    meta = obj["metadata"]
    return f"{resource.kind} {meta['namespace']}/{meta['name']} {meta['uid']}"


def _external(obj: Object) -> str:
    return str((obj.get("status") or {}).get("externalName", ""))
