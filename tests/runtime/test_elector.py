"""Electors on bad networks, in virtual time: never two at once, and always one again when the network is well.

Each elector reaches the API server over a link of its own that hangs, refuses, drops answers, delivers writes late and
cuts watches, at random from a seed.
"""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import TypeVar

import pytest

from runtime.elector import Elector, ElectorHooks, Lead
from runtime.errors import ApiError, NoAnswer
from runtime.kube import Selection, WatchEvent
from runtime.leadership import Leadership
from runtime.lease import LeaseSettings
from runtime.objects import LEASES, Key, Object, Resource
from tests.runtime.fake_kube import FakeKube
from tests.runtime.virtual_loop import run

LEASE = Key("ns", "leader")
SETTINGS = LeaseSettings(
    duration=timedelta(seconds=3), renew_deadline=timedelta(seconds=2), retry=timedelta(seconds=0.5)
)
# What is left between the last start of a call and another's lead.
CALL_S = 0.4
T = TypeVar("T")


class Weather(Enum):
    FAIR = auto()
    HUNG = auto()
    REFUSED = auto()
    ANSWER_LOST = auto()
    LATE = auto()


class Link(FakeKube):
    """One elector's way to the shared server."""

    def __init__(self, server: FakeKube, chance: random.Random) -> None:
        super().__init__()
        self.server = server
        self.chance = chance
        self.weather = Weather.FAIR
        self.dead = False
        self.reads = 0

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        self.reads += 1
        return await self._sent(lambda: self.server.get(resource, key, metadata_only=metadata_only))

    async def create(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        return await self._sent(lambda: self.server.create(resource, obj, manager=manager))

    async def replace(self, resource: Resource, obj: Object, *, manager: str) -> Object:
        return await self._sent(lambda: self.server.replace(resource, obj, manager=manager))

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
        async for event in self.server.watch(resource, selection, resource_version=resource_version, timeout=timeout):
            match self.weather:
                case Weather.HUNG:
                    await asyncio.Event().wait()
                case Weather.REFUSED | Weather.ANSWER_LOST:
                    raise NoAnswer("cut")
                case Weather.LATE:
                    await asyncio.sleep(self.chance.uniform(0, 4))
                case Weather.FAIR:
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
    server: FakeKube = field(default_factory=FakeKube)
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


def overlaps(calls: list[Call]) -> list[tuple[Call, Call]]:
    """Return each pair of calls of two identities that ran at one time."""
    ordered = sorted(calls, key=lambda call: call.begun)
    return [
        (one, other)
        for one, other in itertools.pairwise(ordered)
        if one.identity != other.identity and other.begun < one.ended
    ]


async def _storm(seed: int) -> World:
    chance = random.Random(seed)  # noqa: S311  # a seed
    world = World(seed)
    for identity in ("a", "b", "c"):
        world.start(identity)
    await world.until_leads("a", "b", "c")
    for _ in range(40):
        link = world.links[chance.choice("abc")]
        link.weather = chance.choice(list(Weather))
        await asyncio.sleep(chance.uniform(0, 3))
    for link in world.links.values():
        link.weather = Weather.FAIR
    await world.until_leads("a", "b", "c", within_s=15)
    await world.stop()
    return world


@pytest.mark.parametrize("seed", range(40))
def test_in_any_weather_no_two_lead_and_one_leads_afterwards(seed: int) -> None:
    world = run(_storm(seed))

    assert overlaps(world.calls) == []
    assert world.exits == []


@pytest.mark.parametrize("weather", [Weather.HUNG, Weather.REFUSED, Weather.ANSWER_LOST])
def test_a_leader_cut_off_stops_before_the_next_begins(weather: Weather) -> None:
    async def scene() -> World:
        world = World(1)
        world.start("a")
        await world.until_leads("a")
        world.start("b")
        await asyncio.sleep(5)
        world.links["a"].weather = weather
        await world.until_leads("b")
        world.links["a"].weather = Weather.FAIR
        await asyncio.sleep(10)
        world.kill("b")
        await world.until_leads("a")
        await world.stop()
        return world

    world = run(scene())

    assert overlaps(world.calls) == []
    assert world.exits == []


@pytest.mark.parametrize("step", [timedelta(hours=1), timedelta(hours=-1), timedelta(days=3_650)])
def test_a_stepped_wall_clock_changes_nothing(step: timedelta) -> None:
    wall = [datetime(2026, 1, 1, tzinfo=UTC)]

    async def scene() -> World:
        world = World(1)
        world.start("a", wall=lambda: wall[0])
        await world.until_leads("a")
        world.start("b")
        await asyncio.sleep(3)
        wall[0] += step
        await asyncio.sleep(20)
        # The leader's clock is wrong and it is cut off: it must stop all the same.
        world.links["a"].weather = Weather.REFUSED
        await world.until_leads("b")
        await asyncio.sleep(10)
        await world.stop()
        return world

    world = run(scene())
    leaders = [call.identity for call in world.calls]

    assert overlaps(world.calls) == []
    assert leaders == sorted(leaders)


def test_a_killed_leader_is_replaced_once_its_lease_has_run_out() -> None:
    async def scene() -> float:
        world = World(1)
        world.start("a")
        await world.until_leads("a")
        world.start("b")
        await asyncio.sleep(5)
        world.kill("a")
        took = await world.until_leads("b")
        await world.stop()
        return took

    assert run(scene()) <= SETTINGS.duration.total_seconds() + 0.2


def test_a_clean_stop_drains_first_and_hands_over_at_once() -> None:
    async def scene() -> tuple[World, float]:
        world = World(1)
        world.start("a")
        await world.until_leads("a")
        world.start("b")
        await asyncio.sleep(5)
        world.tasks["a"].cancel()
        took = await world.until_leads("b")
        await world.stop()
        return world, took

    world, took = run(scene())

    assert took <= CALL_S + 0.3
    assert overlaps(world.calls) == []


def test_a_stop_in_the_middle_of_a_renewal_frees_the_lease_all_the_same() -> None:
    async def scene(stop_after_s: float) -> str:
        world = World(1)
        world.start("a")
        await world.until_leads("a")
        world.links["a"].weather = Weather.ANSWER_LOST
        await asyncio.sleep(stop_after_s)
        world.links["a"].weather = Weather.FAIR
        world.tasks["a"].cancel()
        await asyncio.wait(world.tasks.values())
        return str(world.server.objects[LEASES, LEASE]["spec"]["holderIdentity"])

    assert {run(scene(each / 10)) for each in range(15)} == {""}


def test_work_that_outlives_the_lease_ends_the_process() -> None:
    async def scene() -> World:
        world = World(1)
        world.start("a", stubborn=True)
        await world.until_leads("a")
        world.start("b")
        await asyncio.sleep(5)
        world.links["a"].weather = Weather.HUNG
        await world.until_leads("b")
        await world.stop()
        return world

    world = run(scene())

    assert world.exits == ["a"]
    assert overlaps(world.calls) == []


def test_a_deleted_lease_is_made_again_by_its_holder() -> None:
    async def scene() -> World:
        world = World(1)
        world.start("a")
        await world.until_leads("a")
        world.start("b")
        await asyncio.sleep(5)
        world.server.remove(LEASES, LEASE.name, namespace=LEASE.namespace)
        await asyncio.sleep(10)
        await world.stop()
        return world

    world = run(scene())

    assert {call.identity for call in world.calls} == {"a"}


def test_a_lease_given_to_another_by_hand_ends_the_leader_without_an_overlap() -> None:
    async def scene() -> World:
        world = World(1)
        world.start("a")
        await world.until_leads("a")
        await asyncio.sleep(5)
        lease = world.server.objects[LEASES, LEASE]
        spec = {**lease["spec"], "holderIdentity": "somebody"}
        world.server.put(LEASES, LEASE.name, namespace=LEASE.namespace, spec=spec)
        await asyncio.sleep(1)
        before = len(world.calls)
        await asyncio.sleep(1)
        during = len(world.calls) - before
        assert during == 0
        await world.until_leads("a")
        await world.stop()
        return world

    run(scene())


def test_that_the_server_answers_again_is_told_once_and_not_at_every_renewal() -> None:
    async def scene() -> int:
        loop = asyncio.get_running_loop()
        reached = 0

        def count() -> None:
            nonlocal reached
            reached += 1

        async def lead(_: Leadership) -> None:
            await asyncio.Event().wait()

        link = Link(FakeKube(), random.Random(1))  # noqa: S311  # a seed
        elector = Elector(link, LEASE, "a", SETTINGS, hooks=ElectorHooks(monotonic=loop.time, reached=count))
        running = asyncio.create_task(elector.run(lead))
        await asyncio.sleep(10)
        for _ in range(2):
            link.weather = Weather.REFUSED
            await asyncio.sleep(60)
            link.weather = Weather.FAIR
            await asyncio.sleep(60)
        running.cancel()
        await asyncio.wait((running,))
        return reached

    assert run(scene()) == 2


def test_work_that_drains_after_a_loss_may_start_nothing() -> None:
    held: list[bool] = []

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        server = FakeKube()
        begun = asyncio.Event()

        async def lead(leadership: Leadership) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                for _ in range(5):
                    held.append(leadership.holds())
                    await asyncio.sleep(0.1)
                raise

        elector = Elector(server, LEASE, "a", SETTINGS, hooks=ElectorHooks(monotonic=loop.time))
        running = asyncio.create_task(elector.run(lead))
        await begun.wait()
        spec = {**server.objects[LEASES, LEASE]["spec"], "holderIdentity": "somebody"}
        server.put(LEASES, LEASE.name, namespace=LEASE.namespace, spec=spec)
        await asyncio.sleep(1.5)
        running.cancel()
        await asyncio.wait((running,))

    run(scene())

    assert held == [False] * 5


def test_each_term_has_a_higher_epoch() -> None:
    epochs: list[int] = []

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        server = FakeKube()
        for identity in ("a", "b", "a"):

            async def lead(leadership: Leadership) -> None:
                epochs.append(leadership.epoch)
                await asyncio.sleep(1)

            hooks = ElectorHooks(monotonic=loop.time)
            await Elector(server, LEASE, identity, SETTINGS, hooks=hooks).run(lead)

    run(scene())

    assert epochs == sorted(set(epochs))
    assert len(epochs) == 3


def test_a_standby_watches_and_does_not_poll() -> None:
    async def scene() -> int:
        world = World(1)
        world.start("a")
        await world.until_leads("a")
        world.start("b")
        await asyncio.sleep(60)
        await world.stop()
        return world.links["b"].reads

    assert run(scene()) <= 3


class CarelessElector(Elector):
    """What some libraries do: an error that is not the API server's ends the renewals, and the work goes on."""

    async def _reign(self, leadership: Leadership, lead: Lead) -> bool:
        eternal = Leadership(SETTINGS, leadership.epoch, float("inf"), lambda: 0.0)
        work = asyncio.ensure_future(lead(eternal))
        while not work.done():
            try:
                await self._renew(leadership)
            except NoAnswer:
                break
            await asyncio.sleep(SETTINGS.retry.total_seconds())
        await work
        return True


def test_this_world_would_show_two_careless_leaders() -> None:
    async def scene() -> World:
        world = World(1)
        world.start("a", kind=CarelessElector)
        await world.until_leads("a")
        world.start("b")
        await asyncio.sleep(3)
        world.links["a"].weather = Weather.REFUSED
        await world.until_leads("b")
        await asyncio.sleep(3)
        await world.stop()
        return world

    assert overlaps(run(scene()).calls) != []


@pytest.mark.parametrize("stop_after_s", [0.001, 0.004, 0.006, 0.008, 0.011, 0.02])
def test_a_candidate_stopped_in_the_moment_of_its_election_leaves_the_lease_free(stop_after_s: float) -> None:
    async def scene() -> str:
        world = World(1)
        world.start("a")
        await asyncio.sleep(stop_after_s)
        world.tasks["a"].cancel()
        await asyncio.wait(world.tasks.values())
        lease = world.server.objects.get((LEASES, LEASE), {"spec": {"holderIdentity": ""}})
        return str(lease["spec"]["holderIdentity"])

    assert run(scene()) == ""


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match="retry"):
        LeaseSettings(duration=timedelta(seconds=2), renew_deadline=timedelta(seconds=2))
