"""Whoever acts on a platform: people with kubectl, strangers in the cloud, and the plan of what they do when."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead.simulation.platform import Platform
from fairlead.simulation.virtual_time import chance_of
from runtime import clock
from runtime.errors import ApiError
from runtime.objects import SECRETS, Key, Object, Resource
from tests.simulation.cloud_acts import CloudActs, acts_in
from tests.simulation.history import CONNECTION, OTHER, PERSON, TEAM
from tests.simulation.profiles import Profile

Act = Callable[["Cast"], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Planned:
    """An act of a life: its number, and when it is due."""

    number: int
    at: float
    act: Act


@dataclass
class Cast:
    """Whoever acts on one platform, and what they did; each act has a chance of its own."""

    platform: Platform
    seed: str
    done: list[str] = field(default_factory=list)
    cloud: CloudActs = field(init=False)
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.cloud = acts_in(self.platform.description.name)
        self.chance = chance_of(self.seed, "acts")

    def plan(self, acts: Sequence[tuple[Act, float]], profile: Profile) -> list[Planned]:
        """Return what is to be done in a life."""
        chosen, weights = zip(*acts, strict=True)
        planned: list[Planned] = []
        at = self.draw(*profile.first_s)
        while at < profile.acts_s:
            planned.append(Planned(len(planned), at, self.chance.choices(chosen, weights)[0]))
            at += self.chance.expovariate(1 / profile.pause_s)
        return planned

    async def carry_out(self, planned: Sequence[Planned], seconds: float) -> None:
        """Do what is planned at its time, or as soon after it as the act before has ended."""
        began = clock.monotonic()
        for step in planned:
            await asyncio.sleep(max(0.0, began + step.at - clock.monotonic()))
            self.chance = chance_of(self.seed, f"act {step.number}")
            await self.act(step.act, str(step.number))
            self.platform.check()
        await asyncio.sleep(max(0.0, began + seconds - clock.monotonic()))

    async def act(self, act: Act, number: str = "") -> None:
        """Do one thing; a refusal is an answer."""
        try:
            said = await act(self)
        except ApiError as error:
            said = f"{act.__name__}: {type(error).__name__} {error}"
        self.done.append(f"{number:>3} {clock.monotonic():.0f} s {said}")
        self.platform.trace.add("act", said)

    def draw(self, *members: Any) -> Any:
        """Return one of these."""
        return self.chance.choice(members)

    def happens(self, rate: float) -> bool:
        """Return true as often as that."""
        return self.chance.random() < rate

    async def make(self, resource: Resource, key: Key, spec: Object) -> str:
        """Create an object as a person does."""
        meta = {"name": key.name, "namespace": key.namespace}
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec}
        await self.platform.server.create(resource, body, manager=PERSON)
        return f"create {resource.kind} {key} {spec.get('deletionPolicy', '')}"

    async def edit(self, resource: Resource, key: Key, path: str, value: Any) -> str:
        """Set one field as a person does."""
        operations = [{"op": "add", "path": path, "value": value}]
        await self.platform.server.json_patch(resource, key, operations, manager=PERSON)
        return f"set {path} of {resource.kind} {key} to {value}"

    async def annotate(self, resource: Resource, key: Key, name: str, value: str) -> str:
        """Set an annotation as a person does."""
        obj = await self.platform.server.get(resource, key)
        annotations = {**(obj["metadata"].get("annotations") or {}), name: value}
        return await self.edit(resource, key, "/metadata/annotations", annotations)

    async def remove(self, resource: Resource, key: Key) -> str:
        """Delete an object as a person does."""
        obj = self.platform.server.find(resource, key)
        if obj is not None:
            self.platform.server.end(resource, obj)
        return f"delete {resource.kind} {key}{'' if obj else ': not there'}"

    def keys(self, *resources: Resource) -> list[tuple[Resource, Key]]:
        """Return what there is of some kinds in the namespaces of people."""
        return [
            (resource, key)
            for resource in resources
            for key in sorted(self.platform.server.all_of(resource))
            if key.namespace in (TEAM, OTHER)
        ]

    def connections(self) -> list[Key]:
        """Return the Secrets by which applications log in."""
        secrets = self.platform.server.all_of(SECRETS)
        return [key for _, key in self.keys(SECRETS) if secrets[key].get("type") == CONNECTION]

    def server(self) -> str:
        """Return a server of the cloud, empty for none."""
        return str(self.draw(*self.platform.cloud.servers() or ("",)))
