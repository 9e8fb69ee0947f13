"""The rules that every database on the server meets: each breach found, by name, with the statement that mends it."""

# ruff: noqa: FBT003 - rows of catalogs, in the order of their columns

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from providers.external.client import Target
from providers.external.observation import Change
from providers.external.ownership import Owner
from providers.external.sql.roles import Membership
from providers.external.sql.text import literal, quoted
from providers.onprem.facts import Database, Facts, Grant, Inside, Role, Row, Wanted, broken_rules
from providers.onprem.models import PostgresDatabaseParameters
from providers.onprem.names import Names, hash_in, names_of, retired_name
from providers.onprem.statements import (
    SETTABLE,
    password_statements,
    retirement,
    shut_logins,
    statements,
)
from providers.onprem.translate import wanted

DB = "orders_abcdefghij"
A, B = "app_abcdefghij_a", "app_abcdefghij_b"
WANTED = Wanted(Names(DB, DB, (A, B)), A, "", SETTABLE)


def role(name: str, *, login: bool = True, **changed: object) -> Role:
    base = Role(name, "7", login, False, False, False, False, False, True, -1, None, (f"role={DB}",) if login else ())
    return msgspec.structs.replace(base, **changed)


GRANTS = tuple(Grant(DB, privilege) for privilege in ("CONNECT", "CREATE", "TEMPORARY"))
DATABASE = Database(DB, "16400", "admin", True, -1, False, "UTF8", "C", "C", GRANTS, ())
MEMBERSHIPS = (
    Membership(DB, "admin", True, False, True, "postgres"),
    Membership(A, "admin", True, False, False, "postgres"),
    Membership(DB, A, False, True, True, "admin"),
)
GOOD = Facts(
    "admin",
    "16.4",
    16,
    Row(DB, "home", "uid", "claim", "ready", "16400"),
    DATABASE,
    (role(DB, login=False), role(A)),
    MEMBERSHIPS,
    Inside(DB, ("plpgsql",)),
)


def facts(**changed: object) -> Facts:
    return msgspec.structs.replace(GOOD, **changed)


def database(**changed: object) -> Facts:
    return facts(database=msgspec.structs.replace(DATABASE, **changed))


def login(**changed: Any) -> Facts:
    """Return the facts with a login that differs."""
    return facts(roles=(role(DB, login=False), role(A, **changed)))


def members(*more: Membership, of: tuple[Membership, ...] = MEMBERSHIPS) -> Facts:
    return facts(memberships=(*of, *more))


def member(of: str, who: str, grantor: str = "postgres", **changed: bool) -> Membership:
    """Return the membership of a role in another one, which it inherits and may set."""
    return msgspec.structs.replace(Membership(of, who, False, True, True, grantor), **changed)


@dataclass(frozen=True)
class Breach:
    """Facts that break one rule, the path that names it, and what the first statement that mends it says."""

    facts: Facts
    path: str
    mended_by: str = ""


