"""A consent allows one act, and is used by it, also where the resource has forgotten what the cloud remembers."""

from __future__ import annotations

import itertools
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from providers.external.client import Target
from providers.external.observation import Absent, Class, Present
from runtime.objects import Key
from tests.providers.gates import KilledError
from tests.providers.toy import TOYS, Toy, ToyCloud, ToyParameters, provider_of
from tests.providers.world import OWN, World, settled


def _restored_server() -> ToyCloud:
    """A cloud that gives each new database the same incarnation, as a restored server gives its oids again."""
    return ToyCloud(numbers=itertools.count(1, 0))


async def _lost(world: World) -> str:
    """Lose the database and wait until that is reported; return its incarnation."""
    incarnation = world.toy.incarnation
    await world.lose()
    return incarnation


async def test_lost_database_is_given_up_once_for_each_consent() -> None:
    world = await settled(cloud := _restored_server())
    lost = await _lost(world)

    world.annotate(consent=f"recreate={lost}")
    await world.settle()
    assert world.reason("Ready") == "Available"
    assert [toy.incarnation for toy in cloud.toys.values()] == [lost]

    assert await _lost(world) == lost
    assert cloud.toys == {}
    assert "was used already" in str(world.get())

    # Taken away and given again it is another consent.
    world.annotate(consent="")
    await world.step()
    world.annotate(consent=f"recreate={lost}")
    await world.settle()
    assert world.reason("Ready") == "Available"


@pytest.mark.parametrize("done", [False, True], ids=["before the create", "after the create"])
async def test_create_that_was_interrupted_needs_no_second_consent_and_leaves_none(*, done: bool) -> None:
    world = await settled(cloud := _restored_server())
    lost = await _lost(world)
    world.annotate(consent=f"recreate={lost}")
    cloud.faults.append(("create", KilledError(), done))

    with pytest.raises(KilledError):
        await world.step()
    successor = World(cloud, kube=world.kube, process="process-2")
    successor.now = world.now + timedelta(minutes=1)
    await successor.settle()

    assert successor.reason("Ready") == "Available"
    await _lost(successor)


async def test_recreation_that_was_consented_to_before_a_loss_is_void() -> None:
    world = await settled(_restored_server())
    world.annotate(consent=f"recreate={world.toy.incarnation}")
    await world.step()

    await _lost(world)


def _loses(cloud: ToyCloud) -> Any:
    return provider_of(cloud, classify=lambda change, _: replace(change, kind=Class.LOSS))


async def test_consent_to_a_loss_counts_once() -> None:
    cloud = ToyCloud()
    world = await settled(cloud, _loses(cloud), size=7)
    world.ask(size=0)
    world.annotate(consent="size=0")
    await world.settle()
    assert [toy.size for toy in cloud.toys.values()] == [0]
    assert world.status["usedConsents"] == ["size=0"]
    writes = len(world.kube.writes)
    await world.passes(3)
    assert len(world.kube.writes) == writes

    # Up again by a consent of its own, and down again only by a new one.
    world.annotate(consent="size=0,size=7")
    world.ask(size=7)
    await world.settle()
    world.ask(size=0)
    await world.step()
    assert (world.reason("Stalled"), [toy.size for toy in cloud.toys.values()]) == ("HeldChange", [7])
    assert "size=0` (the one that is there was used already" in str(world.get())


async def test_consent_to_an_adoption_counts_once() -> None:
    world = World(cloud := ToyCloud())
    world.configure(allowAdoption=True)
    world.ask()
    await world.settle()
    ((name, first),) = cloud.toys.items()
    cloud.toys[name] = Toy("second", first.owner, 10)
    await world.step()
    assert world.reason() == "Replaced"
    world.annotate(adopt="second")
    await world.settle()
    assert world.reason() in {"InSync", "PasswordUnknown"}
    assert world.status["usedConsents"] == ["adopt=second"]

    # It goes, another one comes by another way, and the second returns: nobody agreed to that.
    edited = deepcopy(world.get() or {})
    edited["metadata"]["annotations"]["fairlead.dev/incarnation"] = "third"
    world.kube.store(TOYS, edited)
    await world.step()
    assert world.reason() == "Replaced"
    assert "--overwrite toy/db -n team fairlead.dev/adopt=second/" in str(world.get())


