"""Time and chance that are handed in reach whoever asks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runtime import clock, randomness
from runtime.connectivity import Connectivity


@pytest.fixture(autouse=True)
def of_the_system() -> Iterator[None]:
    yield
    clock.use(clock.OF_THE_SYSTEM)
    randomness.use(randomness.OF_THE_SYSTEM)


def test_a_part_that_was_made_before_follows() -> None:
    connectivity = Connectivity()
    clock.use(clock.Sources(monotonic=lambda: 7.0))
    connectivity.sent()
    clock.use(clock.Sources(monotonic=lambda: 9.0))
    assert connectivity.unreachable_for.total_seconds() == 2
