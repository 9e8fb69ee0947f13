"""Forty edits on the real platform, ten in each cloud side by side: what `fairlead plan` says is what then happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from fairlead.cluster import connected
from fairlead.kube_options import Server
from fairlead.simulation import clouds
from fairlead.simulation.virtual_time import chance_of
from runtime.kube import Kube
from runtime.objects import Key, Object, generation_of, observed_generation_of, status_of, version_of
from tests.security.builders import at_once, expect
from tests.simulation import planned_edits
from tests.simulation.planned_edits import Children, Compared, Place, Planned
from tests.support.aws import simulated_rds
from tests.support.azure import simulated_azure
from tests.support.gcp import FLAGS, simulated_cloud_sql
from tests.support.kinds import CLAIM, COMPOSITION, CONFIG_MAP, PROVIDER_CONFIG, claim, is_ready
from tests.support.simulated_cloud import QUICK
from tests.support.system import System
from tests.support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.apiserver, pytest.mark.postgres]

_EDITS: Final = 10
# By these draws each cloud has an edit that changes something, and one that is held or refused.
_DRAWS: Final = "b"
_STILL_S: Final = 8.0
_LIMIT_S: Final = 240.0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def outcomes(
    system: System, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, BaseException | None]]:
    """Yield by cloud what went wrong, nothing where every plan was right."""
    folder, server = tmp_path_factory.mktemp("edits"), Server(system.plane.kubeconfig)
    await asyncio.gather(system.start_composer(), system.start_provider(*QUICK))
    await system.until(PROVIDER_CONFIG, "", "default", is_ready)
    async with (
        simulated_rds(system) as aws,
        simulated_azure(system) as azure,
        simulated_cloud_sql(system) as gcp,
        connected(server) as kube,
    ):
        await asyncio.gather(aws.start_provider(), azure.start_provider(), gcp.start_provider(*FLAGS))
        yield await at_once({cloud: _edits(system, kube, cloud, folder, server) for cloud in clouds.NAMES})


@pytest.mark.parametrize("cloud", clouds.NAMES)
async def test_what_plan_says_on_the_platform_is_what_then_happens(
    outcomes: dict[str, BaseException | None], cloud: str
) -> None:
    expect(outcomes[cloud])


async def _edits(system: System, kube: Kube, cloud: str, folder: Path, server: Server) -> None:
    namespace = f"plan-{cloud}"
    place = Place(
        clouds.described(cloud), Key(namespace, "orders"), Key("", namespace), Key("fairlead-system", f"tuning{cloud}")
    )
    await system.namespaced(namespace, cloud=cloud)
    composition, environment = place.first()
    await system.create(CONFIG_MAP, environment)
    await system.create(COMPOSITION, composition)
    reference = {"compositionRef": {"name": place.composition.name}}
    await system.create(CLAIM, claim(namespace, "orders", deletionPolicy="Delete", **reference))
    await system.until(CLAIM, namespace, "orders", is_ready, limit_s=_LIMIT_S)
    await _still(kube, place)
    seen: list[Compared] = []
    for number in range(_EDITS):
        edit = await planned_edits.draw(kube, place, chance_of(cloud, f"edit {number} {_DRAWS}"))
        planned = await planned_edits.planned(kube, place, edit, folder / f"{cloud}.json", server)
        await edit.apply(kube)
        seen.append(await _compared(kube, place, planned))
        assert seen[-1].is_so(), f"edit {number}: {seen[-1]}"
    assert any(edit.changed for edit in seen)
    assert any(edit.held or edit.refused for edit in seen)


async def _compared(kube: Kube, place: Place, planned: Planned) -> Compared:
    """Return what became of an edit once all is still, or once it is as the plan says."""
    compared = planned.compare(await _still(kube, place))
    until = asyncio.get_running_loop().time() + _LIMIT_S
    # A cloud may be at work on the edit before for longer than nothing is written.
    while not compared.is_so() and asyncio.get_running_loop().time() < until:
        compared = planned.compare(await _still(kube, place))
    return compared


async def _still(kube: Kube, place: Place) -> Children:
    """Wait until every child answers for its spec, has nothing under way, and is as it was for a while."""
    before: dict[str, str] = {}
    since = asyncio.get_running_loop().time()
    latest: Children = {}

    async def is_still() -> bool:
        nonlocal before, since, latest
        latest = await place.children(kube)
        now, versions = asyncio.get_running_loop().time(), {name: version_of(child) for name, child in latest.items()}
        if versions != before:
            before, since = versions, now
        return bool(latest) and all(map(_is_answered, latest.values())) and now - since >= _STILL_S

    try:
        await eventually(is_still, f"{place.claim} is settled", limit_s=_LIMIT_S)
    except AssertionError:
        raise AssertionError({name: status_of(child).get("conditions") for name, child in latest.items()}) from None
    return latest


def _is_answered(child: Object) -> bool:
    return observed_generation_of(child) == generation_of(child) and not status_of(child).get("operation")
