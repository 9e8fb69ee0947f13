"""Every statement that the model knows; any other is an error of the simulation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from fairlead.simulation.postgres import databases, grants, ownership, reading, roles, schemas, settings
from fairlead.simulation.postgres.ownership import Answer
from fairlead.simulation.postgres.refusals import UnmodelledError
from fairlead.simulation.postgres.server import Backend, snapshot
from fairlead.simulation.postgres.texts import name_in, plain
from providers.onprem import catalog
from providers.onprem.session import _WHO

Carry = Callable[[Backend, Mapping[str, Any]], None]
Question = Callable[[Backend, Mapping[str, Any]], Answer]

_QUESTIONS: Final[Mapping[str, Question]] = {
    _WHO: reading.who,
    catalog.SERVER: reading.about,
    catalog.FACTS: reading.facts,
    catalog.INSIDE: reading.inside,
    catalog.ALL: reading.every,
    catalog.STRANGERS: reading.strangers,
    catalog.PREDECESSORS: reading.predecessors,
    catalog.RETIRED: reading.retired,
    catalog.OID: reading.oid,
    catalog.ROLES: reading.roles,
    catalog.LIMIT: reading.limit,
    catalog.BUSY: reading.busy,
    catalog.NAMES: reading.names,
    catalog.PREPARED: reading.prepared,
    catalog.TERMINATE: reading.terminate,
    catalog.OWNERSHIP: ownership.make_table,
    catalog.CLAIM: ownership.claim,
    catalog.RECORD: ownership.record,
    catalog.RECORD_WHOLE: ownership.record_whole,
    catalog.RELEASE: ownership.release,
    catalog.DOOM: ownership.doom,
    catalog.RETIRE: ownership.retire,
    catalog.FORGET: ownership.forget,
}
_NAME, _TEXT = r'"(?:[^"]|"")+"|\w+', r"E?'(?:[^']|'')*'"
_KINDS: Final = {
    "database": _NAME, "role": _NAME, "member": _NAME, "grantor": _NAME, "new": _NAME, "setting": _NAME,
    "extension": _NAME, "name": _TEXT, "value": f"{_TEXT}|{_NAME}", "number": r"-?\d+", "truth": "true|false",
    "rights": r"[A-Z, ]+?", "options": ".*",
}  # fmt: skip
# In braces what varies, in brackets what may be left out; `{if}` and the like are words whose presence counts.
_STATEMENTS: Final[tuple[tuple[str, Carry], ...]] = (
    ("CREATE DATABASE {database}[ {options}]", databases.create),
    ("DROP DATABASE {database}[ <force>WITH (FORCE)]", databases.drop),
    ("ALTER DATABASE {database} CONNECTION LIMIT {number}", databases.limit),
    ("ALTER DATABASE {database} ALLOW_CONNECTIONS {truth}", databases.allow),
    ("ALTER DATABASE {database} IS_TEMPLATE {truth}", databases.be_template),
    ("ALTER DATABASE {database} OWNER TO {role}", databases.give),
    ("ALTER DATABASE {database} RENAME TO {new}", databases.rename),
    ("ALTER DATABASE {database} SET {setting} TO {value}", settings.set_of_database),
    ("ALTER DATABASE {database} RESET {setting}", settings.reset_of_database),
    ("UPDATE pg_catalog.pg_database SET datconnlimit = {number} WHERE datname = {name}", databases.cut_drop),
    ("GRANT {rights} ON DATABASE {database} TO {role}[ <option>WITH GRANT OPTION]", grants.on_database),
    ("REVOKE [<option>GRANT OPTION FOR ]{rights} ON DATABASE {database} FROM {role}", grants.off_database),
    ("GRANT {rights} ON SCHEMA public TO {role}", grants.on_schema),
    ("CREATE ROLE {role}[ {options}]", roles.create),
    ("DROP ROLE [<if>IF EXISTS ]{role}", roles.drop),
    ("ALTER ROLE {role} RENAME TO {new}", roles.rename),
    ("ALTER ROLE {role}[ IN DATABASE {database}] SET {setting} TO {value}", settings.set_of_role),
    ("ALTER ROLE {role}[ IN DATABASE {database}] RESET ALL", settings.reset_of_role),
    ("ALTER ROLE {role} {options}", roles.alter),
    ("GRANT {role} TO {member}[ WITH {options}]", roles.grant),
    ("REVOKE {role} FROM {member}[ GRANTED BY {grantor}]", roles.revoke),
    ("SET ROLE {role}", roles.act_as),
    ("RESET ROLE", roles.act_as_before),
    ("CREATE SCHEMA [<if>IF NOT EXISTS ]public[ AUTHORIZATION {role}]", schemas.create),
    ("DROP SCHEMA public CASCADE", schemas.drop),
    ("ALTER SCHEMA public OWNER TO {role}", schemas.give),
    ("CREATE EXTENSION IF NOT EXISTS {extension} SCHEMA public", schemas.extend),
    ("DELETE FROM fairlead.ownership WHERE database = {name}", ownership.lose),
    ("UPDATE fairlead.ownership SET oid = {number} WHERE database = {name}", ownership.lose_oid),
)
_PART: Final = re.compile(r"\{(\w+)\}|\[|\]|<(\w+)>|[^\[\]{}<>]+")


def _compiled(form: str) -> re.Pattern[str]:
    pattern, flag = "", ""
    for part in _PART.finditer(form):
        text = part[0]
        if part[1]:
            kind = part[1]
            pattern += f"(?P<{kind}>{_KINDS[kind]})"
        elif part[2]:
            flag = part[2]
            pattern += f"(?P<{flag}>"
        elif text == "[":
            pattern += "(?:"
        elif text == "]":
            pattern += (")" if flag else "") + ")?"
            flag = ""
        else:
            pattern += re.escape(text)
    return re.compile(pattern)


_FORMS: Final = tuple((_compiled(form), carry) for form, carry in _STATEMENTS)
_NOTHING: Final = dict.fromkeys((*_KINDS, "if", "force", "option"))
_NAMES: Final = frozenset(kind for kind, pattern in _KINDS.items() if pattern == _NAME)
_BETWEEN: Final = re.compile(r";\s*(?=(?:[^'\"]|'[^']*'|\"[^\"]*\")*$)")


def execute(backend: Backend, sql: str, parameters: Mapping[str, Any] | None) -> Answer:
    """Carry out a statement, or several as one transaction.

    Raises:
        psycopg.Error: What the server refuses.
        UnmodelledError: The model does not know what a server would answer.
    """
    question = _QUESTIONS.get(sql)
    if question is not None:
        return question(backend, parameters or {})
    statements = [statement for statement in _BETWEEN.split(sql.strip()) if statement]
    # One alone is refused before it changes anything.
    before = snapshot(backend.server) if len(statements) > 1 else backend.server.catalogs
    try:
        for statement in statements:
            _carry_out(backend, statement)
    except BaseException:
        backend.server.catalogs = before
        raise
    return []


def _carry_out(backend: Backend, statement: str) -> None:
    for form, carry in _FORMS:
        match = form.fullmatch(statement)
        if match is not None:
            carry(backend, {**_NOTHING, **{kind: _meant(kind, text) for kind, text in match.groupdict().items()}})
            return
    raise UnmodelledError(statement)


def _meant(kind: str, text: str | None) -> str | None:
    if text is None or kind not in _NAMES | {"name", "value"}:
        return text
    return plain(text) if re.fullmatch(_TEXT, text) else name_in(text)