async def adopted(passwords: dict[str, str]) -> World:
    world = World(cloud := ToyCloud())
    world.configure(allowAdoption=True)
    cloud.toys["legacy"] = Toy("incarnation-9", None, 10, passwords=dict(passwords))
    world.ask(size=10)
    world.annotate(**{"external-name": "legacy"})
    await world.step()
    synced = world.condition("Synced")
    assert (synced["status"], synced["reason"]) == ("False", "NotOwned")
    assert f"fairlead.dev/adopt=incarnation-9/{world.status['adoption']['hash']}" in synced["message"]
    world.annotate(adopt="incarnation-9")
    await world.passes(5)
    return world


@pytest.mark.parametrize("passwords", [{}, {"legacy_app": "theirs"}])
async def test_adoption_creates_a_login_where_none_of_ours_is(passwords: dict[str, str]) -> None:
    world = await adopted(passwords)

    assert world.reason("Ready") == "Available"
    assert world.reason("Synced") == "InSync"
    toy = world.cloud.toys["legacy"]
    assert {name: toy.passwords[name] for name in passwords} == passwords
    assert len(toy.passwords) == len(passwords) + 1


@dataclass
class RecordingCloud(ToyCloud):
    """Keeps a record of the newest database under each name, as the on-prem server's table of ownership does."""

    records: dict[str, str] = field(default_factory=dict)

    async def observe(self, target: Target[ToyParameters]) -> Present[ToyParameters, Any] | Absent:
        seen = await super().observe(target)
        if isinstance(seen, Present):
            self.records[target.name] = seen.observed.incarnation
            return seen
        recorded = self.records.get(target.name, "")
        return replace(seen, recorded="" if recorded == target.incarnation else recorded)


def _forget(world: World, *, status: bool = True) -> None:
    """Take our annotations and the status away, as a backup that restores neither does."""
    obj = deepcopy(world.kube.objects[TOYS, Key("team", "db")])
    obj["metadata"]["annotations"] = {
        name: text for name, text in obj["metadata"].get("annotations", {}).items() if name not in OWN
    }
    if status:
        obj.pop("status", None)
    world.kube.store(TOYS, obj)


async def test_forgotten_database_that_is_gone_is_not_replaced() -> None:
    world = await settled(cloud := RecordingCloud())
    lost = world.toy.incarnation
    cloud.toys.clear()
    _forget(world)

    await world.passes(4, timedelta(minutes=1))

    assert cloud.toys == {}
    assert world.reason("Stalled") == "DatabaseLost"
    assert f"recreate={lost}" in str(world.get())
    world.annotate(consent=f"recreate={lost}")
    await world.settle()
    assert world.reason("Ready") == "Available"


async def test_consent_that_was_used_does_not_count_again_once_its_use_is_forgotten() -> None:
    world = await settled(cloud := RecordingCloud())
    first = world.toy.incarnation
    await world.lose()
    before = deepcopy(world.kube.objects[TOYS, Key("team", "db")])
    world.annotate(consent=f"recreate={first}")
    await world.settle()
    second = world.toy.incarnation

    # A backup of the moment in which the first one was lost comes back, the person's consent with it.
    before["metadata"]["annotations"]["fairlead.dev/consent"] = f"recreate={first}"
    before.pop("status")
    world.kube.store(TOYS, before)
    cloud.toys.clear()
    await world.passes(4, timedelta(minutes=1))

    assert cloud.toys == {}
    assert world.reason("Stalled") == "DatabaseLost"
    assert f"recreate={second}" in str(world.get())
