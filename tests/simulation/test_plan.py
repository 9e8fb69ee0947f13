"""What `fairlead plan` says of the cloud is what then happens: random edits, planned, applied, and compared."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from fairlead import plan as planning
from fairlead.simulation import clouds, virtual_time
from fairlead.simulation.platform import CLAIMS, Platform
from fairlead.simulation.virtual_time import chance_of
from runtime import clock
from runtime.kube import Kube
from runtime.objects import CONFIG_MAPS, Key, Object
from tests.simulation import planned_edits
from tests.simulation.cast import Cast
from tests.simulation.history import PERSON, TEAM
from tests.simulation.planned_edits import Compared, Place

pytestmark = pytest.mark.slow

EDITS: Final = int(os.environ.get("EDITS", "25"))
"""How many edits of each cloud; `make faults` has more."""
_ENOUGH_S: Final = 1800.0


@pytest.mark.parametrize("cloud", clouds.NAMES)
def test_what_plan_says_of_the_cloud_is_what_then_happens(
    cloud: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = virtual_time.run(f"plan {cloud}", lambda: _edits(cloud, tmp_path, monkeypatch))

    assert [edit for edit in compared if not edit.is_so()] == []
    # A server that runs another major version than is wanted refuses the other fields, too.
    assert any(edit.changed for edit in compared)
    assert any(edit.held for edit in compared)


async def _edits(cloud: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Compared]:
    about = clouds.described(cloud)
    platform = Platform(f"plan {cloud}", virtual_time.Trace(), about)
    place = Place(about, Key(TEAM, "orders"), Key("", f"postgres-{cloud}"), Key("fairlead-system", "tuning"))
    composition, environment = place.first()
    platform.install((TEAM,), [composition])

    @asynccontextmanager
    async def connect(_: object) -> AsyncIterator[Kube]:
        yield platform.server

    monkeypatch.setattr(planning, "connected", connect)
    background, cast = platform.background(), Cast(platform, "plan")
    await platform.server.create(CONFIG_MAPS, environment, manager=PERSON)
    for process in ("composer", about.provider_process):
        await platform.start(process)
    spec: Object = {"version": "16", "size": "small", "deletionPolicy": "Delete"}
    await cast.make(CLAIMS, place.claim, spec)
    await asyncio.sleep(_ENOUGH_S)
    compared = []
    for number in range(EDITS):
        edit = await planned_edits.draw(platform.server, place, chance_of(cloud, f"edit {number}"))
        await _pass_the_opening_of_a_window()
        planned = await planned_edits.planned(platform.server, place, edit, folder / "edit.json")
        await edit.apply(platform.server)
        await asyncio.sleep(_ENOUGH_S)
        platform.check()
        compared.append(planned.compare(await place.children(platform.server)))
    for process in tuple(platform.processes):
        await platform.kill(process)
    for task in background:
        task.cancel()
    return compared


async def _pass_the_opening_of_a_window() -> None:
    """Let a window open before an edit and not after it: the clouds make then by themselves what waits for it."""
    now = clock.now()
    opening = now.replace(hour=3, minute=5, second=0)
    if timedelta() < opening - now <= timedelta(seconds=_ENOUGH_S) + timedelta(minutes=5):
        await asyncio.sleep((opening - now).total_seconds())
