"""Which very database it is: every row of the oid, the ownership row and the record."""

from __future__ import annotations

import pytest

from providers.onprem.facts import Row
from providers.onprem.incarnations import earlier_ids, finished_before, incarnation_of, oid_of, random_of


def row(oid: str | None = "16405", *, random: str = "ab12", state: str = "ready") -> Row:
    return Row("orders_x", "home", "uid", "claim", state, oid, random)


@pytest.mark.parametrize(
    ("owner", "recorded", "is_"),
    [
        pytest.param(row(), "", "16405-ab12", id="the row's random"),
        pytest.param(row(), "16405", "16405-ab12", id="a record of before the random was kept"),
        pytest.param(row(), "16405-cd34", "16405-ab12", id="another random than was recorded"),
        pytest.param(row(None, state="creating"), "", "16405-ab12", id="a row that does not know the oid yet"),
        pytest.param(row("9"), "16405-ab12", "16405", id="a row of another database"),
        pytest.param(row(state="retired"), "", "16405", id="a row of a retired database"),
        pytest.param(row(random=""), "", "16405", id="a row without a random"),
        pytest.param(None, "", "16405", id="nobody's database"),
        pytest.param(None, "16405-ab12", "16405-ab12", id="a lost row"),
        pytest.param(None, "16406-ab12", "16405", id="a lost row, and another database"),
    ],
)
def test_incarnation_of_a_row(owner: Row | None, recorded: str, is_: str) -> None:
    assert incarnation_of("16405", owner, recorded) == is_


def test_incarnation_was_once_the_oid_alone() -> None:
    assert earlier_ids("16405-ab12") == ("16405",)
    assert earlier_ids("16405") == ()
    assert (oid_of("16405-ab12"), random_of("16405-ab12")) == ("16405", "ab12")
    assert (oid_of("16405"), random_of("16405"), oid_of("")) == ("16405", "", "")


@pytest.mark.parametrize(
    ("owner", "recorded", "is_"),
    [
        pytest.param(row(), "", "16405-ab12", id="nothing is recorded"),
        pytest.param(row(), "16405-cd34", "16405-ab12", id="a former one is recorded"),
        pytest.param(row(), "16405-ab12", "", id="it is recorded"),
        pytest.param(row(), "16405", "", id="it was recorded before the random was kept"),
        pytest.param(row(random=""), "", "16405", id="a row without a random"),
        pytest.param(row(state="creating"), "", "", id="it was never finished"),
        pytest.param(row(None), "", "", id="a row without an oid"),
        *(
            pytest.param(row(state=state), "", "", id=state)
            for state in ("released", "retiring", "retired", "dropping")
        ),
        pytest.param(None, "", "", id="no row"),
    ],
)
def test_row_of_a_missing_database(owner: Row | None, recorded: str, is_: str) -> None:
    assert finished_before(owner, recorded) == is_
