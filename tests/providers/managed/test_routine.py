"""Passes that nobody waits for are known as such to whatever meters their requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from providers.external.client import Target
from providers.external.metering import is_routine
from providers.external.observation import Absent, Present
from tests.providers.toy import ToyCloud, ToyParameters
from tests.providers.world import World, settled


@dataclass
class WatchedCloud(ToyCloud):
    """Notes of each look whether it was routine."""

    are_routine: list[bool] = field(default_factory=list)

    async def observe(self, target: Target[ToyParameters]) -> Present[ToyParameters, Any] | Absent:
        self.are_routine.append(is_routine())
        return await super().observe(target)


def _be_requested(world: World) -> None:
    world.annotate(**{"reconcile-requested-at": "1"})


def _be_changed_by_others(world: World) -> None:
    world.toy.size = 5


PASSES: dict[str, tuple[Callable[[World], object], bool]] = {
    "a resync": (lambda _world: None, True),
    "a reconcile request": (_be_requested, False),
    "an edit": (lambda world: world.ask(size=20), False),
    "a deletion": (World.delete, False),
    "a pass that changes something": (_be_changed_by_others, True),
}


@pytest.mark.parametrize("case", PASSES)
async def test_looks_of_a_pass_are_routine_while_nobody_waits_for_it(case: str) -> None:
    world = await settled(cloud := WatchedCloud())
    assert not any(cloud.are_routine)
    cloud.are_routine.clear()
    begin, is_routine = PASSES[case]

    begin(world)
    await world.step()

    assert (cloud.are_routine[0], any(cloud.are_routine[1:])) == (is_routine, False)
