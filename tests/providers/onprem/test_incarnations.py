"""Which very database it is, and what is known of one by its name and its rights before it is taken over."""

# ruff: noqa: FBT003 - rows of catalogs, in the order of their columns

from __future__ import annotations

import string
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.external.observation import Change
from providers.external.sql.roles import Membership
from providers.onprem.facts import Database, Facts, Grant, Row, broken_rules, kept_rights, right_text
from providers.onprem.incarnations import earlier_ids, finished_before, incarnation_of, oid_of, random_of
from providers.onprem.models import PostgresDatabaseParameters
from providers.onprem.names import hash_in, names_of, retired_name
from providers.onprem.statements import by_change, is_closing, is_opening
from tests.providers.onprem.test_rules import DATABASE, DB, GOOD, GRANTS, WANTED, A, database, facts, role


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
    database = Database("orders", "16400", made_by, True, -1, False, "UTF8")
    assert Facts("admin", "16.4", 16, row, database).is_row_of_database is is_of_it


def test_row_without_a_database() -> None:
    row = Row("orders", "home", "uid", "claim", "creating")
    assert not Facts("admin", "16.4", 16, row).is_row_of_database
    assert not Facts("admin", "16.4", 16).is_row_of_database


START = string.ascii_lowercase + "_"
NAMES = st.builds(
    lambda first, rest: first + rest, st.sampled_from(START), st.text(START + string.digits, max_size=49)
).filter(lambda name: not name.startswith("retired_"))
HASHES = st.text(string.ascii_lowercase + string.digits, min_size=10, max_size=10)
DATES = st.dates().map(lambda date: date.strftime("%Y%m%d").zfill(8))


@given(NAMES, HASHES, DATES, st.integers(0, 99))
def test_hash_is_recognized_in_a_retired_name(name: str, hash_: str, date: str, number: int) -> None:
    spec = PostgresDatabaseParameters(database_name=name, username="app")
    retired = retired_name(names_of(spec, hash_).database, date, number)

    assert len(retired) <= 63
    assert hash_in(spec, retired) == hash_
    again = retired_name(retired, "20300101")
    assert again.count("retired_") == 1
    assert hash_in(PostgresDatabaseParameters(database_name=f"x{name}"[:50], username="app"), "legacy") == ""


@given(NAMES, NAMES, HASHES)
def test_hash_is_recognized_only_after_its_name(name: str, other: str, hash_: str) -> None:
    spec = PostgresDatabaseParameters(database_name=name, username="app")
    for retired in (f"{other}_{hash_}", retired_name(f"{other}_{hash_}", "20261121")):
        if hash_in(spec, retired):
            assert name.startswith(other[:30]) or other == name


STRANGER = Grant("s.t", "CONNECT")
PUBLIC = Grant("PUBLIC", "CONNECT")
FOREIGN = msgspec.structs.replace(
    database(grants=(*GRANTS, STRANGER, PUBLIC)),
    memberships=(
        *GOOD.memberships,
        Membership(DB, "anna", False, True, True, "postgres"),
        Membership("pg_read_all_data", A, False, True, True, "postgres"),
    ),
)
KEPT = {
    right_text(Change(("grants", "s.t", "CONNECT"), None, "granted")),
    right_text(Change(("grants", "PUBLIC", "CONNECT"), None, "granted")),
    right_text(Change(("members", DB, "anna"), None, "granted")),
}


@pytest.mark.parametrize("row", [None, Row(DB, "home", "uid", "claim", "released", "16400")])
def test_rights_on_a_foreign_database_are_kept_except_those_of_our_logins(row: Row | None) -> None:
    seen = msgspec.structs.replace(FOREIGN, row=row)

    kept = kept_rights(WANTED, seen, is_ours=False, is_recorded=False)

    assert set(kept) == KEPT
    left = {change.path for change in broken_rules(WANTED, msgspec.structs.replace(seen, kept=kept))}
    assert left - {("ownership", "oid"), ("ownership", "state")} == {("members", "pg_read_all_data", A)}


def test_rights_on_our_database_are_kept_as_its_row_says() -> None:
    noted = tuple(sorted(KEPT))[:1]
    row = msgspec.structs.replace(GOOD.row or Row("", "", "", "", ""), kept_rights=noted)

    assert kept_rights(WANTED, FOREIGN, is_ours=True, is_recorded=False) == ()
    assert kept_rights(WANTED, msgspec.structs.replace(FOREIGN, row=row), is_ours=True, is_recorded=False) == noted


def test_lost_row_keeps_rights_only_where_a_person_chose_the_name() -> None:
    seen = msgspec.structs.replace(FOREIGN, row=None)
    named = msgspec.structs.replace(seen, database=msgspec.structs.replace(FOREIGN.database or DATABASE, name="legacy"))
    theirs = replace(WANTED, names=replace(WANTED.names, database="legacy"))

    assert kept_rights(WANTED, seen, is_ours=False, is_recorded=True) == ()
    assert set(kept_rights(theirs, named, is_ours=False, is_recorded=True)) == KEPT


def test_missing_owner_role_is_created_before_anything_names_it() -> None:
    seen = facts(roles=(role(A),), database=msgspec.structs.replace(DATABASE, grants=(PUBLIC,)))

    groups = by_change(broken_rules(WANTED, seen), WANTED)

    first, statements = groups[0]
    assert first.path == ("roles", DB)
    assert statements[0].sql == f'CREATE ROLE "{DB}" NOLOGIN'


def test_opening_comes_after_all_that_closes() -> None:
    seen = msgspec.structs.replace(
        FOREIGN,
        database=msgspec.structs.replace(DATABASE, grants=(*GRANTS, STRANGER), allows=False),
        roles=(role(DB), role(A)),
    )
    changes = [change for change, _ in by_change(broken_rules(WANTED, seen), WANTED)]

    closing = [number for number, change in enumerate(changes) if is_closing(change)]
    opening = [number for number, change in enumerate(changes) if is_opening(change)]
    assert len(opening) == 1
    assert max(closing) < min(opening)
