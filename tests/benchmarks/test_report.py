"""A benchmark ends with an error for a missed aim, and for nothing else."""

from __future__ import annotations

import pytest

from benchmarks.report import Figure, print_figures

FIGURES = {
    "a count within its aim": (Figure("requests", 3, "", aim=3), 0, "ok   requests"),
    "a count beyond its aim": (Figure("requests", 4, "", aim=3), 1, "MISS requests"),
    "a share below the least that is good": (Figure("share", 94, "%", aim=95, at_least=True), 1, "MISS share"),
    "a time that reaches its goal": (Figure("time", 1, "s", goal=2), 0, "goal <= 2 s, reached"),
    "a time that misses its goal": (Figure("time", 3, "s", goal=2), 0, "goal <= 2 s, not reached"),
    "memory within its aim that misses its goal": (Figure("memory", 120, "MiB", aim=150, goal=110), 0, "not reached"),
    "a figure with neither": (Figure("load", 9, ""), 0, "ok   load"),
}


@pytest.mark.parametrize(("figure", "status", "text"), FIGURES.values(), ids=FIGURES)
def test_a_figure_is_printed_and_fails_the_run_by_its_aim_alone(
    figure: Figure, status: int, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_figures([figure]) == status
    assert text in capsys.readouterr().out
