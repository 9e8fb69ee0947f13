"""Of several refusals one is raised: what may go well the next time first, and all of them are told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.onprem.refusals import Refusals
from runtime.errors import Blocked, Conflict, Failure, Terminal, Transient

FAILURES: list[Failure] = [
    Transient("a lock is held"),
    Terminal("InvalidValue", "no such value"),
    Terminal("AccessDenied", "no right"),
    Blocked("DeleteBlocked", "in use"),
    Conflict("made meanwhile"),
]
ORDER: list[type[Failure]] = [Transient, Terminal, Blocked, Conflict]


@given(st.lists(st.sampled_from(FAILURES), min_size=1))
def test_what_may_end_by_itself_is_raised_first_and_every_refusal_is_told(failures: list[Failure]) -> None:
    with pytest.raises(Failure) as raised:
        Refusals("change it", list(failures)).raise_if_any()

    expected = next(kind for kind in ORDER if any(type(failure) is kind for failure in failures))
    assert type(raised.value) is expected
    told = str(raised.value)
    assert all(str(failure) in told for failure in failures)
    assert all(told.count(str(failure)) == 1 for failure in failures)


def test_nothing_is_raised_where_nothing_was_refused() -> None:
    Refusals("change it").raise_if_any()


def test_many_refusals_are_counted() -> None:
    refusals = Refusals("change it", [Terminal("AccessDenied", f"no right {number}") for number in range(9)])

    with pytest.raises(Terminal, match="and 4 more"):
        refusals.raise_if_any()
