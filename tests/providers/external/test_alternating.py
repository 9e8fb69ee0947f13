"""What keeps a server's two logins true, each difference a row; SCRAM-SHA-256 by its RFCs."""

from __future__ import annotations

import base64
import hashlib
import hmac
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from providers.external.client import Target
from providers.external.ownership import Owner
from providers.external.sql.alternating import (
    Role,
    Roles,
    Wanted,
    broken,
    in_order,
    logins_of,
    names_of,
    password,
    retirement,
    wanted_of,
)
from providers.external.sql.roles import Membership
from providers.external.sql.scram import Exchange, ScramError, verifier

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


def _login(**changes: object) -> Roles:
    """Return roles whose one login differs."""
    return _with(roles=(msgspec.structs.replace(LOGIN, **changes), OWNER_ROLE))


def _members(more: Membership) -> Roles:
    return _with(memberships=(MADE, SEAT, PLACE, more))


FOREIGN = Membership("rds_superuser", "boss_a", admin=False, inherit=True, set=True, grantor="boss")
STRANGER = Membership("boss_owner", "eve", admin=False, inherit=True, set=True, grantor="boss")
FORMER = msgspec.structs.replace(LOGIN, name="boss_b")

_HANDED_OVER = (
    'REASSIGN OWNED BY CURRENT_USER TO "boss_owner"; ALTER DATABASE "app" OWNER TO CURRENT_USER;'
    ' ALTER DATABASE "postgres" OWNER TO CURRENT_USER'
)
ROWS: dict[str, tuple[Roles, str]] = {
    "a role that may not log in": (_login(login=False), 'ALTER ROLE "boss_a" LOGIN'),
    "an owner role that may": (
        _with(roles=(LOGIN, msgspec.structs.replace(OWNER_ROLE, login=True))),
        'ALTER ROLE "boss_owner" NOLOGIN',
    ),
    "a login that may make roles": (_login(createrole=True), 'ALTER ROLE "boss_a" NOCREATEROLE'),
    "a login that works as itself": (
        _login(settings=()),
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
        _members(FOREIGN),
        'REVOKE "rds_superuser" FROM "boss_a" GRANTED BY "boss"',
    ),
    "a stranger in the owner role": (_members(STRANGER), 'REVOKE "boss_owner" FROM "eve" GRANTED BY "boss"'),
    "a right on the database": (
        _with(privileges=("CONNECT", "CREATE")),
        'GRANT TEMPORARY ON DATABASE "app" TO "boss_owner"',
    ),
    "schema public of another": (_with(schema_owner="boss"), 'ALTER SCHEMA public OWNER TO "boss_owner"'),
    "what the administrator made": (_with(owned=3), _HANDED_OVER),
    "the administrator as the owner role": (_with(stands_in=True), 'ALTER ROLE "boss" IN DATABASE "app" RESET ALL'),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_difference_of_roles_is_ended(row: tuple[Roles, str]) -> None:
    seen, statements = row
    assert broken(WANTED, seen) != ()
    assert in_order(WANTED, seen) == statements


def test_before_there_is_a_database_roles_alone_are_made() -> None:
    early = Wanted(NAMES, "", frozenset({"boss_a"}))
    statements = in_order(early, Roles("boss", schema_owner="azure_pg_admin", owned=3, databases=("postgres",)))
    assert not {"DATABASE", "SCHEMA", "REASSIGN"} & set(statements.split())
    assert 'GRANT "boss_owner" TO "boss_a" WITH ADMIN FALSE, INHERIT TRUE, SET TRUE' in statements
    assert broken(early, _with(privileges=(), schema_owner="boss", owned=3)) == ()


@pytest.mark.parametrize("name", ["boss", "boss_owner", "postgres", "eve", "boss_a.login", ""])
def test_role_that_is_no_login_by_rule_is_never_changed(name: str) -> None:
    with pytest.raises(ValueError, match="no login of this server"):
        password(name, "SCRAM-SHA-256$1:x$y:z", NAMES)
    with pytest.raises(ValueError, match="no login of this server"):
        retirement(name, NAMES)


def test_names_stay_within_postgresqls_length_and_are_quoted() -> None:
    names = names_of("x" * 63)
    assert {len(name) <= 63 for name in (names.owner, *names.logins)} == {True}
    evil = names_of('a"; DROP ROLE b; --')
    assert password(evil.logins[0], "v", evil).startswith('ALTER ROLE "a""; DROP ROLE b; --_a" LOGIN')


@dataclass(frozen=True)
class Having:
    """What a spec and a status say of logins, and which two there are; the same one twice is the only one."""

    logins: tuple[str, str]
    may: bool = True
    alternates: bool = True
    active: str = ""
    incarnation: str = ""


ONE, TWO, MOVING = ("boss", "boss"), ("boss_a", "boss_b"), ("boss", "boss_a")
LOGINS = {
    "made with two": Having(TWO),
    "made with one": Having(ONE, alternates=False),
    "a version that takes no two": Having(ONE, may=False),
    "published with one, to move": Having(MOVING, active="boss", incarnation="db-1"),
    "published with one": Having(ONE, alternates=False, active="boss", incarnation="db-1"),
    "published with two": Having(TWO, active="boss_b", incarnation="db-1"),
    "two stay two": Having(TWO, alternates=False, active="boss_b", incarnation="db-1"),
    "two stay two whatever version is asked for": Having(TWO, may=False, active="boss_a", incarnation=""),
    "taken over, or its status is lost": Having(ONE, incarnation="db-1"),
    "a stranger's name counts for nothing": Having(ONE, active="eve", incarnation="db-1"),
}
TARGET: Target[Any] = Target("fl-x", None, Owner("home", "uid", "claim"), "hash")


@pytest.mark.parametrize("row", LOGINS.values(), ids=LOGINS.keys())
def test_logins_of_a_server(row: Having) -> None:
    target = replace(TARGET, active=row.active, incarnation=row.incarnation, alternates=row.alternates)
    assert logins_of(target, "boss", may_alternate=row.may) == row.logins


def test_working_logins() -> None:
    target = replace(TARGET, active="boss_a", retiring="boss_b")
    assert wanted_of(target, "boss", "app") == Wanted(NAMES, "app", frozenset(NAMES.logins))
    moving = wanted_of(replace(target, active="boss", retiring=""), "boss", "app", setting="boss_a")
    assert moving == Wanted(NAMES, "app", frozenset({"boss_a"}), is_moving=True)
    stranger = wanted_of(replace(target, retiring="eve", coming="rdsadmin"), "boss", "app", setting="mallory")
    assert stranger.working == {"boss_a"}


SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def test_verifier_holds_the_keys_of_the_rfcs_example() -> None:
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)
    stored = hashlib.sha256(hmac.new(salted, b"Client Key", hashlib.sha256).digest()).digest()

    made = verifier("pencil", SALT)

    assert made.startswith("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$")
    assert base64.b64encode(stored).decode() in made
    # StoredKey and ServerKey of that example, as several implementations publish them.
    assert made.endswith("WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=")


@pytest.mark.parametrize(
    "message",
    [b"", b"r=stranger,s=AAAA,i=4096", b"r=nonce,i=4096", b"r=nonce,s=AAAA,i=0", b"r=nonce,s=AAAA,i=99999999999"],
)
def test_server_that_proves_nothing_is_refused(message: bytes) -> None:
    with pytest.raises(ScramError):
        Exchange("pencil", "nonce").answer(message)
