"""How the figures of a claim grow with the number of claims: a table, and a plot for docs/performance.md.

`python -m benchmarks.growth` runs the engine's benchmark with 200, 1,000 and 3,000 claims, each on a control plane of
its own, and draws docs/growth.svg. A line that stays level is work that grows with the claims and no faster.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from benchmarks import engine
from benchmarks.report import Figure

_PLOT: Final = Path(__file__).resolve().parents[1] / "docs" / "growth.svg"
_SIZES: Final = (200, 1000, 3000)
_IDLE_SECONDS: Final = 5.0
_SINGLES: Final = 20
_COLOURS: Final = ("#1b6ca8", "#c8553d", "#2f7d4f", "#7a5195")
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _GAP = 300, 180, 44, 34, 46, 40
_PHASES: Final = {"create": "create", "drift of one child": "drift", "change": "change", "delete": "delete"}
_PANELS: Final[Mapping[str, Mapping[str, str]]] = {
    "composer's CPU a claim, ms": {label: f"{phase}: CPU a claim, composer" for phase, label in _PHASES.items()},
    "requests a claim": {label: f"{phase}: requests a claim" for phase, label in _PHASES.items()},
    "memory of all processes (PSS), MiB": {"peak": "create: peak memory (PSS, workers included)"},
}

Measured = Mapping[int, Mapping[str, float]]
"""The figures by the number of claims, and by name."""


def measure(sizes: Sequence[int]) -> Measured:
    """Run the engine's benchmark for each number of claims."""
    measured: dict[int, dict[str, float]] = {}
    for size in sizes:
        figures: list[Figure] = engine.figures(
            claims=size, idle_seconds=_IDLE_SECONDS, singles=_SINGLES, has_floor=False
        )
        sys.stderr.write(f"{size} claims: measured\n")
        measured[size] = {figure.name: figure.value for figure in figures}
    return measured


def table(measured: Measured) -> str:
    """Return the figures of the plot as a table of Markdown."""
    sizes = list(measured)
    lines = ["| | " + " | ".join(f"{size:,} claims" for size in sizes) + " |", "|---" * (1 + len(sizes)) + "|"]
    for title, series in _PANELS.items():
        for label, name in series.items():
            values = " | ".join(f"{measured[size][name]:.2f}" for size in sizes)
            lines.append(f"| {title}: {label} | {values} |")
    return "\n".join(lines)


def plot(measured: Measured, *, day: str) -> str:
    """Return the plot as SVG, a panel for each unit; the horizontal axis has a step for each number of claims."""
    width, height = len(_PANELS) * (_WIDTH + _GAP), _HEIGHT + _TOP + _BOTTOM
    view = f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {view}>',
        f"<title>Figures of a claim by the number of claims, {day}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for number, (title, series) in enumerate(_PANELS.items()):
        lines = {label: [measured[size][name] for size in measured] for label, name in series.items()}
        parts.append(f'<g transform="translate({number * (_WIDTH + _GAP)} 0)">')
        parts += _panel(title, tuple(measured), lines)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>", ""])


def _panel(title: str, sizes: tuple[int, ...], lines: Mapping[str, Sequence[float]]) -> list[str]:
    highest = 1.15 * max(value for values in lines.values() for value in values)
    right, floor = _LEFT + _WIDTH - 70, _TOP + _HEIGHT

    def place(index: int, value: float) -> tuple[float, float]:
        share = index / max(1, len(sizes) - 1)
        return round(_LEFT + 16 + share * (right - _LEFT - 32), 1), round(floor - value / highest * _HEIGHT, 1)

    parts = [
        f'<text x="{_LEFT}" y="18" font-weight="bold">{title}</text>',
        f'<path d="M{_LEFT} {_TOP}V{floor}H{right}" fill="none" stroke="#444444"/>',
    ]
    for index, size in enumerate(sizes):
        parts.append(f'<text x="{place(index, 0)[0]}" y="{floor + 16}" text-anchor="middle">{size:,}</text>')
    parts.append(f'<text x="{(_LEFT + right) / 2}" y="{floor + 34}" text-anchor="middle">claims</text>')
    for step in range(5):
        value = highest * step / 4
        y = place(0, value)[1]
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{value:.3g}</text>')
        parts.append(f'<path d="M{_LEFT} {y}H{right}" stroke="#dddddd"/>')
    for colour, values in zip(_COLOURS, lines.values(), strict=False):
        points = [place(index, value) for index, value in enumerate(values)]
        drawn = " ".join(f"{x},{y}" for x, y in points)
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in points]
    parts += _legend(lines, right + 8)
    return parts


def _legend(lines: Mapping[str, Sequence[float]], x: float) -> list[str]:
    parts = []
    for number, (colour, label) in enumerate(zip(_COLOURS, lines, strict=False)):
        y = _TOP + 12 + 18 * number
        parts.append(f'<circle cx="{x + 4}" cy="{y - 4}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{x + 12}" y="{y}">{label}</text>')
    return parts


def main() -> int:
    """Print the table, and write the plot."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--claims", type=int, nargs="+", default=_SIZES)
    parser.add_argument("--plot", type=Path, default=_PLOT)
    arguments = parser.parse_args()
    measured = measure(arguments.claims)
    print(table(measured))
    arguments.plot.write_text(plot(measured, day=datetime.now(UTC).date().isoformat()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
