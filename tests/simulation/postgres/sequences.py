"""Random sequences of what the provider and others do on a server, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from providers.external.sql.text import literal, quoted

_CLOUD: Final[tuple[tuple[str, int], ...]] = (
    ("create", 6), ("observe", 4), ("update", 8), ("rotate", 2), ("set", 2), ("disable", 2), ("adopt", 2),
    ("release", 1), ("delete", 3), ("retire", 2), ("finish", 3), ("latest", 1), ("list", 2), ("predecessors", 1),
    ("log in", 2), ("remember", 2), ("edit", 2), ("hold", 1), ("let go", 1),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that is done: `verb` by the provider's cloud, or a statement; `place` is which database."""

    verb: str
    place: int = 0
    sql: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.place} {self.sql}".strip()


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one sequence, which no other has: two databases with their roles, and strangers."""

    tail: str

    @property
    def tails(self) -> tuple[str, str]:
        """The hashes of the two."""
        return f"{self.tail}aa", f"{self.tail}bb"

    def database(self, place: int) -> str:
        """Return a database by rule, which is its owner role as well."""
        return f"orders_{self.tails[place]}"

    def logins(self, place: int) -> tuple[str, str]:
        """Return the logins of a database."""
        return f"app_{self.tails[place]}_a", f"app_{self.tails[place]}_b"

    @property
    def strangers(self) -> tuple[str, str]:
        """Roles of others."""
        return f"anna_{self.tail}", f"bert_{self.tail}"


@dataclass(frozen=True, slots=True)
class Draw:
    """Draws statements about the things of one sequence."""

    chance: random.Random
    names: Names
    admin: str

    def of(self, *members: str) -> str:
        """Return one of these."""
        return self.chance.choice(members)

    def database(self) -> str:
        """Return a database, seldom another name."""
        moved = f"moved_{self.names.tail}"
        return quoted(self.chance.choices((self.names.database(0), self.names.database(1), moved), (6, 3, 1))[0])

    def role(self) -> str:
        """Return a role."""
        ours = [self.names.database(0), *self.names.logins(0), self.names.database(1), self.names.logins(1)[0]]
        return quoted(self.of(*ours, *ours[:2], *self.names.strangers))

    def member(self) -> str:
        """Return a role, or whoever acts."""
        return self.of("CURRENT_USER", self.role(), self.role())

    def right(self) -> str:
        """Return rights on a database."""
        return self.of("CONNECT", "CREATE", "TEMPORARY", "CONNECT, CREATE, TEMPORARY")


Form = Callable[[Draw], str]
_FORGET: Final = "DELETE FROM fairlead.ownership WHERE database = {}"
_SETTINGS: Final = ("work_mem TO '8MB'", "work_mem TO '16MB'", "work_mem TO 'lots'", "\"timezone\" TO 'UTC'")
_ATTRIBUTES: Final = (
    "LOGIN", "NOLOGIN", "NOCREATEDB", "CREATEDB", "NOINHERIT", "INHERIT", "CONNECTION LIMIT 0", "CONNECTION LIMIT -1",
    "VALID UNTIL 'infinity'", "VALID UNTIL '2020-01-01'", "NOLOGIN PASSWORD NULL", "NOREPLICATION", "NOSUPERUSER",
)  # fmt: skip
_ANYBODYS: Final[tuple[Form, ...]] = (
    lambda d: f"ALTER DATABASE {d.database()} CONNECTION LIMIT {d.of('-1', '0', '5', '20')}",
    lambda d: f"ALTER DATABASE {d.database()} ALLOW_CONNECTIONS {d.of('true', 'false')}",
    lambda d: f"ALTER DATABASE {d.database()} IS_TEMPLATE {d.of('true', 'false', 'false')}",
    lambda d: f"ALTER DATABASE {d.database()} OWNER TO {d.of('CURRENT_USER', d.role())}",
    lambda d: f"ALTER DATABASE {d.database()} RENAME TO {d.database()}",
    lambda d: f"ALTER DATABASE {d.database()} SET {d.of(*_SETTINGS)}",
    lambda d: f"ALTER DATABASE {d.database()} RESET {quoted(d.of('work_mem', 'log_min_duration_statement'))}",
    lambda d: f"GRANT {d.right()} ON DATABASE {d.database()} TO {d.of('PUBLIC', d.role(), d.role())}",
    lambda d: f"REVOKE {d.right()} ON DATABASE {d.database()} FROM {d.of('PUBLIC', d.role(), d.role())}",
    lambda d: f"REVOKE GRANT OPTION FOR {d.right()} ON DATABASE {d.database()} FROM {d.role()}",
    lambda d: f"CREATE ROLE {d.role()} {d.of('LOGIN', 'NOLOGIN', 'LOGIN NOINHERIT', 'LOGIN CREATEDB')}",
    lambda d: f"ALTER ROLE {d.role()} {d.of(*_ATTRIBUTES)}",
    lambda d: f"ALTER ROLE {d.role()} SET role TO {d.role()}",
    lambda d: f"ALTER ROLE {d.role()} RESET ALL",
    lambda d: f"ALTER ROLE {d.role()} IN DATABASE {d.database()} RESET ALL",
    lambda d: f"GRANT {d.role()} TO {d.member()} WITH INHERIT FALSE, SET TRUE",
    lambda d: f"GRANT {d.role()} TO {d.member()} WITH ADMIN FALSE, INHERIT TRUE, SET TRUE",
    lambda d: f"REVOKE {d.role()} FROM {d.member()}",
    lambda d: f"REVOKE {d.role()} FROM {d.role()} GRANTED BY {d.of(quoted(d.admin), d.role())}",
    lambda d: f"DROP ROLE {d.of('', 'IF EXISTS ')}{d.role()}",
    lambda d: f"DROP DATABASE {d.database()}",
)
_OWN: Final[tuple[Form, ...]] = (
    lambda d: f"SET ROLE {d.role()}",
    lambda d: (
        f"ALTER DATABASE {(name := d.database())} OWNER TO CURRENT_USER;"
        f" GRANT CONNECT, CREATE, TEMPORARY ON DATABASE {name} TO {d.role()}"
    ),
    lambda d: f"ALTER ROLE {d.role()} NOLOGIN PASSWORD NULL",
)
_STRANGERS: Final[tuple[Form, ...]] = (
    lambda d: f"CREATE DATABASE {d.database()} OWNER {d.role()}",
    lambda d: f"CREATE ROLE {d.role()} LOGIN",
    lambda d: f"DROP DATABASE {d.database()} WITH (FORCE)",
    lambda d: f"ALTER ROLE {d.role()} RENAME TO {d.role()}",
    lambda d: f"GRANT {d.right()} ON DATABASE {d.database()} TO {d.role()} WITH GRANT OPTION",
    lambda d: f"GRANT {d.role()} TO {d.member()} WITH ADMIN OPTION",
    lambda d: f"ALTER ROLE {d.role()} {d.of('SUPERUSER', 'NOSUPERUSER', 'CREATEROLE', 'BYPASSRLS')}",
    lambda d: f"ALTER ROLE {d.role()} IN DATABASE {d.database()} SET search_path TO 'public'",
    lambda d: f"ALTER DATABASE {d.database()} SET log_min_duration_statement TO '0'",
    lambda d: f"UPDATE pg_catalog.pg_database SET datconnlimit = -2 WHERE datname = {_text(d.database())}",  # noqa: S608 - names of this sequence
    lambda d: f"GRANT {d.role()} TO {quoted(d.admin)}",
)
_INSIDE: Final[tuple[Form, ...]] = (
    lambda d: f"ALTER SCHEMA public OWNER TO {d.role()}",
    lambda d: f"CREATE SCHEMA IF NOT EXISTS public AUTHORIZATION {d.role()}",
    lambda d: f"GRANT USAGE, CREATE ON SCHEMA public TO {d.role()}",
    lambda d: f"CREATE EXTENSION IF NOT EXISTS {d.of('plpgsql', 'vector', 'nosuch')} SCHEMA public",
    lambda _: "DROP SCHEMA public CASCADE",
    lambda _: "CREATE SCHEMA public",
)


def _text(name: str) -> str:
    return literal(name[1:-1])


def sequence(seed: str, names: Names, admin: str) -> tuple[Step, ...]:
    """Return the steps of one sequence; it begins with a database in three of four."""
    chance = random.Random(seed)  # noqa: S311 - the same draws each time
    draw = Draw(chance, names, admin)
    steps = [Step("create")] if chance.random() < 3 / 4 else []
    return (*steps, *(_step(draw) for _ in range(chance.randint(6, 14))))


def _step(draw: Draw) -> Step:
    chance = draw.chance
    place = chance.choices((0, 1), (5, 1))[0]
    match chance.choices(("cloud", "own", "stranger", "inside", "forget"), (8, 4, 5, 2, 1))[0]:
        case "cloud":
            verbs, weights = zip(*_CLOUD, strict=True)
            return Step(chance.choices(verbs, weights)[0], place)
        case "own":
            return Step("own", place, chance.choice((*_ANYBODYS, *_OWN))(draw))
        case "stranger":
            return Step("stranger", place, chance.choice((*_ANYBODYS, *_STRANGERS, *_STRANGERS))(draw))
        case "inside":
            return Step(draw.of("inside", "strangers inside"), place, chance.choice(_INSIDE)(draw))
        case _:
            return Step("table", place, _FORGET.format(literal(draw.names.database(place))))
