"""A life is a function of its seed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from tests.simulation import virtual
from tests.simulation.lives import live

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _silent() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield
    structlog.configure(**before)


@pytest.mark.parametrize("life", [2, 12])
def test_the_same_seed_is_the_same_life(life: int) -> None:
    first, second = live(1, life), live(1, life)

    assert (first.hash, first.lines, first.findings) == (second.hash, second.lines, second.findings)
    assert first.lines > 500


def test_an_act_that_is_left_out_changes_no_other() -> None:
    whole, fewer = live(1, 2), live(1, 2, acts=frozenset({1, 2, 3}))

    assert fewer.done[:3] == whole.done[1:4]
    assert len(fewer.done) == 4


def test_another_seed_is_another_life() -> None:
    assert live(1, 2).hash != live(2, 2).hash


def test_a_trace_knows_the_order_of_its_lines() -> None:
    first, second = virtual.Trace(), virtual.Trace()
    first.add("a")
    first.add("b")
    second.add("b")
    second.add("a")

    assert first.hash != second.hash
