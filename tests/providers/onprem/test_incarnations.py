"""Which very database it is: every row of the oid, the ownership row and the record."""

from __future__ import annotations

import pytest

from providers.onprem.facts import Database, Facts, Row
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


@pytest.mark.parametrize(
    ("recorded", "made_by", "is_of_it"),
    [
        pytest.param("16400", "admin", True, id="the oid was recorded"),
        pytest.param("16400", "somebody", True, id="the oid was recorded, and the owner changed"),
        pytest.param("16399", "admin", False, id="another oid was recorded"),
        pytest.param(None, "admin", True, id="our login made it, and a crash kept the oid from being recorded"),
        pytest.param(None, "somebody", False, id="somebody made it after the row was written"),
    ],
)
def test_row_of_a_database(recorded: str | None, made_by: str, *, is_of_it: bool) -> None:
    row = Row("orders", "home", "uid", "claim", "creating", recorded)
    database = Database("orders", "16400", made_by, True, -1, False, "UTF8")  # noqa: FBT003 - a row of pg_database
    assert Facts("admin", "16.4", 16, row, database).is_row_of_database is is_of_it


def test_row_without_a_database() -> None:
    row = Row("orders", "home", "uid", "claim", "creating")
    assert not Facts("admin", "16.4", 16, row).is_row_of_database
    assert not Facts("admin", "16.4", 16).is_row_of_database