BREACHES: dict[str, Breach] = {
    "a lost row": Breach(facts(row=None), "ownership.oid"),
    "a row of another oid": Breach(facts(row=Row(DB, "home", "uid", "claim", "ready", "9")), "ownership.oid"),
    "a row that is not ready": Breach(
        facts(row=Row(DB, "home", "uid", "claim", "creating", "16400")), "ownership.state"
    ),
    "another owner": Breach(database(owner="stranger"), "database.owner", "OWNER TO CURRENT_USER"),
    "closed": Breach(database(allows=False), "database.allowConnections", "ALLOW_CONNECTIONS true"),
    "a template": Breach(database(template=True), "database.isTemplate", "IS_TEMPLATE false"),
    "a grant revoked": Breach(database(grants=GRANTS[1:]), f"grants.{DB}.CONNECT", "GRANT CONNECT"),
    "a grant option": Breach(
        database(grants=(Grant(DB, "CONNECT", grantable=True), *GRANTS[1:])),
        f"grants.{DB}.CONNECT",
        "REVOKE GRANT OPTION FOR CONNECT",
    ),
    "a grant to everybody": Breach(
        database(grants=(*GRANTS, Grant("PUBLIC", "CONNECT"))), "grants.PUBLIC.CONNECT", "FROM PUBLIC"
    ),
    "a grant to a stranger": Breach(
        database(grants=(*GRANTS, Grant("s.t", "CONNECT"))), "grants.s.t.CONNECT", 'FROM "s.t"'
    ),
    "a dropped owner": Breach(facts(roles=(role(A),)), f"roles.{DB}", f'CREATE ROLE "{DB}" NOLOGIN'),
    "a dropped login": Breach(facts(roles=(role(DB, login=False),)), f"roles.{A}", f'CREATE ROLE "{A}" LOGIN'),
    "a login switched off": Breach(
        login(login=False, settings=(f"role={DB}",)), f"roles.{A}.login", f'ALTER ROLE "{A}" LOGIN'
    ),
    "an owner that logs in": Breach(
        facts(roles=(role(DB, settings=()), role(A))), f"roles.{DB}.login", f'ALTER ROLE "{DB}" NOLOGIN'
    ),
    "a former login that still works": Breach(
        facts(roles=(role(DB, login=False), role(A), role(B)), memberships=(*MEMBERSHIPS, member(DB, B, "admin"))),
        f"roles.{B}.login",
        "NOLOGIN",
    ),
    "a superuser": Breach(login(superuser=True), f"roles.{A}.superuser"),
    "createdb": Breach(login(createdb=True), f"roles.{A}.createdb", "NOCREATEDB"),
    "createrole": Breach(login(createrole=True), f"roles.{A}.createrole", "NOCREATEROLE"),
    "no inherit": Breach(login(inherit=False), f"roles.{A}.inherit", "INHERIT"),
    "a login's connection limit": Breach(login(limit=0), f"roles.{A}.connectionLimit", "CONNECTION LIMIT -1"),
    "an end of validity": Breach(login(until="2020-01-01"), f"roles.{A}.validUntil", "infinity"),
    "a login that stays itself": Breach(login(settings=("role=none",)), f"roles.{A}.settings", "RESET ALL"),
    "a setting of the login in a neighbour's database": Breach(
        login(set_in=("their.db",)), f"roles.{A}.settingsIn.their.db", 'IN DATABASE "their.db" RESET ALL'
    ),
    "a setting of the owner": Breach(
        facts(roles=(role(DB, login=False, settings=("search_path=x",)), role(A))), f"roles.{DB}.settings", "RESET ALL"
    ),
    "a membership revoked": Breach(facts(memberships=MEMBERSHIPS[:2]), f"members.{DB}.{A}", "GRANT"),
    "a membership without SET": Breach(
        members(member(DB, A, "admin", set=False), of=MEMBERSHIPS[:2]), f"members.{DB}.{A}", "SET TRUE"
    ),
    "an administrator without SET": Breach(
        facts(memberships=(Membership(DB, "admin", True, False, False, "postgres"), *MEMBERSHIPS[1:])),
        f"members.{DB}.admin",
        "TO CURRENT_USER WITH INHERIT FALSE, SET TRUE",
    ),
    "a stranger in the owner role": Breach(
        members(member(DB, "stranger")), f"members.{DB}.stranger", 'FROM "stranger" GRANTED BY "postgres"'
    ),
    "the login in another role": Breach(
        members(member("pg_read_all_data", A)), f"members.pg_read_all_data.{A}", 'REVOKE "pg_read_all_data"'
    ),
    "a stranger in the login": Breach(members(member(A, "stranger", "admin")), f"members.{A}.stranger", "REVOKE"),
    "a setting that is not allowed": Breach(database(settings=("search_path=x",)), "settings.search_path", "RESET"),
    "another owner of the schema": Breach(
        facts(inside=Inside("admin")), "schemas.public.owner", "ALTER SCHEMA public OWNER TO"
    ),
    "a login that owns the schema": Breach(facts(inside=Inside(A)), "schemas.public.owner", f'SET ROLE "{A}"'),
    "a dropped schema": Breach(
        facts(inside=Inside(None)), "schemas.public.owner", "CREATE SCHEMA IF NOT EXISTS public"
    ),
}


@pytest.mark.parametrize("case", BREACHES.values(), ids=BREACHES.keys())
def test_broken_rule_is_found_and_mended(case: Breach) -> None:
    changes = broken_rules(WANTED, case.facts)

    assert case.path in {change.shown for change in changes}
    mended = [
        statement.sql for statement in statements([change for change in changes if change.shown == case.path], WANTED)
    ]
    assert (not case.mended_by and case.path.startswith("ownership")) or any(
        case.mended_by in statement for statement in mended
    )


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(GOOD, id="in order"),
        pytest.param(facts(inside=None), id="unobserved inside"),
        *(
            pytest.param(database(settings=(setting,)), id=setting)
            for setting in ("work_mem=8MB", "TimeZone=UTC", "DateStyle=ISO, DMY")
        ),
    ],
)
def test_database_in_order_breaks_no_rule(seen: Facts) -> None:
    assert broken_rules(WANTED, seen) == ()


@pytest.mark.parametrize("working", [A, B])
def test_logins_stay_where_the_published_login_is_not_known(working: str) -> None:
    forgotten = Wanted(Names(DB, DB, (A, B)), "", "", SETTABLE)
    logins = (role(name, login=name == working, settings=(f"role={DB}",)) for name in (A, B))
    both = (role(DB, login=False), *logins)
    members = (*MEMBERSHIPS, Membership(DB, B, False, True, True, "admin"))

    assert broken_rules(forgotten, facts(roles=both, memberships=members)) == ()
    alone = tuple(name for name in both if name.name in {DB, working})
    assert broken_rules(forgotten, facts(roles=alone, memberships=members)) == ()


def test_statements_that_close_come_before_those_that_open() -> None:
    changes = (
        Change(("database", "allowConnections"), want=True, have=False),
        Change(("grants", "PUBLIC", "CONNECT"), None, "granted"),
        Change(("roles", A), "present", None),
    )

    texts = [statement.sql for statement in statements(changes, WANTED)]

    assert texts[0].startswith("REVOKE")
    assert "ALLOW_CONNECTIONS" in texts[-1]


