"""Of several refusals one is raised: what may go well the next time first, with the text of all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.onprem.refused_statements import Refusals
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
def test_refusal_that_may_end_by_itself_is_raised_first_with_the_text_of_all(failures: list[Failure]) -> None:
    with pytest.raises(Failure) as raised:
        Refusals("change it", list(failures)).raise_if_any()

    expected = next(kind for kind in ORDER if any(type(failure) is kind for failure in failures))
    assert type(raised.value) is expected
    message = str(raised.value)
    assert all(str(failure) in message for failure in failures)
    assert all(message.count(str(failure)) == 1 for failure in failures)


def test_refusals_raise_nothing_where_nothing_was_refused() -> None:
    Refusals("change it").raise_if_any()


def test_refusals_beyond_the_first_are_counted() -> None:
    refusals = Refusals("change it", [Terminal("AccessDenied", f"no right {number}") for number in range(9)])

    with pytest.raises(Terminal, match="and 4 more"):
        refusals.raise_if_any()
