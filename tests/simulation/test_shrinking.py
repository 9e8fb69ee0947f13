"""The fewest numbers that still show something."""

from __future__ import annotations

import pytest

from tests.simulation import shrinking


@pytest.mark.parametrize("needed", [{0}, {3, 9}, {1, 2, 3}, set(), set(range(12))], ids=str)
def test_what_is_needed_is_left_and_nothing_else(needed: set[int]) -> None:
    assert shrinking.fewest(frozenset(range(12)), lambda kept: needed <= kept) == needed


def test_what_needs_one_of_two_keeps_one() -> None:
    assert len(shrinking.fewest(frozenset(range(8)), lambda kept: bool(kept & {2, 6}))) == 1


@pytest.mark.parametrize(
    ("text", "numbers"), [("4:7", None), ("4:7:", frozenset()), ("4:7:1,3-5", frozenset({1, 3, 4, 5}))]
)
def test_a_life_is_read_as_it_is_written(text: str, numbers: frozenset[int] | None) -> None:
    assert shrinking.read(text) == (4, 7, numbers)
    if numbers is not None:
        assert shrinking.read(f"4:7:{shrinking.written(numbers)}") == (4, 7, numbers)
