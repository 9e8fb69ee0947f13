"""The plot and the table of growth: each figure at its place."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from benchmarks.growth import plot, table

_NAMES = (
    *(f"{phase}: CPU a claim, composer" for phase in ("create", "drift of one child", "change", "delete")),
    *(f"{phase}: requests a claim" for phase in ("create", "drift of one child", "change", "delete")),
    "create: peak memory (PSS, workers included)",
)
MEASURED = {
    size: {name: float(number + 1) * factor for number, name in enumerate(_NAMES)}
    for factor, size in enumerate((200, 1000, 3000), start=1)
}


def test_table_has_a_row_for_each_line_and_a_column_for_each_size() -> None:
    head, ruler, *rows = table(MEASURED).splitlines()
    assert head == "| | 200 claims | 1,000 claims | 3,000 claims |"
    assert ruler.count("|") == head.count("|")
    assert len(rows) == len(_NAMES)
    assert rows[0] == "| composer's CPU a claim, ms: create | 1.00 | 2.00 | 3.00 |"
    assert rows[-1] == "| memory of all processes (PSS), MiB: peak | 9.00 | 18.00 | 27.00 |"


def test_plot_is_xml_with_a_line_for_each_series_that_rises_with_its_values() -> None:
    drawn = plot(MEASURED, day="2026-11-24")
    lines = re.findall(r'<polyline points="([^"]+)"', drawn)
    heights = [[float(point.split(",")[1]) for point in line.split()] for line in lines]

    assert ET.fromstring(drawn).tag.endswith("svg")  # noqa: S314 - made by our own code
    assert len(lines) == len(_NAMES)
    # The vertical axis of SVG points down.
    assert all(first > second > third for first, second, third in heights)
    # The highest value has the same place in each panel.
    assert len({min(heights[number][-1] for number in panel) for panel in ((3,), (7,), (8,))}) == 1
