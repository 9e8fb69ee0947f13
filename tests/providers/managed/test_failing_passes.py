"""A pass that fails, by a defect or again and again, is reported on its resource, once, until a pass succeeds."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from datetime import timedelta

import pytest

from providers.external.client import Target
from runtime.errors import NotLeading, Unavailable
from runtime.objects import Key, Object, Resource
from tests.providers.paced import Paced, texts
from tests.providers.toy import ToyCloud, ToyParameters
from tests.providers.world import World
from tests.support.memory_kube import MemoryKube

KEY = Key("team", "db")


class Broken(ToyCloud):
    """A cloud whose answers meet a defect of ours, or never come."""

    defect: Exception | None = None
    hangs = False

    async def looked(self, _target: Target[ToyParameters]) -> None:
        if self.defect is not None:
            raise self.defect
        if self.hangs:
            await asyncio.Event().wait()


def _conditions(world: World) -> dict[str, str]:
    conditions: list[Object] = world.status["conditions"]
    return {condition["type"]: f"{condition['status']} {condition['reason']}" for condition in conditions}


async def _ready(cloud: Broken) -> tuple[World, Paced]:
    world = World(cloud)
    paced = Paced(world)
    world.ask()
    await paced.settle()
    return world, paced


async def test_spec_that_another_crd_let_in_is_named_and_nothing_is_done_even_at_its_deletion() -> None:
    world, paced = await _ready(cloud := Broken())
    world.ask(deletionPolicy="Sideways")
    paced.wake()
    await paced.step()
    assert _conditions(world) == {
        "Ready": "True Available",
        "Synced": "False InvalidValue",
        "Reconciling": "True InvalidValue",
    }
    assert "Sideways" in str(world.condition()["message"])
    assert "$.deletionPolicy" in str(world.condition()["message"])

    calls = len(cloud.calls)
    world.delete()
    paced.wake()
    await paced.step()
    assert (world.reason(), len(cloud.calls)) == ("InvalidValue", calls)

    world.ask()
    paced.wake()
    await paced.settle()
    assert world.get() is None


async def test_defect_hides_no_lost_database() -> None:
    world, _ = await _ready(cloud := Broken())
    await world.lose()
    cloud.defect = TypeError("x")
    with pytest.raises(TypeError):
        await world.reconcile(KEY)
    assert _conditions(world)["Ready"] == "False DatabaseLost"


class Refusing(MemoryKube):
    """An API server that refuses to read Secrets with an error."""

    error: Exception | None = None

    async def get(self, resource: Resource, key: Key, *, metadata_only: bool = False) -> Object:
        if self.error is not None and resource.plural == "secrets":
            raise self.error
        return await super().get(resource, key, metadata_only=metadata_only)


async def test_requests_that_fail_in_a_row_are_reported_and_single_ones_are_not() -> None:
    kube = Refusing()
    world = World(Broken(), kube=kube)
    paced = Paced(world)
    world.ask()
    await paced.settle()
    reported = []
    for error in (Unavailable("etcd is slow"), None, *[Unavailable("etcd is slow")] * 4):
        kube.error = error
        paced.wake()
        await paced.step()
        reported.append(_conditions(world)["Synced"])
    assert reported == ["True InSync"] * 4 + ["False RequestFailed"] * 2
    assert "etcd is slow" in " ".join(texts(world.get()))


async def test_process_that_leads_no_more_reports_nothing() -> None:
    kube = Refusing()
    world = World(Broken(), kube=kube)
    paced = Paced(world)
    world.ask()
    await paced.settle()
    writes, kube.error = len(kube.writes), NotLeading("over")
    for _ in range(12):
        paced.wake()
        await paced.step()
    assert len(kube.writes) == writes


@pytest.mark.parametrize("is_deleted", [True, False])
async def test_what_lost_its_labels_says_what_a_person_can_do(*, is_deleted: bool) -> None:
    world = World(ToyCloud())
    world.ask()
    await world.settle()
    world.compose()
    obj = deepcopy(world.get() or {})
    obj["metadata"]["labels"] = {}
    world.kube.store(world.kind.resource, obj)
    if is_deleted:
        world.delete()
    await world.passes(2)

    assert world.reason() == ("HeldDeletion" if is_deleted else "NotOwned")
    assert world.reason("Ready") == ("HeldDeletion" if is_deleted else "Available")
    await world.passes(30, timedelta(seconds=30))
    assert world.condition("Ready")["status"] == "False"
    assert ("kubectl patch toy/db -n team" in world.condition()["message"]) is is_deleted
    # To detach it touches nothing, whosever it is.
    world.annotate(teardown=f"{world.uid}/Detach")
    await world.passes(2)
    assert (world.get() is None) is is_deleted
    assert world.cloud.calls == ["create"]
