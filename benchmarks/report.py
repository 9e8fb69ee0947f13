"""A measured figure beside its aim and its goal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure; `aim` and `goal` are the largest good value, or the smallest with `at_least`; None: there is none.

    A run fails that misses an aim: a count, or a ratio of what was measured in the same run, which any machine shows
    alike. A goal is what the project wants and does not have everywhere; it is printed, and fails nothing.
    """

    name: str
    value: float
    unit: str
    aim: float | None = None
    at_least: bool = False
    goal: float | None = None

    @property
    def met(self) -> bool:
        """Return whether the aim is met."""
        return self._reaches(self.aim)

    def line(self) -> str:
        """Return one line for people."""
        relation = ">=" if self.at_least else "<="
        aim = "" if self.aim is None else f"   aim {relation} {self.aim:g} {self.unit}"
        reached = "reached" if self._reaches(self.goal) else "not reached"
        goal = "" if self.goal is None else f"   goal {relation} {self.goal:g} {self.unit}".rstrip() + f", {reached}"
        line = f"{'ok  ' if self.met else 'MISS'} {self.name:<52} {self.value:>10,.2f} {self.unit}{aim.rstrip()}{goal}"
        return line.rstrip()

    def _reaches(self, bound: float | None) -> bool:
        if bound is None:
            return True
        return self.value >= bound if self.at_least else self.value <= bound


def print_figures(figures: Iterable[Figure]) -> int:
    """Print each figure as it comes; return the status to exit with, 1 when an aim is missed."""
    missed = 0
    for figure in figures:
        print(figure.line(), flush=True)
        missed += not figure.met
    return 1 if missed else 0
