"""Whether the row of fairlead.ownership is of the database that is there."""

from __future__ import annotations

import pytest

from providers.onprem.facts import Database, Facts, Row


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
