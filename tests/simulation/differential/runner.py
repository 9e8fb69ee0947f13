"""Both servers get a sequence of requests; what they answer, store and show to watches must be equal."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from devcloud.apiserver.objects.meta import FOREGROUND, ORPHAN
from runtime.objects import Object
from tests.simulation.differential.memory import Memory
from tests.simulation.differential.normal import Normal, differences
from tests.simulation.differential.patterns import matching
from tests.simulation.differential.real import END, Real
from tests.simulation.differential.requests import Sequence
from tests.simulation.differential.worlds import World
from tests.support.api import Api

_SETTLES_S, _POLL_S = 15.0, 0.05


@dataclass(frozen=True)
class Difference:
    """Where two servers differ: after which request, or at the end; a line each."""

    step: int
    lines: tuple[str, ...]


@dataclass
class Pair:
    """A namespace of the real server, and servers in memory for the sequences that it serves."""

    real: Real
    world: World

    async def run(self, sequence: Sequence) -> Difference | None:
        """Run a sequence; return the first difference, None for none."""
        memory = Memory(self.real.namespace, self.world.crds, self.world.resources)
        watched, _ = sequence.watched
        kinds = {request.kind for request in sequence.requests} | ({watched} if watched else set())
        await self.real.begin(watched)
        try:
            return await self._compared(memory, sequence, kinds)
        finally:
            await self.real.clear(kinds)

    async def _compared(self, memory: Memory, sequence: Sequence, kinds: set[str]) -> Difference | None:
        normals = Normal(), Normal()
        for step, request in enumerate(sequence.requests):
            answers = memory.send(request), await self.real.send(request)
            left, right = (normal.answer(answer) for normal, answer in zip(normals, answers, strict=True))
            lines = differences(left, right)
            if not lines:
                lines = await self._unsettled(memory, kinds)
            if lines:
                return Difference(step, tuple(lines))
        lines = []
        for kind in sorted(kinds):
            sides = memory.objects(kind), await self.real.objects(kind)
            before, after = ([normal.object(obj) for obj in side] for normal, side in zip(normals, sides, strict=True))
            lines += differences(before, after, f"stored {kind}")
        if sequence.watched[0] and not lines:
            lines = await self._events(memory, normals, sequence.watched)
        return Difference(len(sequence.requests), tuple(lines)) if lines else None

    async def _events(self, memory: Memory, normals: tuple[Normal, Normal], watched: tuple[str, str]) -> list[str]:
        kind, labels = watched
        marker = self._marker(kind, labels)
        sides = memory.events(kind, labels), await self.real.events(kind, labels, marker)
        left, right = (Normal(dict(normal.uids)).events(side) for normal, side in zip(normals, sides, strict=True))
        return differences(left, right, f"events of {kind} {labels}")

    def _marker(self, kind: str, labels: str) -> Object:
        resource = self.world.resources[kind]
        color = {"color!=red": {"color": "blue"}, "!color": {}}.get(labels, {"color": "red"})
        body = {"apiVersion": resource.api_version, "kind": kind, "metadata": {"name": END, "labels": color}}
        return {**body, **_least(self.world.schemas[kind])} if kind in self.world.schemas else body

    async def _unsettled(self, memory: Memory, kinds: set[str]) -> list[str]:
        """Let the controllers do their work on both sides; return what they did differently."""
        version = memory.server.version
        waits = _is_collected(memory, kinds)
        memory.settle()
        if not waits and memory.server.version == version:
            return []
        wanted = {kind: _state(memory.objects(kind)) for kind in kinds}
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SETTLES_S
        lines: list[str] = []
        while loop.time() < deadline:
            present = {kind: _state(await self.real.objects(kind)) for kind in kinds}
            lines = differences(wanted, present, "settled")
            if not lines:
                return []
            await asyncio.sleep(_POLL_S)
        return lines


def _is_collected(memory: Memory, kinds: set[str]) -> bool:
    """Return whether the garbage collector has anything to look at."""
    metadata = [obj["metadata"] for kind in kinds for obj in memory.objects(kind)]
    return any(
        part.get("ownerReferences") or {FOREGROUND, ORPHAN} & set(part.get("finalizers") or ()) for part in metadata
    )


def _state(objects: list[Object]) -> dict[str, Any]:
    """Return what the garbage collector changes."""
    return {
        obj["metadata"]["name"]: {
            "ends": "deletionTimestamp" in obj["metadata"],
            "finalizers": obj["metadata"].get("finalizers"),
            "owners": [owner["name"] for owner in obj["metadata"].get("ownerReferences") or ()],
        }
        for obj in objects
    }


def _least(schema: Object) -> Any:  # noqa: PLR0911 - a table of types
    """Return the smallest value that a schema takes."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            properties = schema.get("properties") or {}
            return {name: _least(properties[name]) for name in schema.get("required") or ()}
        case "array":
            return [_least(schema["items"]) for _ in range(schema.get("minItems", 0))]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case _ if "pattern" in schema:
            return matching(schema["pattern"], random.Random(1))  # noqa: S311 - no secret
        case _:
            return "x" * max(1, schema.get("minLength", 1))


async def shortest(pair: Pair, sequence: Sequence) -> tuple[Sequence, Difference]:
    """Return the shortest sequence that still differs, by leaving out request after request."""
    difference = await pair.run(sequence)
    if difference is None:
        raise AssertionError("the sequence differs no more")
    sequence = replace(sequence, requests=sequence.requests[: difference.step + 1])
    index = len(sequence.requests) - 1
    while index >= 0:
        shorter = replace(sequence, requests=sequence.requests[:index] + sequence.requests[index + 1 :])
        still = await pair.run(shorter) if shorter.requests else None
        if still is not None:
            sequence, difference = replace(shorter, requests=shorter.requests[: still.step + 1]), still
        index = min(index, len(sequence.requests)) - 1
    return sequence, difference


@asynccontextmanager
async def pairs(api: Api, world: World, count: int) -> AsyncIterator[list[Pair]]:
    """Yield namespaces on a real server that has the world's kinds, which are installed where they are not."""
    await _install(api, world)
    made = []
    for number in range(count):
        name = f"differential-{number}"
        path = "/api/v1/namespaces"
        if await api.find(f"{path}/{name}") is None:
            await api.create(path, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        made.append(Pair(Real(api, name, world.resources), world))
    yield made


CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def _install(api: Api, world: World) -> None:
    for crd in world.crds:
        await api.apply(f"{CRDS}/{crd['metadata']['name']}", crd)
    for resource in world.resources.values():
        await api.until_served(Api.path(resource.api_version, resource.plural))


async def run_all(ready: list[Pair], sequences: list[Sequence], until: float) -> list[tuple[int, Difference | None]]:
    """Run sequences, as many at once as there are pairs, until a time of the loop; return what was run."""
    todo = list(enumerate(sequences))[::-1]
    results: list[tuple[int, Difference | None]] = []

    async def work(pair: Pair) -> None:
        while todo and asyncio.get_running_loop().time() < until:
            number, sequence = todo.pop()
            results.append((number, await pair.run(sequence)))

    async with asyncio.TaskGroup() as group:
        for pair in ready:
            group.create_task(work(pair))
    return sorted(results, key=lambda result: result[0])
