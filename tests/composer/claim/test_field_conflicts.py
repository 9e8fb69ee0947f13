"""How long a field is left to a rival that goes on taking it: longer each time, from what the inventory remembers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from composer.claim.field_conflicts import Conflict, joined, next_try, remembered, settle, still_yielded
from composer.claim.outcomes import causes_of_conflicts
from composer.inventory import YieldedField
from runtime.conditions import timestamp
from tests.composer.factories import entry

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RIVAL = Conflict(".spec.limit", "rival", by_hand=False)
PLACE = (RIVAL.field, RIVAL.manager)


def _yielded(ends: timedelta, tries: int = 1, manager: str = "rival") -> YieldedField:
    return YieldedField(RIVAL.field, manager, timestamp(NOW + ends), tries)


class Conflicted(msgspec.Struct, frozen=True):
    """A rival takes the field `minutes_ago` and again now, after the yields before; tries 0: it is taken back."""

    tries: int
    until: str = ""
    minutes_ago: tuple[int, ...] = ()
    yielded_before: tuple[YieldedField, ...] = ()
    by_hand: bool = False


CONFLICTS_BY_APPLY = {
    "the third time in ten minutes": Conflicted(0, minutes_ago=(1, 2)),
    "the fourth time in ten minutes": Conflicted(1, "2026-11-21T12:10:00Z", (1, 2, 3)),
    "the first time after a yield": Conflicted(0, yielded_before=(_yielded(-MINUTE),)),
    "the first time after a yield, for which earlier conflicts do not count": Conflicted(
        0, minutes_ago=(5, 6, 7), yielded_before=(_yielded(-MINUTE),)
    ),
    "the second time after a yield": Conflicted(2, "2026-11-21T12:20:00Z", (1,), (_yielded(-2 * MINUTE),)),
    "the second time after the third yield": Conflicted(4, "2026-11-21T13:20:00Z", (1,), (_yielded(-2 * MINUTE, 3),)),
    "the second time after the ninth yield": Conflicted(10, "2026-11-21T18:00:00Z", (1,), (_yielded(-2 * MINUTE, 9),)),
    "long after a yield": Conflicted(0, minutes_ago=(12,), yielded_before=(_yielded(-15 * MINUTE),)),
    "another manager after a yield": Conflicted(
        0, minutes_ago=(1, 2), yielded_before=(_yielded(-3 * MINUTE, manager="other"),)
    ),
    "a hand, the tenth time in ten minutes": Conflicted(0, minutes_ago=(1,) * 9, by_hand=True),
    "a hand, the eleventh time in ten minutes": Conflicted(1, "2026-11-21T12:10:00Z", (1,) * 10, by_hand=True),
    "a hand, seldom enough": Conflicted(0, minutes_ago=(1, 2, 3, *(30,) * 10), by_hand=True),
    "what writes by updates, the first time after a yield": Conflicted(
        0, minutes_ago=(5,) * 10, yielded_before=(_yielded(-4 * MINUTE),), by_hand=True
    ),
    "what writes by updates, the second time after a yield": Conflicted(
        2, "2026-11-21T12:20:00Z", (1,), (_yielded(-4 * MINUTE),), by_hand=True
    ),
}


@pytest.mark.parametrize("case", CONFLICTS_BY_APPLY.values(), ids=CONFLICTS_BY_APPLY)
def test_a_field_that_is_taken_is_taken_back_or_yielded(case: Conflicted) -> None:
    earlier = {PLACE: [NOW - minutes * MINUTE for minutes in case.minutes_ago]}
    conflict = Conflict(RIVAL.field, RIVAL.manager, case.by_hand)

    settled = settle([conflict], earlier, NOW, yielded_before=case.yielded_before)

    expected = (YieldedField(RIVAL.field, RIVAL.manager, case.until, case.tries),) if case.tries else ()
    assert settled.yielded == expected
    assert settled.taken_back == (() if case.tries else (conflict,))


def test_a_rival_that_never_stops_costs_less_each_time() -> None:
    """In a day it would be fought three times every ten minutes; from the inventory it is known, and seldom tried."""
    now, yielded_before, taken, tries = NOW, tuple[YieldedField, ...](), list[datetime](), list[int]()
    while now < NOW + timedelta(days=1):
        settled = settle([RIVAL], {PLACE: taken}, now, yielded_before=remembered(yielded_before, now))
        taken += [now for _ in settled.taken_back]
        yielded_before = joined(yielded_before, settled.yielded)
        if settled.yielded:
            tries.append(settled.yielded[0].tries)
            now = datetime.fromisoformat(settled.yielded[0].until)
        else:
            now += timedelta(seconds=1)
    assert tries == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert len(taken) == 3 + 8


@pytest.mark.parametrize(
    ("ends", "is_yielded", "counts", "tried_in"),
    [
        pytest.param(10 * MINUTE, True, True, 10 * MINUTE, id="it is yielded"),
        pytest.param(timedelta(seconds=-1), False, True, timedelta(seconds=1), id="it came due in this pass"),
        pytest.param(-19 * MINUTE, False, True, None, id="it is remembered"),
        pytest.param(-20 * MINUTE, False, False, None, id="it is forgotten"),
    ],
)
def test_a_yield_ends_and_is_remembered_for_a_while(
    ends: timedelta, *, is_yielded: bool, counts: bool, tried_in: timedelta | None
) -> None:
    known = _yielded(ends)
    kept = entry(yielded=(known,))

    assert still_yielded([known], timestamp(NOW)) == ((known,) if is_yielded else ())
    assert remembered([known], NOW) == ((known,) if counts else ())
    assert next_try([kept], NOW) == tried_in
    causes = causes_of_conflicts((kept,), timestamp(NOW))
    assert [cause.reason for cause in causes] == (["FieldConflict"] if is_yielded else [])
    assert all(f"tried again at {known.until}" in cause.message for cause in causes)


def test_the_inventory_holds_a_bounded_number_of_yields() -> None:
    many = [YieldedField(f".spec.f{number:02}", "rival", timestamp(NOW + number * MINUTE)) for number in range(40)]

    kept = joined(many, [YieldedField(".spec.f39", "rival", timestamp(NOW + 50 * MINUTE), 2)])

    assert len(kept) == 32
    assert [yielded.field for yielded in kept] == [f".spec.f{number:02}" for number in range(8, 40)]
    assert kept[-1].tries == 2
