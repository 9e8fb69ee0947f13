"""Electors on bad networks, in virtual time: never two at once, and always one again when the network is well.

Each elector reaches the API server over a link of its own that hangs, refuses, drops answers, delivers writes late and
cuts watches, at random from a seed.
"""

import asyncio
import random
from datetime import timedelta

import pytest

from fairlead.simulation.virtual_time import VirtualLoop
from runtime.elector import Elector, ElectorHooks, Lead
from runtime.errors import NoAnswer
from runtime.leadership import Leadership
from runtime.lease import LeaseSettings
from runtime.objects import LEASES
from tests.runtime.elections import ANSWER_S, CALL_S, LEASE, SETTINGS, Weather, World, led, overlaps
from tests.runtime.virtual_loop import run
from tests.support.memory_kube import MemoryKube

LOOP = VirtualLoop


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


@pytest.mark.parametrize("seed", range(16))
def test_two_never_lead_in_any_weather_and_one_leads_afterwards(seed: int) -> None:
    world = run(_storm(seed))

    assert overlaps(world.calls) == []
    assert world.exits == []


@pytest.mark.parametrize("call", ["take", "renew"])
def test_a_lease_counts_from_the_sending_of_a_write_that_is_answered_late(call: str) -> None:
    async def scene() -> tuple[World, float]:
        world = World(1)
        world.start("a")
        if call == "renew":
            await world.until_leads("a")
        world.links["a"].weather, before = Weather.SLOW_ANSWER, world.server.server.version
        while world.server.server.version == before:  # noqa: ASYNC110 - on virtual time
            await asyncio.sleep(0.01)
        # The write has arrived. Its answer comes, and no other.
        world.links["a"].weather, sent_at = Weather.HUNG, asyncio.get_running_loop().time()
        await asyncio.sleep(10)
        await world.stop()
        return world, sent_at

    world, sent_at = run(scene())

    assert world.calls[-1].begun < sent_at + SETTINGS.renew_deadline.total_seconds()
    assert world.calls[-1].begun > sent_at + ANSWER_S


def test_a_clean_stop_drains_first_and_hands_over_at_once() -> None:
    async def scene(world: World) -> float:
        world.tasks["a"].cancel()
        return await world.until_leads("b")

    world, took = run(led(scene))

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

    assert {run(scene(tenths / 10)) for tenths in range(15)} == {""}


def test_work_that_outlives_the_lease_ends_the_process() -> None:
    async def scene(world: World) -> None:
        world.links["a"].weather = Weather.HUNG
        await world.until_leads("b")

    world, _ = run(led(scene, stubborn=True))

    assert world.exits == ["a"]
    assert overlaps(world.calls) == []


def test_a_deleted_lease_is_made_again_by_its_holder() -> None:
    async def scene(world: World) -> None:
        world.server.remove(LEASES, LEASE.name, namespace=LEASE.namespace)
        await asyncio.sleep(10)

    world, _ = run(led(scene))

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


async def test_each_term_has_a_higher_epoch() -> None:
    epochs: list[int] = []

    loop = asyncio.get_running_loop()
    server = MemoryKube()
    for identity in ("a", "b", "a"):

        async def lead(leadership: Leadership) -> None:
            epochs.append(leadership.epoch)
            await asyncio.sleep(1)

        hooks = ElectorHooks(monotonic=loop.time)
        await Elector(server, LEASE, identity, SETTINGS, hooks=hooks).run(lead)

    assert epochs == sorted(set(epochs))
    assert len(epochs) == 3


def test_a_standby_watches_and_does_not_poll() -> None:
    async def scene(_: World) -> None:
        await asyncio.sleep(55)

    world, _ = run(led(scene))

    assert world.links["b"].reads <= 3


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


def test_the_world_of_the_test_would_show_two_careless_leaders() -> None:
    async def scene(world: World) -> None:
        world.links["a"].weather = Weather.REFUSED
        await world.until_leads("b")
        await asyncio.sleep(3)

    world, _ = run(led(scene, kind=CarelessElector))

    assert overlaps(world.calls) != []


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match="retry"):
        LeaseSettings(duration=timedelta(seconds=2), renew_deadline=timedelta(seconds=2))
