"""A life is a function of its seed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import structlog

from fairlead.simulation import clouds, virtual_time
from tests.simulation.lives import Outcome, Seed, live

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def _silent() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield
    structlog.configure(**before)


@pytest.fixture(scope="module", params=clouds.NAMES)
def seed(request: pytest.FixtureRequest, _silent: None) -> Seed:
    return Seed(1, 2, request.param)


@pytest.fixture(scope="module")
def life(seed: Seed) -> Outcome:
    return live(seed)


def test_the_same_seed_is_the_same_life(seed: Seed, life: Outcome) -> None:
    again = live(seed)

    assert (life.hash, life.lines, life.findings) == (again.hash, again.lines, again.findings)
    assert life.lines > 500


def test_an_act_that_is_left_out_changes_no_other() -> None:
    more, fewer = (live(Seed(1, 2, "gcp"), acts=acts) for acts in (frozenset({1, 2, 3, 4}), frozenset({1, 2, 3})))

    assert fewer.done[:3] == more.done[:3]
    assert (len(more.done), len(fewer.done)) == (5, 4)


def test_a_seed_draws_its_cloud_and_always_the_same() -> None:
    drawn = [clouds.name_of(f"1:{life}") for life in range(40)]

    assert set(drawn) == set(clouds.NAMES)
    assert drawn == [clouds.name_of(f"1:{life}") for life in range(40)]


def test_a_trace_knows_the_order_of_its_lines() -> None:
    first, second = virtual_time.Trace(), virtual_time.Trace()
    first.add("a")
    first.add("b")
    second.add("b")
    second.add("a")

    assert first.hash != second.hash
