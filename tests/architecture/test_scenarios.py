"""docs/dev/scenarios*.md have a row for every scenario, and every test that they name exists."""

from __future__ import annotations

import functools
import re
from collections import Counter

import pytest

from tests.architecture import tree

NUMBERS = range(1, 51)
# What the parts that are still to come will show.
WAITING = {32, 35, 46, 47}
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def _rows_of(page: str) -> list[list[str]]:
    lines = (tree.ROOT / "docs" / "dev" / page).read_text(encoding="utf-8").splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if re.match(r"\| \d", line)]


_ROWS = _rows_of("scenarios.md")
# What concerns other clouds alone. Of AWS: operations, a server's lock, reserved names, roles on the server. Of Google:
# a busy server's answer, prefixes of versions, steps of storage and its optimization, roles on the server. Of Azure:
# steps of storage, its optimization and its end, reserved names, roles on the server.
_OTHERS = {"aws": {4, 6, 7, 8, 37, 51}, "azure": {13, 18, 19, 37, 51}, "gcp": {7, 11, 13, 18, 19, 51}}
_ROWS_OF = {cloud: _rows_of(f"scenarios-{cloud}.md") for cloud in _OTHERS}
_ROWS_OF_OPERATORS = _rows_of("scenarios-operators.md")
_ALL_ROWS = [*_ROWS, *(row for rows in _ROWS_OF.values() for row in rows), *_ROWS_OF_OPERATORS]


def _tests_of(cell: str) -> list[tuple[str, str]]:
    return _TEST.findall(cell)


@functools.cache
def _defined(path: str) -> set[str]:
    return set(re.findall(r"^(?:async )?def (\w+)\(", (tree.ROOT / path).read_text(encoding="utf-8"), re.MULTILINE))


def test_every_scenario_has_one_row() -> None:
    assert [int(row[0]) for row in _ROWS] == list(NUMBERS)
    assert all(len(row) == 3 for row in _ROWS)


def test_a_row_names_its_tests_or_what_it_waits_for() -> None:
    silent = [row[0] for row in _ROWS if not (_tests_of(row[2]) or row[2].startswith("waits for "))]
    waiting = {int(row[0]) for row in _ROWS if row[2].startswith("waits for ")}

    assert silent == []
    assert waiting == WAITING


def test_every_named_test_exists() -> None:
    named = [test for row in _ALL_ROWS for test in _tests_of(row[2])]

    assert [f"{path}::{name}" for path, name in named if name not in _defined(path)] == []


def test_a_row_names_no_test_twice() -> None:
    assert [row[0] for row in _ALL_ROWS if max(Counter(_tests_of(row[2])).values(), default=1) > 1] == []


@pytest.mark.parametrize("cloud", _OTHERS)
def test_every_scenario_of_a_cloud_has_one_row_that_names_its_tests_or_that_there_are_none(cloud: str) -> None:
    rows = _ROWS_OF[cloud]
    assert [int(row[0]) for row in rows] == sorted({*range(1, 53)} - _OTHERS[cloud])
    silent = (row[0] for row in rows if len(row) != 3 or not (_tests_of(row[2]) or row[2].startswith("not shown")))
    assert list(silent) == []


def test_every_scenario_of_other_operators_is_numbered_and_names_its_tests() -> None:
    assert [int(row[0]) for row in _ROWS_OF_OPERATORS] == list(range(1, len(_ROWS_OF_OPERATORS) + 1))
    assert [row[0] for row in _ROWS_OF_OPERATORS if len(row) != 3 or not _tests_of(row[2])] == []
