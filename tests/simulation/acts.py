"""What is done in a life, each by its weight, and what is done after it in the calm."""

from __future__ import annotations

import asyncio
from typing import Final

from tests.simulation import people, strangers
from tests.simulation.cast import Act, Cast, Planned

_OF_PEOPLE: Final[tuple[tuple[Act, int], ...]] = (
    (people.have_claim, 6),
    (people.edit_claim, 2),
    (people.rotate, 1),
    (people.delete_claim, 2),
    (people.have_shared, 2),
    (people.delete_shared, 1),
    (people.have_inner, 8),
    (people.delete_inner, 5),
    (people.delete_any, 1),
    (people.edit_policy, 1),
    (people.leave, 2),
    (people.obey, 2),
    (people.edit_secret, 3),
    (people.edit_composition, 4),
    (people.take_kind, 2),
)
_OF_PLATFORMS: Final[tuple[tuple[Act, int], ...]] = (
    (strangers.weather_turns, 4),
    (strangers.kill, 3),
    (strangers.compact, 1),
)
_BEGINNING: Final = (people.have_shared, people.have_claim)


def plan(cast: Cast, seconds: float) -> list[Planned]:
    """Return the acts of a life; it begins with somebody who has something."""
    planned = cast.plan((*_OF_PEOPLE, *cast.cloud.strangers, *_OF_PLATFORMS), seconds)
    begun = [Planned(number, 0.0, act) for number, act in enumerate(_BEGINNING)]
    return begun + [Planned(step.number + len(begun), step.at, step.act) for step in planned]


async def rest(cast: Cast, seconds: float) -> None:
    """Let it be calm, and nobody do anything."""
    await cast.act(strangers.calm)
    await asyncio.sleep(seconds)
    cast.platform.check()
