"""Sequences in which the server in memory was once another than PostgreSQL, or that random ones seldom reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.simulation.postgres.sequences import Names, Step


@dataclass(frozen=True, slots=True)
class Case:
    """Steps, one a line: a verb, and behind a colon a statement with names in braces."""

    words: str
    lines: tuple[str, ...]

    def steps(self, names: Names) -> tuple[Step, ...]:
        """Return the steps with the names of one run."""
        (first, second), anna = names.logins(0), names.strangers[0]
        words = {"db": names.database(0), "a": first, "b": second, "anna": anna, "moved": f"moved_{names.tail}"}
        parts = (line.partition(": ") for line in self.lines)
        return tuple(Step(verb, 0, sql.format_map(words)) for verb, _, sql in parts)


CASES: Final = (
    Case(
        "an invalid database ends the session that alters it",
        (
            "create",
            "stranger: UPDATE pg_catalog.pg_database SET datconnlimit = -2 WHERE datname = '{db}'",
            "update",
            "delete",
            "observe",
        ),
    ),
    Case("a session that an application holds is ended", ("create", "hold", "delete", "observe")),
    Case("a database in use is not dropped", ("create", "hold", "stranger: DROP DATABASE {db}", "list")),
    Case(
        "a membership of somebody else's is not revoked",
        ("create", "stranger: CREATE ROLE {anna}", "stranger: GRANT {db} TO {anna}", "update", "observe"),
    ),
    Case(
        "a renamed database is met under its other name",
        ("create", "remember", "stranger: ALTER DATABASE {db} RENAME TO {moved}", "observe", "finish", "latest"),
    ),
    Case("a retired database is kept", ("create", "retire", "observe", "latest", "create", "retire", "latest")),
    Case("a renamed owner role comes back", ("create", "stranger: ALTER ROLE {db} RENAME TO {anna}", "update")),
    Case(
        "a database of somebody else's is not taken over",
        ("stranger: CREATE ROLE {anna}", "stranger: CREATE DATABASE {db} OWNER {anna}", "observe", "adopt", "create"),
    ),
    Case(
        "the former owner of a database that is taken over keeps its rights",
        (
            "stranger: CREATE ROLE {anna}",
            "stranger: CREATE DATABASE {db} OWNER {anna}",
            'stranger: GRANT {anna} TO "fairlead_admin"',
            "adopt",
            "update",
            "observe",
        ),
    ),
    Case(
        "a schema that a login has made is given back",
        (
            "create",
            "strangers inside: DROP SCHEMA public CASCADE",
            'strangers inside: CREATE SCHEMA IF NOT EXISTS public AUTHORIZATION "{a}"',
            "update",
            "observe",
        ),
    ),
    Case(
        "rights that may be given on lose that",
        ("create", "stranger: GRANT CONNECT ON DATABASE {db} TO {db} WITH GRANT OPTION", "update", "observe"),
    ),
    Case(
        "a role that has a right elsewhere is not dropped",
        ("create", "stranger: GRANT CONNECT ON DATABASE fairlead TO {a}", "delete", "observe",
         "stranger: REVOKE CONNECT ON DATABASE fairlead FROM {a}"),
    ),
    Case(
        "a right that was given on stays with its giver",
        (
            "create",
            "stranger: CREATE ROLE {anna}",
            "stranger: GRANT CONNECT ON DATABASE {db} TO {a} WITH GRANT OPTION",
            "stranger: SET ROLE {a}; GRANT CONNECT ON DATABASE {db} TO {anna}; RESET ROLE",
            "stranger: REVOKE CONNECT ON DATABASE {db} FROM {a}",
            "update",
            "observe",
        ),
    ),
    Case(
        "rights that an adoption kept stay",
        (
            "stranger: CREATE ROLE {anna}",
            'stranger: CREATE DATABASE {db} OWNER "fairlead_admin"',
            "stranger: GRANT CONNECT ON DATABASE {db} TO {anna}",
            "adopt",
            "update",
            "update",
            "observe",
        ),
    ),
    Case(
        "a template is not dropped",
        ("create", "stranger: ALTER DATABASE {db} IS_TEMPLATE true", "own: DROP DATABASE {db}", "update"),
    ),
    Case("a rotation", ("create", "rotate", "log in", "observe", "disable", "observe", "rotate", "log in")),
)  # fmt: skip
