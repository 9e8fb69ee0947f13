"""When a pass looks at the cloud: where no log or list of before does; whether anybody waits for it is metered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from providers.external.client import Clients, ExternalList, Target
from providers.external.observation import Absent, Present
from providers.managed import record
from runtime.errors import Transient
from runtime.objects import Object
from tests.providers.toy import ToyCloud, ToyParameters, provider_of
from tests.providers.world import World


@dataclass
class LoggedCloud(ToyCloud):
    """Answers a look with all that it saw, and has a log of changes that tests write."""

    observations: int = 0
    is_log_refused: bool = False
    changed_at: datetime | None = None
    since: list[datetime] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    async def observe(self, target: Target[ToyParameters]) -> Present[ToyParameters, Any] | Absent:
        self.observations += 1
        self.requests.append("look")
        observation = await super().observe(target)
        if isinstance(observation, Absent):
            return observation
        observed = observation.observed
        answer = {"size": observed.spec.size, "incarnation": observed.incarnation}
        return Present(replace(observed, answer=msgspec.json.encode(answer)))

    async def observe_listed(self, target: Target[ToyParameters], answer: bytes) -> Present[ToyParameters, Any]:
        fields = msgspec.json.decode(answer)
        observation = await super().observe(target)
        assert isinstance(observation, Present)
        spec = ToyParameters(fields["size"], {})
        return Present(replace(observation.observed, spec=spec, incarnation=fields["incarnation"]))

    def is_unchanged(self, name: str, since: datetime, now: datetime) -> bool:
        assert name in self.toys
        assert since <= now
        self.since.append(since)
        return self.changed_at is None or self.changed_at < since

    async def list(self) -> ExternalList:
        if self.is_log_refused:
            raise Transient("cannot list the changes")
        self.lists += 1
        self.requests.append("list")
        return ExternalList({}, complete=False)


def _world(cloud: LoggedCloud, former: World | None = None) -> World:
    provider = provider_of(
        cloud, clients=lambda toys: Clients(toys, toys, toys, toys, toys, toys.try_login, listed=toys, changes=toys)
    )
    world = World(cloud, provider=provider, kube=former.kube if former is not None else None, process=f"of-{id(cloud)}")
    world.now = former.now if former is not None else world.now
    world.gatherer.answers.enqueue_list = lambda _config, _after: None
    return world


async def _at_rest() -> tuple[World, LoggedCloud]:
    cloud = LoggedCloud()
    world = _world(cloud)
    world.ask()
    await world.settle()
    await world.step()
    cloud.observations = 0
    return world, cloud


def _last_seen(world: World) -> Object:
    last_seen: Object = world.status.get("lastSeen") or {}
    return last_seen


async def test_next_process_relies_on_what_stands_in_status() -> None:
    former, cloud = await _at_rest()
    world = _world(cloud, former)
    await world.step_after()
    assert (cloud.observations, world.reason()) == (0, "InSync")


async def test_log_that_cannot_be_read_leaves_looks_one_by_one() -> None:
    world, cloud = await _at_rest()
    cloud.is_log_refused = True
    await world.step_after()
    assert (cloud.observations, world.reason()) == (1, "InSync")


async def test_look_that_fails_leaves_what_was_seen() -> None:
    world, cloud = await _at_rest()
    before = _last_seen(world)
    cloud.changed_at = world.now
    cloud.faults.append(("observe", Transient("no answer"), False))
    await world.step_after()
    assert _last_seen(world) == before


async def test_what_was_seen_of_another_incarnation_counts_for_nothing() -> None:
    world, cloud = await _at_rest()
    obj = world.get() or {}
    obj["status"]["lastSeen"]["answer"] = obj["status"]["lastSeen"]["answer"].replace("incarnation-1", "incarnation-0")
    world.kube.store(world.kind.resource, obj)
    await world.step_after()
    assert (cloud.observations, world.reason()) == (1, "InSync")


async def test_first_look_of_a_process_comes_after_its_first_list() -> None:
    former, cloud = await _at_rest()
    cloud.requests.clear()
    world = _world(cloud, former)
    world.annotate(**{"reconcile-requested-at": "1"})
    await world.step_after()
    assert cloud.requests[:2] == ["list", "look"]


@dataclass
class ListedCloud(LoggedCloud):
    """Has no log of changes: its lists answer for each object, and `listed` is what they show instead of the truth."""

    listed: dict[str, Any] = field(default_factory=dict)

    async def list(self) -> ExternalList:
        answers = {
            name: msgspec.json.encode({"size": toy.size, "incarnation": toy.incarnation} | self.listed)
            for name, toy in self.toys.items()
        }
        return ExternalList(dict.fromkeys(answers, ""), complete=True, answers=answers)

    async def observe_listed(self, target: Target[ToyParameters], answer: bytes) -> Present[ToyParameters, Any]:
        listed = await super().observe_listed(target, answer)
        installation = msgspec.json.decode(answer).get("installation", target.owner.installation)
        return Present(replace(listed.observed, owner=replace(target.owner, installation=installation)))


def _open_an_intent_of_another_process(world: World, _cloud: ListedCloud) -> None:
    obj = world.get() or {}
    until = world.now + timedelta(hours=1)
    intent = record.Intent(record.INTENT_FORMAT, "another", until, (record.Call("Update", "db"),))
    world.kube.store(world.kind.resource, {**obj, "status": {**obj["status"], "intent": record.dump_intent(intent)}})


LISTED: dict[str, tuple[Callable[[World, ListedCloud], object], bool]] = {
    "an answer of before does": (lambda _world, _cloud: None, False),
    "it shows another owner": (lambda _world, cloud: cloud.listed.update(installation="elsewhere"), True),
    "it shows another incarnation": (lambda _world, cloud: cloud.listed.update(incarnation="another"), True),
    "another process may be at work": (_open_an_intent_of_another_process, True),
    "somebody asked for a pass": (lambda world, _cloud: world.annotate(**{"reconcile-requested-at": "1"}), True),
    "somebody consented to something": (lambda world, _cloud: world.annotate(consent="size=9"), True),
}


@pytest.mark.parametrize("case", LISTED)
async def test_lists_answer_stands_for_a_look_where_it_is_ours_and_nobody_waits(case: str) -> None:
    cloud = ListedCloud()
    provider = provider_of(
        cloud, clients=lambda toys: Clients(toys, toys, toys, toys, toys, toys.try_login, listed=toys)
    )
    world = World(cloud, provider=provider)
    world.gatherer.answers.enqueue_list = lambda _config, _after: None
    world.ask()
    await world.settle()
    await world.step()
    begin, is_looked_at = LISTED[case]

    begin(world, cloud)
    cloud.observations = 0
    await world.step_after()

    assert (cloud.observations > 0) is is_looked_at
