"""How long a life is, and how often each thing is done in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

Name = Literal["short", "long", "replicas"]


@dataclass(frozen=True, slots=True)
class Profile:
    """How long a life is, in seconds, and what its judges take for long.

    Attributes:
        is_short: Whether most of what is done concerns a claim.
        acts_s: For how long people and others act.
        first_s: When the first act may be after who begins: in a short life a claim is mostly Ready by then.
        pause_s: The mean time between two acts.
        calm_s: For how long nobody does anything then.
        settle_s: The part of the calm in which failures of before may have their longest pause.
        lasting_s: What lasts so long in the calm after that is no transition any more.
        ends: How often the last act deletes what people have.
        replicas: How many of each process there are; of two one leads.
    """

    is_short: bool
    acts_s: float
    first_s: tuple[float, ...]
    pause_s: float
    calm_s: float
    settle_s: float
    lasting_s: float
    ends: float
    replicas: int = 1


LONG: Final = Profile(
    is_short=False,
    acts_s=40 * 60.0,
    first_s=(0.0,),
    pause_s=50.0,
    calm_s=50 * 60.0,
    settle_s=12 * 60.0,
    lasting_s=30 * 60.0,
    ends=0.0,
)
SHORT: Final = Profile(
    is_short=True,
    acts_s=7 * 60.0,
    first_s=(0.0, 120.0, 120.0, 120.0, 120.0),
    pause_s=40.0,
    calm_s=25 * 60.0,
    settle_s=12 * 60.0,
    lasting_s=11 * 60.0,
    ends=0.6,
)
REPLICAS: Final = replace(SHORT, replicas=2)
PROFILES: Final[dict[Name, Profile]] = {"short": SHORT, "long": LONG, "replicas": REPLICAS}
