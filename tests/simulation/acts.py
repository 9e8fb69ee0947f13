"""What is done in a life, each by its weight, and what is done after it in the calm."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from tests.simulation import losses, people, strangers
from tests.simulation.cast import Act, Cast, Planned
from tests.simulation.profiles import Profile


class _Weighted(NamedTuple):
    """An act, and how often it is done in long lives and in short ones."""

    act: Act
    long: float
    short: float


_WEIGHTED: Final = (
    _Weighted(people.have_claim, 6, 4),
    _Weighted(people.edit_claim, 2, 9),
    _Weighted(people.rotate, 1, 3),
    _Weighted(people.delete_claim, 2, 3),
    _Weighted(people.have_shared, 2, 1),
    _Weighted(people.delete_shared, 1, 0.5),
    _Weighted(people.have_inner, 8, 2),
    _Weighted(people.delete_inner, 5, 1),
    _Weighted(people.delete_any, 1, 1),
    _Weighted(people.edit_policy, 1, 1),
    _Weighted(people.leave, 2, 0.5),
    _Weighted(people.obey, 2, 1),
    _Weighted(people.edit_secret, 3, 1),
    _Weighted(people.edit_composition, 4, 2),
    _Weighted(people.take_kind, 2, 0.5),
    _Weighted(losses.loses_status, 1, 0.5),
    _Weighted(losses.loses_annotations, 1, 0.5),
    _Weighted(losses.loses_labels, 1, 0.5),
    _Weighted(losses.loses_revision, 1, 0.3),
    _Weighted(losses.forces_claim_away, 1, 0.5),
    _Weighted(strangers.weather_turns, 4, 4),
    _Weighted(strangers.kill, 3, 2),
    _Weighted(strangers.kill_at, 3, 5),
    _Weighted(strangers.compact, 1, 0.5),
)
# In a short life others in the cloud do as much as this together.
_STRANGERS_IN_SHORT: Final = 8.0
_CUT_OFF: Final = 6.0
_FROZEN: Final = 6.0
_BEGINNING: Final = (people.have_shared, people.have_claim)
# A claim comes to be while a process dies at one of its effects.
_BEGINNING_OF_SHORT: Final = (people.have_claim, strangers.kill_at)
_ENDINGS: Final = (people.delete_claim, people.delete_claim, people.leave)


def plan(cast: Cast, profile: Profile) -> list[Planned]:
    """Return the acts of a life; it begins with somebody who has something, and may end with who deletes it."""
    is_short, others = profile.is_short, cast.cloud.strangers
    share = _STRANGERS_IN_SHORT / sum(weight for _, weight in others) if is_short else 1.0
    weights = [(of.act, of.short if is_short else of.long) for of in _WEIGHTED]
    if profile.replicas > 1:
        weights += [(strangers.cut_off, _CUT_OFF), (strangers.freeze_at, _FROZEN)]
    planned = cast.plan([*weights, *((act, weight * share) for act, weight in others)], profile)
    begun = [Planned(number, 0.0, act) for number, act in enumerate(_BEGINNING_OF_SHORT if is_short else _BEGINNING)]
    steps = begun + [Planned(step.number + len(begun), step.at, step.act) for step in planned]
    if cast.happens(profile.ends):
        steps.append(Planned(len(steps), profile.acts_s, cast.draw(*_ENDINGS)))
    return steps


async def rest(cast: Cast, seconds: float) -> None:
    """Let it be calm, and nobody do anything."""
    await cast.act(strangers.calm)
    await asyncio.sleep(seconds)
    cast.platform.check()