IDLE_B = facts(
    roles=(role(DB, login=False), role(A), role(B)),
    memberships=(*MEMBERSHIPS, Membership(DB, B, False, True, True, "admin")),
)


def test_unexpected_login_is_switched_off_and_leaves_the_owner_role() -> None:
    changes = broken_rules(WANTED, IDLE_B)

    assert [statement.sql for statement in statements(changes, WANTED)] == [
        f'ALTER ROLE "{B}" NOLOGIN PASSWORD NULL',
        f'REVOKE "{DB}" FROM "{B}" GRANTED BY "admin"',
    ]
    assert shut_logins(changes, WANTED.names) == (B,)


def test_unexpected_login_without_membership_gets_none() -> None:
    changes = broken_rules(WANTED, facts(roles=(role(DB, login=False), role(A), role(B))))

    assert {change.path for change in changes} == {("roles", B, "login")}


@pytest.mark.parametrize("published", [A, "", "elsewhere_a"])
def test_published_login_that_is_not_by_rule_switches_no_other_off(published: str) -> None:
    wanted_ = wanted(Target(DB, spec(), Owner("home", "uid", "claim"), "abcdefghij", active=published))

    assert wanted_.active == (A if published == A else "")
    assert broken_rules(wanted_, GOOD) == ()


STRANGER = "neighbour_abcdefghij_b"
NEVER: dict[str, Change] = {
    "a neighbour's login made": Change(("roles", STRANGER), "present", None),
    "a neighbour's login switched on": Change(("roles", STRANGER, "login"), want=True, have=False),
    "a neighbour's settings": Change(("roles", f"{STRANGER}.settings"), "present", None),
    "a neighbour in the owner role": Change(("members", DB, STRANGER), "granted", None),
    "its own login in a neighbour's role": Change(("members", "neighbour", A), "granted", None),
    "a login that is neither published nor in its grace switched on": Change(
        ("roles", B, "login"), want=True, have=False
    ),
    "such a login in the owner role": Change(("members", DB, B), "granted", None),
    "an owner role that logs in": Change(("roles", DB, "login"), want=True, have=False),
    **{
        f"a login with {right}": Change(("roles", A, right), want=True, have=False)
        for right in ("superuser", "createdb", "createrole", "replication", "bypassrls")
    },
    "an attribute in a name": Change(("roles", f"{A}.createrole"), "present", None),
}


@pytest.mark.parametrize("change", NEVER.values(), ids=NEVER.keys())
def test_right_that_is_never_granted_has_no_statement(change: Change) -> None:
    with pytest.raises(ValueError, match=r"never|no role"):
        statements([change], WANTED)


def test_missing_login_that_is_not_published_is_created_without_login() -> None:
    created = statements([Change(("roles", B), "present", None)], WANTED)

    assert created[0].sql == f'CREATE ROLE "{B}" NOLOGIN'


@pytest.mark.parametrize("name", [STRANGER, f"{A}.createrole", DB, "postgres", ""])
def test_password_goes_to_no_role_but_its_own_logins(name: str) -> None:
    with pytest.raises(ValueError, match="no login of database"):
        password_statements(name, "SCRAM-SHA-256$...", WANTED)
    with pytest.raises(ValueError, match="no login of database"):
        retirement(name, WANTED.names)


@pytest.mark.parametrize("evil", ['a"; DROP DATABASE x; --', "a'; --", "a\\", 'a"b"'])
def test_names_and_texts_are_quoted_whatever_they_hold(evil: str) -> None:
    assert quoted(evil)[1:-1].replace('""', "").count('"') == 0
    inner = literal(evil).removeprefix("E")[1:-1]
    assert inner.replace("''", "").replace("\\\\", "").count("'") == 0


def test_zero_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="zero byte"):
        quoted("a\0")
    with pytest.raises(ValueError, match="zero byte"):
        literal("a\0")


def spec(**fields: object) -> PostgresDatabaseParameters:
    return msgspec.convert({"databaseName": "orders", "username": "app", **fields}, PostgresDatabaseParameters)


def test_names_fit_and_carry_the_hash() -> None:
    long = names_of(spec(databaseName="d" * 50, username="u" * 50), "abcdefghij")

    for name in (long.database, long.owner, *long.logins):
        assert len(name) <= 63
        assert "abcdefghij" in name
    assert hash_in(spec(), "orders_abcdefghij") == "abcdefghij"
    assert hash_in(spec(), "legacy") == ""
    kept = retired_name(long.database, "20261121")
    assert len(kept) <= 63
    assert kept.endswith("_abcdefghij")


@pytest.mark.parametrize("name", ["legacy", "a_" + "b" * 61, "_" * 63, "_legacy", "legacy_abcdefghij"])
def test_retired_name_fits_whatever_the_name_was(name: str) -> None:
    kept = retired_name(name, "20261121")

    assert kept.startswith(f"retired_20261121_{name[:20]}")
    assert len(kept) <= 63
