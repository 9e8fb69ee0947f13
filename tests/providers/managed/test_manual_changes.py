"""What people do from outside: pauses, other schemas, adoptions; orphans whose account stays out of reach."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from providers.external.client import Fence, Target
from providers.external.observation import Observed
from providers.external.ownership import identity_of
from runtime.errors import Invalid, Transient
from runtime.objects import Key, Object, Resource
from tests.providers.toy import Toy, ToyCloud, ToyParameters
from tests.providers.world import World, settled
from tests.support.memory_kube import MemoryKube


class _Narrowed(MemoryKube):
    """An API server whose schema refuses every new word in a status."""

    async def json_patch(
        self, resource: Resource, key: Key, operations: list[Object], *, manager: str, subresource: str = ""
    ) -> Object:
        if subresource == "status":
            stored = self.objects[resource, key].get("status", {}).get("conditions")
            if operations[-1]["value"].get("conditions") != stored:
                raise Invalid("status.conditions[0].message: too long", status=422)
        return await super().json_patch(resource, key, operations, manager=manager, subresource=subresource)


async def test_schema_that_refuses_the_status_keeps_no_deleted_object() -> None:
    world = await settled(cloud := ToyCloud())
    narrowed = _Narrowed()
    narrowed.server = world.kube.server
    after = World(cloud, kube=narrowed)

    after.delete()
    await after.settle()

    assert (after.get(), cloud.toys) == (None, {})


class _Watched(ToyCloud):
    """Records the differences that the resource's status had when it was adopted."""

    read_drift: Callable[[], list[Object]]
    drift: list[Object] | None = None

    async def adopt(self, target: Target[ToyParameters], observed: Observed[ToyParameters, Any], fence: Fence) -> None:
        self.drift = self.read_drift()
        await super().adopt(target, observed, fence)


@pytest.mark.parametrize("at_once", [True, False], ids=["with the consent at once", "after it was refused"])
async def test_adoption_shows_its_changes_before_anything_is_written(*, at_once: bool) -> None:
    world = World(cloud := _Watched())
    cloud.toys["legacy"] = Toy("incarnation-7", None, 5, {"app_a": "somebodys"})
    world.configure(allowAdoption=True)
    cloud.read_drift = lambda: list((world.get() or {}).get("status", {}).get("drift", ()))

    world.ask(size=20)
    login = f"logins.app_{identity_of(world.get() or {}).hash}_a"
    expected = [("owner", "ours", "nobody's", "Held"), ("size", "20", "5", "Held"), (login, "present", "unset", "Held")]
    world.annotate(**{"external-name": "legacy"})
    if not at_once:
        await world.step()
        assert (world.reason(), _entries(cloud.read_drift()), cloud.calls) == ("NotOwned", expected, [])
    world.annotate(adopt="incarnation-7")
    await world.settle()

    assert _entries(cloud.drift or []) == expected
    assert cloud.calls[:2] == ["adopt", "update ['size']"]
    assert cloud.toys["legacy"].size == 20


@pytest.mark.parametrize("is_named", [True, False])
async def test_what_is_observed_without_leave_to_adopt_is_shown_where_the_platform_wrote_its_name(
    *, is_named: bool
) -> None:
    world = World(cloud := ToyCloud())
    world.ask(managementPolicy="Observe")
    name = "legacy" if is_named else f"toy-{identity_of(world.get() or {}).hash}"
    cloud.toys[name] = Toy("incarnation-7", None, 5)
    if is_named:
        world.annotate(**{"external-name": name})
    await world.settle()
    assert world.reason("Ready") == "Available"
    assert ({"observed", "adoption"} <= world.status.keys()) is is_named


@pytest.mark.parametrize("is_by_rule", [True, False])
async def test_nothing_is_made_under_a_name_that_was_written_before_the_first_pass(*, is_by_rule: bool) -> None:
    world = World(cloud := ToyCloud())
    world.ask()
    by_rule = f"toy-{identity_of(world.get() or {}).hash}"
    world.annotate(**{"external-name": by_rule if is_by_rule else "legacy"})
    await world.passes(3, timedelta(minutes=10))
    assert (world.reason(), cloud.calls) == ("AdoptionRefused", [])


def _entries(drift: list[Object]) -> list[tuple[str, str, str, str]]:
    return [(entry["path"], entry["desired"], entry["observed"], entry["action"]) for entry in drift]


@pytest.mark.parametrize("is_dead", [True, False], ids=["of a dead server", "in another account"])
async def test_orphan_out_of_reach_loses_its_finalizer_after_minutes_and_not_before(*, is_dead: bool) -> None:
    world = await settled(cloud := ToyCloud(), deletionPolicy="Orphan")
    world.delete()
    if is_dead:
        cloud.faults += [("observe", Transient("no answer"), False)] * 100
    else:
        cloud.account = "account-2"
        world.accounts.forget("default")

    await world.passes(4, timedelta(minutes=1))
    assert world.get() is not None
    await world.passes(4, timedelta(minutes=1))
    assert (world.get(), [toy.released for toy in cloud.toys.values()]) == (None, [False])
