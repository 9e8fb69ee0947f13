"""A world for electors: links to one server that hang, refuse, drop answers, deliver late and cut watches."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any, TypeVar

from runtime.elector import Elector, ElectorHooks
from runtime.errors import ApiError, NoAnswer
from runtime.kube import Selection, WatchEvent
from runtime.leadership import Leadership
from runtime.lease import LeaseSettings
from runtime.objects import Key, Object, Resource
from tests.support.memory_kube import MemoryKube

LEASE = Key("ns", "leader")
SETTINGS = LeaseSettings(
    duration=timedelta(seconds=3), renew_deadline=timedelta(seconds=2), retry=timedelta(seconds=0.5)
)
# What is left between the last start of a call and another's lead.
CALL_S = 0.4
# A slow answer comes within the second that an attempt may take.
ANSWER_S = 0.9
T = TypeVar("T")


class Weather(Enum):
    FAIR = auto()
    HUNG = auto()
    REFUSED = auto()
    ANSWER_LOST = auto()
    LATE = auto()
    SLOW_ANSWER = auto()


class Link(MemoryKube):
    """One elector's way to the shared server."""

    def __init__(self, server: MemoryKube, chance: random.Random) -> None:
        super().__init__()
        self.far = server
        self.chance = chance
        self.weather = Weather.FAIR
        self.dead = False
        self.reads = 0

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        self.reads += 1
        return await self._sent(lambda: self.far.get(resource, key, metadata_only=metadata_only))

    async def create(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        return await self._sent(lambda: self.far.create(resource, obj, manager=manager))

    async def replace(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        return await self._sent(lambda: self.far.replace(resource, obj, manager=manager))

    async def watch(
        self,
        resource: Resource,
        selection: Selection,
        *,
        resource_version: str,
        timeout: timedelta,  # noqa: ASYNC109  # the port's
    ) -> AsyncIterator[WatchEvent]:
        begun_in = self.weather
        if begun_in is Weather.REFUSED:
            raise NoAnswer("refused")
        async for event in self.far.watch(resource, selection, resource_version=resource_version, timeout=timeout):
            match self.weather:
                case Weather.HUNG:
                    await asyncio.Event().wait()
                case Weather.REFUSED | Weather.ANSWER_LOST:
                    raise NoAnswer("cut")
                case Weather.LATE:
                    await asyncio.sleep(self.chance.uniform(0, 4))
                case Weather.FAIR | Weather.SLOW_ANSWER:
                    pass
            yield event

    async def _sent(self, request: Callable[[], Awaitable[T]]) -> T:
        if self.dead:
            await asyncio.Event().wait()
        match self.weather:
            case Weather.FAIR:
                await asyncio.sleep(0.005)
                return await request()
            case Weather.HUNG:
                await asyncio.Event().wait()
                raise AssertionError
            case Weather.REFUSED:
                raise NoAnswer("refused")
            case Weather.ANSWER_LOST:
                await asyncio.shield(self._committed(request, 0.0))
                raise NoAnswer("connection reset")
            case Weather.SLOW_ANSWER:
                done = await request()
                await asyncio.sleep(ANSWER_S)
                return done
            case Weather.LATE:
                # The server acts on it even when the client has given up.
                answer = await asyncio.shield(self._committed(request, self.chance.uniform(0, 4)))
                await asyncio.sleep(self.chance.uniform(0, 1))
                if isinstance(answer, ApiError):
                    raise answer
                return answer

    def _committed(self, request: Callable[[], Awaitable[T]], after_s: float) -> "asyncio.Task[T | ApiError]":
        async def commit() -> T | ApiError:
            await asyncio.sleep(after_s)
            try:
                return await request()
            except ApiError as error:
                return error

        return asyncio.create_task(commit())


@dataclass
class Call:
    """One mutating call of a leader."""

    identity: str
    begun: float
    ended: float


@dataclass
class World:
    """The server, the candidates, and every call that a leader made."""

    seed: int
    server: MemoryKube = field(default_factory=MemoryKube)
    calls: list[Call] = field(default_factory=list)
    exits: list[str] = field(default_factory=list)
    links: dict[str, Link] = field(default_factory=dict)
    tasks: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)

    def start(
        self,
        identity: str,
        *,
        wall: Callable[[], datetime] | None = None,
        stubborn: bool = False,
        kind: type[Elector] = Elector,
    ) -> None:
        loop = asyncio.get_running_loop()
        link = self.links[identity] = Link(self.server, random.Random(f"{self.seed} {identity}"))  # noqa: S311  # a seed

        def exit_hard() -> None:
            self.exits.append(identity)
            link.dead = True
            raise SystemExit(70)

        hooks = ElectorHooks(monotonic=loop.time, now=wall or (lambda: datetime.now(UTC)), exit_hard=exit_hard)
        elector = kind(link, LEASE, identity, SETTINGS, hooks=hooks)

        async def lead(leadership: Leadership) -> None:
            await self._act(identity, link, leadership, stubborn=stubborn)

        async def campaign() -> None:
            try:
                await elector.run(lead)
            except SystemExit:
                link.dead = True

        self.tasks[identity] = asyncio.create_task(campaign(), name=identity)

    def kill(self, identity: str) -> None:
        """Kill without a word: nothing is released, nothing is sent any more."""
        self.links[identity].dead = True
        self.tasks[identity].cancel()

    async def stop(self) -> None:
        for link in self.links.values():
            link.dead = True
        for task in self.tasks.values():
            task.cancel()
        await asyncio.wait(self.tasks.values())

    def leads(self) -> str:
        return self.calls[-1].identity if self.calls else ""

    async def until_leads(self, *identities: str, within_s: float = 30.0) -> float:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        async with asyncio.timeout(within_s):
            while not (self.calls and self.calls[-1].begun >= begun and self.leads() in identities):  # noqa: ASYNC110 - on virtual time
                await asyncio.sleep(0.05)
        return loop.time() - begun

    async def _act(self, identity: str, link: Link, leadership: Leadership, *, stubborn: bool) -> None:
        loop = asyncio.get_running_loop()
        while not link.dead:
            if leadership.holds():
                begun = loop.time()
                call = Call(identity, begun, begun + CALL_S)
                self.calls.append(call)
                try:
                    await asyncio.sleep(CALL_S)
                except asyncio.CancelledError:
                    if not stubborn:
                        # A call in flight ends in its own time, as one in a thread would.
                        await asyncio.sleep(call.ended - loop.time())
                        raise
            else:
                await asyncio.sleep(0.05)


async def led(scene: Callable[[World], Awaitable[T]], **candidate: Any) -> tuple[World, T]:
    """Play a scene where `a`, started so, has led for five seconds while `b` stood by; return its world and answer."""
    world = World(1)
    world.start("a", **candidate)
    await world.until_leads("a")
    world.start("b")
    await asyncio.sleep(5)
    answer = await scene(world)
    await world.stop()
    return world, answer


def overlaps(calls: list[Call]) -> list[tuple[Call, Call]]:
    """Return each pair of calls of two identities that ran at one time."""
    ordered = sorted(calls, key=lambda call: call.begun)
    return [
        (call, other)
        for call, other in itertools.pairwise(ordered)
        if call.identity != other.identity and other.begun < call.ended
    ]
