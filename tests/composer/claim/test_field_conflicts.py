"""How long a field is left to a rival that goes on taking it: longer each time, from what the inventory remembers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from composer.claim.field_conflicts import Conflict, next_try, remembered, still_yielded
from composer.claim.outcomes import causes_of_conflicts
from composer.inventory import YieldedField
from runtime.conditions import timestamp
from tests.composer.factories import entry

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RIVAL = Conflict(".spec.limit", "rival", by_hand=False)


def _yielded(ends: timedelta, tries: int = 1, manager: str = "rival") -> YieldedField:
    return YieldedField(RIVAL.field, manager, timestamp(NOW + ends), tries)


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
