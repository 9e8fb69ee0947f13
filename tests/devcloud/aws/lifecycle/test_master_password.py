"""The master user's one password: when a new one takes the former one's place, and who keeps it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devcloud.aws.lifecycle.master_password import RESET_S, reset
from devcloud.simulator.work import SetPassword

NEW = "Another-word-1"


@given(st.floats(min_value=0, max_value=RESET_S))
def test_a_reset_changes_the_password_once_at_its_moment_and_takes_as_long_as_ever(after_s: float) -> None:
    steps = reset(NEW, after_s=after_s, secret=None)

    jobs = [index for index, step in enumerate(steps) if step.work is not None]
    assert [steps[index].work for index in jobs] == [SetPassword(NEW)]
    assert sum(step.seconds for step in steps[: jobs[0]]) == pytest.approx(after_s)
    assert sum(step.seconds for step in steps) == pytest.approx(RESET_S)
    assert [step.status for step in steps] == sorted((step.status for step in steps), key=lambda status: status or "")
    assert [bool(step.ended) for step in steps] == [*[False] * (len(steps) - 1), True]
