"""The names of one database on the server: itself, its owner role, its two logins. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from providers.onprem.models import PostgresDatabaseParameters

LONGEST_STEM = 50
HASH_LENGTH = 10
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
    """Return the hash that a name by rule ends in, empty for a name that was given by a person."""
    stem, _, tail = database.rpartition("_")
    return tail if stem == spec.database_name[:LONGEST_STEM] and len(tail) == HASH_LENGTH else ""


def retired_name(database: str, date: str) -> str:
    """Return the name that a retired database gets, its hash kept when it must be cut; `date` is YYYYMMDD."""
    start = f"retired_{date}_"
    stem, _, tail = database.rpartition("_")
    if not stem or len(tail) != HASH_LENGTH:
        return f"{start}{database}"[:LONGEST_NAME]
    room = LONGEST_NAME - len(start) - len(tail) - 1
    return f"{start}{stem[:room]}_{tail}"


def quoted(name: str) -> str:
    """Quote an identifier (manual, "Lexical Structure"): safe whatever it holds but a zero byte."""
    if "\0" in name:
        raise ValueError("a name of PostgreSQL holds no zero byte")
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote a string constant; backslashes go as an E'' string, whatever standard_conforming_strings says."""
    if "\0" in text:
        raise ValueError("a text of PostgreSQL holds no zero byte")
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'" if "\\" in text else f"'{escaped}'"
