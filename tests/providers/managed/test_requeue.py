"""How often the generic reconciler observes, and repeats what failed: only failures are counted, and not stored."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from providers.external.client import Target
from providers.external.observation import Phase
from runtime.errors import Blocked, Failure, Terminal, Transient
from runtime.results import Result
from tests.providers.managed.test_asynchronous import LateCloud, ready, world_of
from tests.providers.toy import Seen, ToyCloud, ToyParameters
from tests.providers.world import World, settled


async def _pass(world: World) -> timedelta:
    """Make one pass as its result asks for, the clock moved on; return how long that was."""
    result = await world.step()
    after = result.requeue_after if isinstance(result, Result) else timedelta(minutes=5)
    world.now += after or timedelta(minutes=10)
    return after or timedelta(minutes=10)


@dataclass
class Refusing(LateCloud):
    """Answers calls of the kinds in `refuses` with a `failure`, in a `state` of its own."""

    refuses: tuple[str, ...] = ()
    failure: Failure = field(default_factory=lambda: Blocked("CloudBusy", "cannot do it: the state allows none"))
    refused: int = 0
    state: str = "fine"

    def _fails(self, call: str, *, done: bool) -> None:
        if call in self.refuses and not done:
            self.refused += 1
            raise self.failure
        super()._fails(call, done=done)

    def shown(self, target: Target[ToyParameters], observed: Seen) -> Seen:
        observed = super().shown(target, observed)
        return replace(observed, state=self.state) if observed.phase is Phase.READY else observed


def _begin(world: World, call: str) -> None:
    if call == "delete":
        world.delete()
    elif call == "update":
        world.ask(size=99)
    else:
        world.ask(passwordRotation={"token": "2"})


REFUSALS = (
    Terminal("InvalidValue", "no such value"),
    Terminal("AccessDenied", "no right"),
    Blocked("QuotaExceeded", "no room"),
    Transient("a code that nobody knows"),
)


@pytest.mark.parametrize("failure", REFUSALS, ids=str)
@pytest.mark.parametrize("call", ["create", "delete", "update", "set_password"])
async def test_refused_call_is_sent_at_most_twenty_times_an_hour_in_the_same_words(call: str, failure: Failure) -> None:
    cloud = Refusing(slow=1, refuses=(call,), failure=failure)
    world = world_of(cloud)
    if call == "create":
        world.ask()
    else:
        world = await ready(cloud)
        _begin(world, call)
    words = set[str]()
    for _ in range(2):
        until, cloud.refused = world.now + timedelta(hours=1), 0
        words.clear()
        while world.now < until:
            await _pass(world)
            words.add(str(world.status["conditions"]))
        assert cloud.refused <= 20
    # Those of the second hour.
    assert len(words) == 1
    assert world.reason() == getattr(failure, "reason", "CloudUnreachable")
    # What a deletion intends is known to the next process.
    assert call == "delete" or "intent" not in world.status

    cloud.refuses = ()
    world.annotate(**{"reconcile-requested-at": "now"})
    await world.settle(most=60)
    assert world.get() is None if call == "delete" else world.reason() == "InSync"


@dataclass
class HalfReadCloud(ToyCloud):
    """Shows, while `is_shut`, a database without what only a session with it shows: here, its size."""

    is_shut: bool = False

    def shown(self, target: Target[ToyParameters], observed: Seen) -> Seen:
        return replace(observed, spec=target.spec, incomplete=True) if self.is_shut else observed


async def test_incomplete_observation_is_repeated_ever_more_slowly_until_all_is_read() -> None:
    world = await settled(cloud := HalfReadCloud())
    (toy,) = cloud.toys.values()

    toy.size, cloud.is_shut = 99, True
    assert [(await _pass(world)).total_seconds() for _ in range(5)] == [5, 10, 20, 40, 80]
    assert world.reason() == "InSync"
    cloud.is_shut = False
    await world.settle()
    assert toy.size == 10

    result = await world.step()
    assert isinstance(result, Result)
    assert result.requeue_after is None, "the resync alone reads again what was read in whole"


@dataclass
class Observing(ToyCloud):
    """Counts how often it is observed."""

    observed: int = 0

    async def looked(self, target: Target[ToyParameters]) -> None:
        del target
        self.observed += 1


@pytest.mark.parametrize(("objects", "most"), [(1, 3 + 3), (8, 60 + 30)], ids=["of an object", "of a namespace"])
async def test_passes_that_people_request_are_bounded_and_the_last_one_is_made(objects: int, most: int) -> None:
    world = World(cloud := Observing())
    databases = [f"db-{number}" for number in range(objects)]
    for name in databases:
        world.ask(name)
        await world.settle(name)
    cloud.observed = 0
    for second in range(30):
        for name in databases:
            world.annotate(name, **{"reconcile-requested-at": str(second)})
            await world.step(name)
        world.now += timedelta(seconds=1)

    assert 0 < cloud.observed <= most
    for name in databases:
        while (world.get(name) or {})["status"]["lastHandledReconcileAt"] != "29":
            world.now += timedelta(seconds=10)
            await world.step(name)
    world.ask(databases[0], size=20)
    await world.settle(databases[0])
    assert world.reason(name=databases[0]) == "InSync"
