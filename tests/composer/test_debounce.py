"""The same in other instructions is told every two seconds at most; what is new is told at once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from composer.claim.debounce import Debounce
from runtime.objects import Key, Object

KEY, OTHER = Key("shop", "orders"), Key("shop", "carts")


def _status(reason: str, message: str, name: str = "a") -> Object:
    return {"conditions": [{"type": "Ready", "reason": reason, "message": message}], "inventory": [{"name": name}]}


BEFORE = _status("Creating", "at 10 %")


@pytest.mark.parametrize(
    ("after", "later", "pause"),
    [
        pytest.param(_status("Creating", "at 20 %"), 0.5, 1.5, id="other words wait"),
        pytest.param(_status("Creating", "at 20 %"), 2.0, None, id="for two seconds"),
        pytest.param(_status("Available", "at 10 %"), 0.5, None, id="a new reason does not"),
        pytest.param(_status("Creating", "at 20 %", "b"), 0.5, None, id="a new child does not"),
        pytest.param(BEFORE, 0.5, None, id="what is the same is not written anyway"),
    ],
)
def test_a_status_waits(after: Object, later: float, pause: float | None) -> None:
    pace = Debounce()
    pace.wrote(KEY, 100.0)

    found = pace.delay(KEY, BEFORE, after, 100.0 + later)

    assert (found and found.total_seconds()) == pause
    assert pace.delay(OTHER, BEFORE, after, 100.0 + later) is None


def test_progress_that_changes_all_the_time_is_written_every_two_seconds() -> None:
    pace, now, stored, writes = Debounce(), 100.0, _status("Creating", "at 0 s"), []
    pace.wrote(KEY, now)
    for tenth in range(200):
        now = 100.0 + tenth / 10
        status = _status("Creating", f"at {tenth / 10} s")
        if pace.delay(KEY, stored, status, now) is None and status != stored:
            pace.wrote(KEY, now)
            stored = status
            writes.append(now)

    assert writes == [100.0 + 2 * number for number in range(1, 10)]


def test_a_cause_has_held_since_it_became_the_first_one() -> None:
    pace = Debounce()
    seconds = [
        pace.held(KEY, reason, now).total_seconds()
        for reason, now in (("", 5.0), ("SecretNotFound", 9.0), ("SecretNotFound", 30.0), ("", 31.0), ("", 40.0))
    ]
    pace.forget(KEY)

    assert seconds == [0, 0, 21, 0, 9]
    assert pace.held(KEY, "", 50.0) == timedelta()
