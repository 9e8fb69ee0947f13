"""A measured figure beside its aim."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """`aim` is the largest good value, or the smallest with `at_least`; None: printed without an aim."""

    name: str
    value: float
    unit: str
    aim: float | None = None
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Return whether the aim is met."""
        if self.aim is None:
            return True
        return self.value >= self.aim if self.at_least else self.value <= self.aim

    def line(self) -> str:
        """Return one line for people."""
        relation = ">=" if self.at_least else "<="
        aim = "" if self.aim is None else f"   aim {relation} {self.aim:g} {self.unit}"
        return f"{'ok  ' if self.met else 'MISS'} {self.name:<44} {self.value:>10,.2f} {self.unit}{aim}".rstrip()


def print_figures(figures: Iterable[Figure]) -> int:
    """Print each figure as it comes; return the status to exit with, 1 when an aim is missed."""
    missed = 0
    for figure in figures:
        print(figure.line(), flush=True)
        missed += not figure.met
    return 1 if missed else 0
