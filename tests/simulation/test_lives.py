"""A thousand short lives in which judges find nothing; and a life is a function of its seed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Final

import pytest

from fairlead.simulation import clouds, virtual_time
from tests.simulation import many, profiles
from tests.simulation.lives import Seed, live

pytestmark = pytest.mark.slow

LIVES: Final = {"gcp": (11, 240), "azure": (12, 240), "aws": (13, 240), "onprem": (14, 240)}
"""The seed of each cloud's lives, and how many there are."""
REPLICAS: Final = {"gcp": 51, "azure": 52, "aws": 53, "onprem": 51}
"""The seed of each cloud's lives with two replicas of each process, which elect."""
_OF_A_TEST: Final = 12
_WITH_REPLICAS: Final = 5
# Some nine of ten lives have a claim that served, and seven a deletion: with far fewer they show little.
_SERVING: Final = 0.58
_ENDING: Final = 0.4


def _chunks() -> Iterator[object]:
    for cloud, (seed, lives) in LIVES.items():
        for first in range(0, lives, _OF_A_TEST):
            numbers = range(first, first + _OF_A_TEST)
            yield pytest.param(cloud, seed, numbers, "short", id=f"{cloud}-{seed}:{numbers[0]}-{numbers[-1]}")
    for cloud, seed in REPLICAS.items():
        yield pytest.param(cloud, seed, range(_WITH_REPLICAS), "replicas", id=f"{cloud}-replicas")


@pytest.fixture(scope="module")
def process() -> Iterator[Executor]:
    """Give a process in which a life is the one that its command has."""
    with many.processes(1) as pool:
        yield pool


@pytest.mark.parametrize(("cloud", "seed", "numbers", "profile"), [*_chunks()])
def test_judges_find_nothing(process: Executor, cloud: str, seed: int, numbers: range, profile: profiles.Name) -> None:
    lives = process.map(many.once, [Seed(seed, number, cloud, profile) for number in numbers])
    outcomes = [life.outcome for life in lives]

    findings = [(outcome.seed.command(), finding) for outcome in outcomes for finding in outcome.findings]
    said = "\n".join(f"{command}\n  {finding}" for command, finding in findings)
    assert not findings, said
    assert sum(outcome.served > 0 for outcome in outcomes) >= _SERVING * len(outcomes)
    assert sum(outcome.ended > 0 for outcome in outcomes) >= _ENDING * len(outcomes)


@pytest.fixture(scope="module", params=[Seed(1, 2, cloud, "short") for cloud in clouds.NAMES], ids=clouds.NAMES)
def seed(request: pytest.FixtureRequest) -> Seed:
    return Seed(*request.param)


def test_the_same_seed_is_the_same_life(process: Executor, seed: Seed) -> None:
    life, again = process.map(live, [seed, seed])

    assert (life.hash, life.lines, life.findings) == (again.hash, again.lines, again.findings)
    assert life.lines > 200


def test_the_same_seed_is_the_same_long_life(process: Executor) -> None:
    life, again = process.map(live, [Seed(1, 2, "gcp")] * 2)

    assert (life.hash, life.lines, life.findings) == (again.hash, again.lines, again.findings)


def test_an_act_that_is_left_out_changes_no_other(process: Executor) -> None:
    seed, acts = Seed(1, 2, "gcp", "short"), (frozenset({1, 2, 3, 4}), frozenset({1, 2, 3}))
    more, fewer = (life.result() for life in [process.submit(live, seed, acts=kept) for kept in acts])

    assert fewer.done[:3] == more.done[:3]
    assert (len(more.done), len(fewer.done)) == (5, 4)


def test_a_command_has_the_same_life_again() -> None:
    command = Seed(3, 7, "aws", "short").command("0,2-4")

    assert command == "python -m tests.simulation --profile short --cloud aws --replay 3:7:0,2-4"


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
