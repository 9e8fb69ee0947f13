"""How large a run of rotations is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """How many claims rotate side by side, how often."""

    claims: int
    rounds: int
