"""A provider that starts anew in the middle of what takes time: nothing is destroyed or made for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from providers.accounts.destroys import FIELD, destroys_within_the_hour, with_one_more
from runtime.errors import Transient
from runtime.objects import Key
from tests.providers.toy import CONFIGS, ToyCloud
from tests.providers.world import World
from tests.support import yaml_texts

CRDS = Path(__file__).resolve().parents[3] / "crds"
_NAMES = [f"db-{number}" for number in range(6)]


def restarted(world: World, process: str) -> World:
    """Go on with another process, after the time of its predecessor's calls."""
    successor = World(world.cloud, kube=world.kube, process=process)
    successor.now = world.now + timedelta(seconds=30)
    return successor


async def created(*names: str) -> World:
    world = World(ToyCloud())
    for name in names:
        world.ask(name)
        await world.settle(name)
        assert world.reason("Ready", name) == "Available"
    return world


async def an_hour_old(*names: str) -> World:
    """Create databases whose deletions count for the destroy rate limit."""
    world = await created(*names)
    world.now += timedelta(minutes=61)
    return world


def remembered(world: World) -> int:
    config = world.kube.objects[CONFIGS, Key("", "default")]
    return destroys_within_the_hour(config.get("status", {}), "Toy", world.now)["team"]


async def test_deletion_that_was_interrupted_is_finished_by_the_next_process_over_the_destroy_limit() -> None:
    world = await an_hour_old(*_NAMES)
    for name in _NAMES:
        world.delete(name)
    for name in _NAMES[:2]:
        await world.step(name)
    world.cloud.faults.append(("delete", Transient("cut off"), False))
    await world.step(_NAMES[2])
    assert len(world.cloud.toys) == 4

    world = restarted(world, "process-2")
    await world.settle(_NAMES[2])

    assert len(world.cloud.toys) == 3
    assert remembered(world) == 3
    await world.step(_NAMES[3])
    assert world.reason("Synced", _NAMES[3]) == "Brake"


async def test_restarts_within_the_grace_only_make_it_longer() -> None:
    world = await created("db")
    (toy,) = world.cloud.toys.values()
    world.annotate(consent=f"recreate={toy.incarnation}")
    world.cloud.toys.clear()
    calls = len(world.cloud.calls)
    for number in range(4):
        await world.step()
        await world.step_after(timedelta(seconds=55))
        assert world.cloud.calls[calls:] == []
        world = restarted(world, f"process-{number}-of-the-grace")

    await world.step()
    await world.step_after(timedelta(seconds=61))
    assert world.cloud.calls[calls:] == ["create"]


@pytest.mark.parametrize("path", sorted(CRDS.glob("*_providerconfigs.yaml")), ids=lambda path: path.name.split(".")[0])
def test_schema_keeps_the_recent_destroys(path: Path) -> None:
    crd = yaml_texts.load(path)
    (version,) = crd["spec"]["versions"]
    field = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"][FIELD]

    (entry,) = with_one_more({}, "Toy", "team", datetime(2026, 11, 21, 12, tzinfo=UTC))[FIELD]
    assert set(field["items"]["properties"]) == set(entry)
    assert field["maxItems"] >= 61 * 4
