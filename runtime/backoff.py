"""Waiting longer after each failure. Pure: chance is passed in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

Chance: TypeAlias = Callable[[], float]
"""A number in [0, 1), as random.random gives."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """`first` doubled with each failure up to `cap`; jitter only adds, up to half, so that `cap` is a floor there."""

    first: timedelta
    cap: timedelta

    def delay(self, failures: int, chance: Chance) -> timedelta:
        """Return the pause after the n-th failure in a row, n >= 1."""
        # The exponent is bounded, else a long outage overflows the float.
        grown = self.first * 2.0 ** min(failures - 1, 30)
        return min(grown, self.cap) * (1 + chance() / 2)
