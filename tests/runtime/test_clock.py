"""Time and chance that are handed in reach whoever asks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from apis.passwords import new_password
from runtime import clock, randomness
from runtime.connectivity import Connectivity

THEN = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def of_the_system() -> Iterator[None]:
    yield
    clock.use(clock.OF_THE_SYSTEM)
    randomness.use(randomness.OF_THE_SYSTEM)


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - the same draws each time


def test_a_clock_that_is_handed_in_is_asked() -> None:
    made: list[tuple[int, str]] = []

    def executor(most: int, name: str) -> ThreadPoolExecutor:
        made.append((most, name))
        return ThreadPoolExecutor(most)

    clock.use(clock.Sources(monotonic=lambda: 7.0, now=lambda: THEN, executor=executor))
    clock.executor(3, "sdk").shutdown()
    assert (clock.monotonic(), clock.now(), clock.wall_seconds()) == (7.0, THEN, THEN.timestamp())
    assert made == [(3, "sdk")]


def test_a_part_that_was_made_before_follows() -> None:
    connectivity = Connectivity()
    clock.use(clock.Sources(monotonic=lambda: 7.0))
    connectivity.sent()
    clock.use(clock.Sources(monotonic=lambda: 9.0))
    assert connectivity.unreachable_for.total_seconds() == 2


def test_the_same_seed_draws_the_same() -> None:
    def drawn() -> tuple[object, ...]:
        randomness.use(randomness.Sources(jitter=seeded(1), secret=seeded(2)))
        return new_password(), randomness.token_hex(4), randomness.token_bytes(4), randomness.chance()

    assert drawn() == drawn()


def test_secrets_of_a_process_are_of_the_operating_system() -> None:
    assert isinstance(randomness.OF_THE_SYSTEM.secret, random.SystemRandom)
    assert randomness.token_hex(16) != randomness.token_hex(16)
