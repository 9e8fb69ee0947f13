"""What was refused is not sent again at once, and not held back for ever."""

from __future__ import annotations

from datetime import UTC, datetime

from composer.causes import cause
from composer.claim.decide import Apply, Create
from composer.claim.failures import FIRST_PAUSE, LONGEST_PAUSE, Refusals
from tests.composer.factories import DATABASE, desired, entry, live

WHY = cause("InvalidValue", "spec.limit: Invalid value")
WANTED = desired()
APPLY = Apply(entry(), DATABASE, WANTED, live(WANTED))
CREATE = Create(entry(), DATABASE, WANTED)


class _Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 11, 22, 12, tzinfo=UTC)


def _refused(clock: _Clock, step: Create | Apply = APPLY) -> Refusals:
    refusals = Refusals()
    refusals.add(step, WHY, clock.now)
    return refusals


def test_a_write_that_succeeds_ends_the_memory_of_its_refusal() -> None:
    clock = _Clock()
    refusals = _refused(clock)
    refusals.forget(APPLY)

    assert refusals.of(APPLY, clock.now) is None
    assert len(refusals) == 0


def test_a_changed_schema_ends_all_refusals() -> None:
    clock = _Clock()
    refusals = _refused(clock)
    refusals.clear()

    assert refusals.of(APPLY, clock.now) is None


def test_refusals_of_objects_that_are_wanted_no_more_are_forgotten() -> None:
    clock = _Clock()
    refusals = _refused(clock)
    clock.now += FIRST_PAUSE + LONGEST_PAUSE
    refusals.add(CREATE, WHY, clock.now)

    assert len(refusals) == 1
