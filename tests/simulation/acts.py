"""What people, strangers and the world do in a life, each drawn by its weight at a time that is drawn too."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from devcloud.gcp.server import PROJECT
from runtime import clock
from runtime.errors import ApiError
from runtime.objects import Key, Object, Resource
from tests.simulation import cloud_sql, faulty
from tests.simulation.cloud_sql import STRANGER
from tests.simulation.platform import CLAIMS, DATABASES, INSTANCES, TEAM, USERS, Platform

_CLAIM_NAMES: Final = ("a", "b")
_INNER_NAMES: Final = ("app", "orders")
_PERSON: Final = "kubectl"
_SHARED: Final[Object] = {
    "region": "europe-west1",
    "databaseVersion": "POSTGRES_16",
    "tier": "db-custom-1-3840",
    "edition": "ENTERPRISE",
    "activationPolicy": "ALWAYS",
    "dataDiskSizeGb": 20,
    "ipv4Enabled": True,
}


@dataclass
class Cast:
    """Whoever acts on one platform, and what they did."""

    platform: Platform
    chance: random.Random
    done: list[str] = field(default_factory=list)

    async def live(self, seconds: float) -> None:
        """Act at times that are drawn, for so long."""
        until = clock.monotonic() + seconds
        acts, weights = zip(*ACTS, strict=True)
        await self.act(have_shared)
        while clock.monotonic() < until:
            await self.act(self.chance.choices(acts, weights)[0])
            await asyncio.sleep(self.chance.expovariate(1 / 120))
            self.platform.check()

    async def act(self, act: Act) -> None:
        """Do one thing; a refusal is an answer."""
        try:
            said = await act(self)
        except ApiError as error:
            said = f"{act.__name__}: {type(error).__name__}"
        self.done.append(f"{clock.monotonic():.0f} s {said}")
        self.platform.trace.add("act", said)

    def draw(self, *members: Any) -> Any:
        """Return one of these."""
        return self.chance.choice(members)

    async def make(self, resource: Resource, name: str, spec: Object) -> str:
        """Create an object as a person does."""
        meta = {"name": name, "namespace": TEAM}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec}
        await self.platform.server.create(resource, body, manager=_PERSON)
        return f"create {resource.kind} {name} {spec.get('deletionPolicy')}"

    async def edit(self, resource: Resource, name: str, path: str, value: Any) -> str:
        """Set one field as a person does."""
        operations = [{"op": "add", "path": path, "value": value}]
        await self.platform.server.json_patch(resource, Key(TEAM, name), operations, manager=_PERSON)
        return f"set {path} of {resource.kind} {name} to {value}"

    def of_kind(self, resource: Resource) -> list[str]:
        """Return the names of what is there."""
        return sorted(key.name for key in self.platform.server.all_of(resource))

    async def remove(self, resource: Resource, name: str) -> str:
        """Delete an object as a person does."""
        obj = self.platform.server.find(resource, Key(TEAM, name))
        if obj is not None:
            self.platform.server.end(resource, obj)
        return f"delete {resource.kind} {name}"

    def ask(self, verb: str, path: str, body: Any = None, query: Any = ()) -> str:
        """Call the cloud as a stranger."""
        answer = self.platform.cloud.ask(STRANGER, verb, f"v1/projects/{PROJECT}/{path}", query, body)
        return f"stranger {verb} {path} {query}: {answer.status}"

    def instance(self) -> str:
        """Return an instance of the cloud, empty for none."""
        return str(self.draw(*sorted(self.platform.cloud.instances()) or ("",)))


Act = Callable[[Cast], Awaitable[str]]


async def have_claim(cast: Cast) -> str:
    spec: Object = {
        "version": "16",
        "size": cast.draw("small", "medium"),
        "deletionPolicy": cast.draw("Delete", "Delete", "Snapshot", "Orphan"),
        "highAvailability": False,
        "deletionProtection": False,
    }
    return await cast.make(CLAIMS, cast.draw(*_CLAIM_NAMES), spec)


async def edit_claim(cast: Cast) -> str:
    return await cast.edit(CLAIMS, cast.draw(*_CLAIM_NAMES), "/spec/size", cast.draw("small", "medium", "large"))


async def rotate(cast: Cast) -> str:
    token = {"token": f"t{cast.chance.randrange(1000)}"}
    return await cast.edit(CLAIMS, cast.draw(*_CLAIM_NAMES), "/spec/passwordRotation", token)


async def delete_claim(cast: Cast) -> str:
    return await cast.remove(CLAIMS, cast.draw(*_CLAIM_NAMES))


async def have_shared(cast: Cast) -> str:
    policy = cast.draw("Delete", "Orphan")
    return await cast.make(INSTANCES, "shared", {"forProvider": dict(_SHARED), "deletionPolicy": policy})


async def delete_shared(cast: Cast) -> str:
    return await cast.remove(INSTANCES, "shared")


async def have_database(cast: Cast) -> str:
    name = cast.draw(*_INNER_NAMES)
    parameters = {"instanceRef": {"name": "shared"}, "name": name}
    policy = cast.draw("Delete", "Orphan")
    return await cast.make(DATABASES, name, {"forProvider": parameters, "deletionPolicy": policy})


async def have_user(cast: Cast) -> str:
    name = cast.draw(*_INNER_NAMES)
    parameters = {"instanceRef": {"name": "shared"}, "name": f"{name}_app", "database": "postgres"}
    policy = cast.draw("Delete", "Orphan")
    return await cast.make(USERS, name, {"forProvider": parameters, "deletionPolicy": policy})


async def delete_inner(cast: Cast) -> str:
    return await cast.remove(cast.draw(DATABASES, USERS), cast.draw(*_INNER_NAMES))


async def stranger_makes(cast: Cast) -> str:
    instance = cast.instance()
    if cast.chance.random() < 1 / 2:
        name = cast.draw(*_INNER_NAMES, *_CLAIM_NAMES)
        return cast.ask("POST", f"instances/{instance}/databases", {"name": name})
    name = f"{cast.draw(*_INNER_NAMES, *_CLAIM_NAMES)}_app"
    return cast.ask("POST", f"instances/{instance}/users", {"name": name, "password": "Strangers-1"})


async def stranger_drops(cast: Cast) -> str:
    return cast.ask("DELETE", f"instances/{cast.instance()}/databases/{cast.draw(*_INNER_NAMES, *_CLAIM_NAMES)}")


async def stranger_replaces(cast: Cast) -> str:
    instance, name = cast.instance(), cast.draw(*_INNER_NAMES, *_CLAIM_NAMES)
    dropped = cast.ask("DELETE", f"instances/{instance}/databases/{name}")
    await asyncio.sleep(cast.chance.uniform(3, 30))
    return f"{dropped}, {cast.ask('POST', f'instances/{instance}/databases', {'name': name})}"


async def cloud_changes(cast: Cast) -> str:
    instance = cast.instance()
    change = cast.draw({"state": "SUSPENDED"}, {"state": "FAILED"}, {"vanish": True}, {"state": "RUNNABLE"})
    if instance:
        cast.platform.cloud.steer(instance, **change)
    return f"{instance} {change}"


async def weather_turns(cast: Cast) -> str:
    rate = cast.draw(0.0, 0.02, 0.1, 0.3)
    kube, cloud = cast.platform.weather, cast.platform.cloud.weather
    kube.write_refused, kube.answer_lost, kube.read_refused, kube.watch_cut = rate, rate, rate / 4, rate / 8
    cloud.cut_before, cloud.cut_after, cloud.unavailable, cloud.throttled = rate / 2, rate, rate / 2, rate / 4
    cloud.write_cut = cast.draw(0.0, 1.0)
    cloud.absent = cast.draw(0.0, 0.3)
    return f"weather {rate} {cloud.write_cut} {cloud.absent}"


async def kill(cast: Cast) -> str:
    name = cast.draw("composer", "provider-gcp")
    await cast.platform.kill(name)
    await asyncio.sleep(cast.chance.random() * 20)
    await cast.platform.start(name)
    return f"killed {name}"


async def compact(cast: Cast) -> str:
    cast.platform.server.compact()
    return "compacted"


ACTS: Final[tuple[tuple[Act, int], ...]] = (
    (have_claim, 3),
    (edit_claim, 1),
    (rotate, 1),
    (delete_claim, 1),
    (have_shared, 1),
    (delete_shared, 1),
    (have_database, 6),
    (have_user, 6),
    (delete_inner, 6),
    (stranger_makes, 10),
    (stranger_drops, 1),
    (stranger_replaces, 2),
    (cloud_changes, 1),
    (weather_turns, 5),
    (kill, 3),
    (compact, 1),
)


async def calm(cast: Cast) -> None:
    """Let the weather be fair, and whatever stood still go on."""
    cast.platform.weather = _fair(cast.platform.weather, faulty.Weather())
    _fair(cast.platform.cloud.weather, cloud_sql.Weather())


def _fair(weather: Any, none: Any) -> Any:
    for name in none.__slots__:
        setattr(weather, name, getattr(none, name))
    return weather
