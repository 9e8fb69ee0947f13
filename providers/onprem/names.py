"""The names of one database on the server: itself, its owner role, its two logins. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from providers.onprem.models import PostgresDatabaseParameters

LONGEST_STEM = 50
HASH_LENGTH = 10
_RETIRED = re.compile(r"^retired_(?P<date>\d{8})_(?:(?P<number>\d+)_)?(?=.)")
LONGEST_NAME = 63  # NAMEDATALEN - 1 of a stock PostgreSQL, bytes


@dataclass(frozen=True, slots=True)
class Names:
    """`owner` cannot log in and owns schema public; the logins are its members and alternate."""

    database: str
    owner: str
    logins: tuple[str, str]


def names_of(spec: PostgresDatabaseParameters, identity_hash: str, *, external_name: str = "") -> Names:
    """Return the names by rule; `external_name` is a database that was taken over under its own name."""
    owner = f"{spec.database_name[:LONGEST_STEM]}_{identity_hash}"
    login = f"{spec.username[:LONGEST_STEM]}_{identity_hash}"
    return Names(external_name or owner, owner, (f"{login}_a", f"{login}_b"))


def hash_in(spec: PostgresDatabaseParameters, database: str) -> str:
    """Return the hash that a name by rule ends in, retired or not; empty for a name that was given by a person."""
    _, _, tail = database.rpartition("_")
    by_rule, retired = f"{spec.database_name[:LONGEST_STEM]}_{tail}", _RETIRED.match(database)
    if len(tail) != HASH_LENGTH:
        return ""
    if retired is not None and retired_name(by_rule, retired["date"], int(retired["number"] or 0)) == database:
        return tail
    return tail if database == by_rule else ""


def is_owner_by_rule(role: str) -> bool:
    """Return whether a role is called as owner roles are; its name proves nothing."""
    stem, _, tail = role.rpartition("_")
    return bool(stem) and len(tail) == HASH_LENGTH and tail.isalnum()


def retired_name(database: str, date: str, number: int = 0) -> str:
    """Return the name that a retired database gets, its hash kept when it must be cut; `date` is YYYYMMDD.

    `number` distinguishes what is retired on the same day; a database that was retired before loses its former date.
    """
    start = f"retired_{date}_{number}_" if number else f"retired_{date}_"
    database = _RETIRED.sub("", database)
    stem, _, tail = database.rpartition("_")
    if not stem or len(tail) != HASH_LENGTH:
        return f"{start}{database}"[:LONGEST_NAME]
    room = LONGEST_NAME - len(start) - len(tail) - 1
    return f"{start}{stem[:room]}_{tail}"
