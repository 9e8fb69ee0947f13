"""What stops a call at the last moment, and what a finalizer waits for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from providers.external.client import Target
from providers.external.observation import Absent, Present
from runtime.errors import Transient, WriteConflict
from runtime.objects import Key, Object, Resource
from tests.providers.toy import ToyCloud, ToyParameters
from tests.providers.world import World, settled
from tests.support.memory_kube import MemoryKube


class _EditedBeforeTheIntent(MemoryKube):
    """An API server at which somebody writes just before an intent arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.edit: Callable[[], object] | None = None

    async def json_patch(
        self, resource: Resource, key: Key, operations: list[Object], *, manager: str, subresource: str = ""
    ) -> Object:
        if subresource == "status" and "intent" in operations[-1]["value"] and self.edit is not None:
            edit, self.edit = self.edit, None
            edit()
        return await super().json_patch(resource, key, operations, manager=manager, subresource=subresource)


@pytest.mark.parametrize("deleting", [False, True], ids=["a change", "a deletion"])
async def test_call_is_stopped_by_an_edit_between_decision_and_intent(*, deleting: bool) -> None:
    world = World(cloud := ToyCloud(), kube=(kube := _EditedBeforeTheIntent()))
    world.ask(size=10)
    await world.settle()
    cloud.calls.clear()

    world.ask(size=20)
    if deleting:
        world.delete()
    kube.edit = lambda: world.ask(size=30, deletionPolicy="Orphan")
    with pytest.raises(WriteConflict):
        await world.step()

    assert cloud.calls == []
    await world.settle()
    assert cloud.calls == (["release"] if deleting else ["update ['size']"])
    assert [toy.size for toy in cloud.toys.values()] == [10 if deleting else 30]


@dataclass
class _SeenOnceMore(ToyCloud):
    """A cloud that answers once that a database is gone, and shows it again."""

    observations: int = 0

    async def observe(self, target: Target[ToyParameters]) -> Present[ToyParameters, Any] | Absent:
        if not any(call.startswith("delete") for call in self.calls):
            self.kept = dict(self.toys)
            return await super().observe(target)
        self.observations += 1
        if self.observations > 1:
            self.toys = dict(self.kept)
        return await super().observe(target)


async def test_deletion_is_believed_after_two_observations() -> None:
    world = await settled(cloud := _SeenOnceMore())
    world.delete()

    await world.step()

    assert (cloud.observations, world.get() is not None) == (2, True)
    assert "still there" in str(world.get())


@dataclass
class _WithoutBackup(ToyCloud):
    """A cloud whose deletions keep nothing, whatever the policy."""

    async def latest(self, target: Target[ToyParameters]) -> str:
        assert target.name
        return ""


@pytest.mark.parametrize("backups", [True, False])
async def test_lost_database_ends_under_snapshot_only_with_a_backup(*, backups: bool) -> None:
    world = await settled(cloud := ToyCloud() if backups else _WithoutBackup(), deletionPolicy="Snapshot")
    cloud.calls += [f"backup {name}" for name in cloud.toys]
    cloud.toys.clear()
    world.delete()

    await world.passes(5, timedelta(minutes=1))

    assert (world.get() is None) is backups
    if not backups:
        assert (world.reason("Ready"), world.reason("Stalled")) == ("BackupImpossible", "BackupImpossible")
        assert "Delete or Orphan" in str(world.get())


async def test_backup_that_cannot_be_listed_is_not_taken_for_missing() -> None:
    world = await settled(cloud := ToyCloud(), deletionPolicy="Snapshot")
    cloud.toys.clear()
    world.delete()

    for _ in range(6):
        cloud.faults = [("backup_of", Transient("no answer"), False)]
        await world.step()
        world.now += timedelta(minutes=1)

    assert (world.get() is not None, world.reason()) == (True, "CloudUnreachable")


async def test_operation_that_never_answers_is_over_after_a_day() -> None:
    world = await settled(cloud := ToyCloud(slow=1))
    world.ask(size=20)
    await world.step()
    cloud.faults += [("poll", Transient("no answer"), False)] * 9
    for hours, is_open in ((23, True), (2, False)):
        await world.step_after(timedelta(hours=hours))
        assert ("operation" in world.status) is is_open
