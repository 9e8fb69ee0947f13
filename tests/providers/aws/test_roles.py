"""What keeps an instance's two logins true: each difference a row; names; which logins an instance has."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec
import pytest

from providers.aws.instances import translate
from providers.aws.instances.roles import (
    Role,
    Roles,
    Wanted,
    broken,
    in_order,
    names_of,
    password,
    retirement,
)
from providers.aws.models import RDSInstanceParameters
from providers.external.client import Target
from providers.external.ownership import Owner
from providers.external.sql.roles import Membership

NAMES = names_of("boss")
WANTED = Wanted(NAMES, "app", frozenset({"boss_a"}))
SETTING = ("role=boss_owner",)
LOGIN = Role("boss_a", login=True, createdb=False, createrole=False, settings=SETTING)
OWNER_ROLE = Role("boss_owner", login=False, createdb=False, createrole=False)
SEAT = Membership("boss_owner", "boss", admin=False, inherit=True, set=True, grantor="boss")
MADE = Membership("boss_owner", "boss", admin=True, inherit=False, set=False, grantor="rdsadmin")
PLACE = Membership("boss_owner", "boss_a", admin=False, inherit=True, set=True, grantor="boss")
TRUE = Roles(
    "boss",
    (LOGIN, OWNER_ROLE),
    (MADE, SEAT, PLACE),
    ("CONNECT", "CREATE", "TEMPORARY"),
    "boss_owner",
    databases=("app", "postgres"),
)


def _with(**changes: object) -> Roles:
    return msgspec.structs.replace(TRUE, **changes)


FOREIGN = Membership("rds_superuser", "boss_a", admin=False, inherit=True, set=True, grantor="boss")
STRANGER = Membership("boss_owner", "eve", admin=False, inherit=True, set=True, grantor="boss")
FORMER = msgspec.structs.replace(LOGIN, name="boss_b")

ROWS: dict[str, tuple[Roles, str]] = {
    "a role that may not log in": (
        _with(roles=(msgspec.structs.replace(LOGIN, login=False), OWNER_ROLE)),
        'ALTER ROLE "boss_a" LOGIN',
    ),
    "an owner role that may": (
        _with(roles=(LOGIN, msgspec.structs.replace(OWNER_ROLE, login=True))),
        'ALTER ROLE "boss_owner" NOLOGIN',
    ),
    "a login that may make roles": (
        _with(roles=(msgspec.structs.replace(LOGIN, createrole=True), OWNER_ROLE)),
        'ALTER ROLE "boss_a" NOCREATEROLE',
    ),
    "a login that works as itself": (
        _with(roles=(msgspec.structs.replace(LOGIN, settings=()), OWNER_ROLE)),
        'ALTER ROLE "boss_a" RESET ALL; ALTER ROLE "boss_a" SET role TO "boss_owner"',
    ),
    "a login of nobody's": (
        _with(roles=(LOGIN, FORMER, OWNER_ROLE)),
        'ALTER ROLE "boss_b" NOLOGIN PASSWORD NULL; REVOKE "boss_owner" FROM "boss_b"',
    ),
    "a login out of its place": (
        _with(memberships=(MADE, SEAT)),
        'GRANT "boss_owner" TO "boss_a" WITH ADMIN FALSE, INHERIT TRUE, SET TRUE',
    ),
    "an administrator without its seat": (
        _with(memberships=(MADE, PLACE)),
        'GRANT "boss_owner" TO CURRENT_USER WITH INHERIT TRUE, SET TRUE',
    ),
    "a login in the administrators' role": (
        _with(memberships=(MADE, SEAT, PLACE, FOREIGN)),
        'REVOKE "rds_superuser" FROM "boss_a" GRANTED BY "boss"',
    ),
    "a stranger in the owner role": (
        _with(memberships=(MADE, SEAT, PLACE, STRANGER)),
        'REVOKE "boss_owner" FROM "eve" GRANTED BY "boss"',
    ),
    "a right on the database": (
        _with(privileges=("CONNECT", "CREATE")),
        'GRANT TEMPORARY ON DATABASE "app" TO "boss_owner"',
    ),
    "schema public of another": (_with(schema_owner="boss"), 'ALTER SCHEMA public OWNER TO "boss_owner"'),
    "what the administrator made": (
        _with(owned=3),
        (
            'REASSIGN OWNED BY CURRENT_USER TO "boss_owner"; ALTER DATABASE "app" OWNER TO CURRENT_USER;'
            ' ALTER DATABASE "postgres" OWNER TO CURRENT_USER'
        ),
    ),
    "the administrator as the owner role": (
        _with(stands_in=True),
        'ALTER ROLE "boss" IN DATABASE "app" RESET ALL',
    ),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_difference_of_roles_is_ended(row: tuple[Roles, str]) -> None:
    seen, statements = row
    assert broken(WANTED, seen) != ()
    assert in_order(WANTED, seen) == statements


def test_roles_in_order_need_no_statement() -> None:
    assert broken(WANTED, TRUE) == ()
    assert in_order(WANTED, TRUE) == ""
    # A schema public that is gone is the application's affair.
    assert broken(WANTED, _with(schema_owner=None)) == ()


def test_empty_server_gets_roles_before_what_names_them() -> None:
    statements = in_order(WANTED, Roles("boss", schema_owner="pg_database_owner", databases=("app",))).split("; ")
    assert statements[0] == 'CREATE ROLE "boss_owner" NOLOGIN'
    assert statements.index('CREATE ROLE "boss_a" LOGIN') < statements.index(
        'ALTER ROLE "boss_a" SET role TO "boss_owner"'
    )
    assert not any("SUPERUSER" in statement or "boss_b" in statement for statement in statements)


@pytest.mark.parametrize("name", ["boss", "boss_owner", "postgres", "eve", "boss_a.login", ""])
def test_role_that_is_no_login_by_rule_is_never_changed(name: str) -> None:
    with pytest.raises(ValueError, match="no login of this instance"):
        password(name, "SCRAM-SHA-256$1:x$y:z", NAMES)
    with pytest.raises(ValueError, match="no login of this instance"):
        retirement(name, NAMES)


def test_names_stay_within_postgresqls_length_and_are_quoted() -> None:
    names = names_of("x" * 63)
    assert {len(name) <= 63 for name in (names.owner, *names.logins)} == {True}
    evil = names_of('a"; DROP ROLE b; --')
    assert password(evil.logins[0], "v", evil).startswith('ALTER ROLE "a""; DROP ROLE b; --_a" LOGIN')


@dataclass(frozen=True)
class Having:
    logins: tuple[str, str]
    alternates: bool = True
    active: str = ""
    incarnation: str = ""
    version: str | None = "16"


ONE, TWO, MOVING = ("boss", "boss"), ("boss_a", "boss_b"), ("boss", "boss_a")
LOGINS = {
    "born with two": Having(TWO),
    "born of a version that is RDS's to choose": Having(TWO, version=None),
    "born with one": Having(ONE, alternates=False),
    "before PostgreSQL 16": Having(ONE, version="15.4"),
    "published with one, to move": Having(MOVING, active="boss", incarnation="db-1"),
    "published with one": Having(ONE, alternates=False, active="boss", incarnation="db-1"),
    "published with two": Having(TWO, active="boss_b", incarnation="db-1"),
    "two stay two": Having(TWO, alternates=False, active="boss_b", incarnation="db-1"),
    "two stay two whatever version is asked for": Having(TWO, active="boss_a", version="15"),
    "taken over, or its status is lost": Having(ONE, incarnation="db-1"),
    "a stranger's name counts for nothing": Having(ONE, active="eve", incarnation="db-1"),
}


@pytest.mark.parametrize("row", LOGINS.values(), ids=LOGINS.keys())
def test_logins_of_an_instance(row: Having) -> None:
    spec = RDSInstanceParameters(
        db_instance_class="x", allocated_storage=1, master_username="boss", engine_version=row.version
    )
    target = Target(
        "fl-x", spec, Owner("home", "uid", "claim"), "hash",
        active=row.active, incarnation=row.incarnation, alternates=row.alternates,
    )  # fmt: skip
    assert translate.logins(target) == row.logins


def test_working_logins() -> None:
    spec = RDSInstanceParameters(db_instance_class="x", allocated_storage=1, master_username="boss")
    target = Target("fl-x", spec, Owner("home", "uid", "claim"), "hash", active="boss_a", retiring="boss_b")
    assert translate.wanted_roles(target, "app") == Wanted(NAMES, "app", frozenset(NAMES.logins))
    moving = translate.wanted_roles(replace(target, active="boss", retiring=""), "app", setting="boss_a")
    assert moving == Wanted(NAMES, "app", frozenset({"boss_a"}), is_moving=True)
    stranger = translate.wanted_roles(replace(target, retiring="eve", coming="rdsadmin"), "app", setting="mallory")
    assert stranger.working == {"boss_a"}
