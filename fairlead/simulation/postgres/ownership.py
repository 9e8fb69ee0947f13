"""The statements of providers/onprem that change fairlead.ownership."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.simulation.postgres.refusals import DENIED, NO_TABLE, refusal
from fairlead.simulation.postgres.rows import Owned
from fairlead.simulation.postgres.server import Backend, Server

Parameters = Mapping[str, Any]
Answer = list[tuple[Any, ...]]


def rows_of(backend: Backend) -> dict[str, Owned]:
    """Return the table. Raises where it is not there, and for whom it is not."""
    server = backend.server
    rows = server.catalogs.ownership
    own = server.catalogs.databases[backend.database]
    if rows is None or own.name != "fairlead":
        raise refusal(NO_TABLE, 'relation "fairlead.ownership" does not exist')
    if not backend.inherits(own.owner):
        raise refusal(DENIED, "permission denied for schema fairlead")
    return rows


def make_table(backend: Backend, _parameters: Parameters) -> Answer:
    """Answer `OWNERSHIP`."""
    if backend.server.catalogs.ownership is None:
        backend.server.catalogs.ownership = {}
    return []


def claim(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `CLAIM`."""
    server, rows = backend.server, rows_of(backend)
    name, random = parameters["database"], server.new_random()
    old = rows.get(name)
    if old is None:
        rows[name] = _row(parameters, state="creating", incarnation=random, changed_at=server.new_version())
        return [(name,)]
    if not old.is_of(dict(parameters)):
        return []
    database = server.database_or_none(name)
    if database is None or old.oid not in {None, database.oid}:
        old.incarnation, old.kept_rights = random, []
    old.state, old.oid, old.changed_at = "creating", None, server.new_version()
    return [(name,)]


def _row(parameters: Parameters, *, state: str, incarnation: str, changed_at: int, **more: Any) -> Owned:
    names = ("database", "installation", "identity", "claim", "namespace", "name", "resource", "owner_role")
    texts: dict[str, Any] = {name: str(parameters[name]) for name in names}
    logins = list(parameters["logins"])
    return Owned(**texts, state=state, logins=logins, incarnation=incarnation, changed_at=changed_at, **more)


def record(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `RECORD`."""
    server = backend.server
    row, database = _own(backend, parameters), server.database_or_none(parameters["database"])
    if row is not None and database is not None:
        row.oid, row.state, row.changed_at = database.oid, parameters["state"], server.new_version()
    return []


def record_whole(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `RECORD_WHOLE`."""
    server, rows = backend.server, rows_of(backend)
    database = server.database_or_none(parameters["database"])
    if database is None:
        return []
    is_known = parameters["oid"] is not None and int(parameters["oid"]) == database.oid
    new = _row(
        parameters, state=parameters["state"], changed_at=server.new_version(), oid=database.oid,
        incarnation=str(parameters["recorded"] if is_known else parameters["random"]),
        kept_rights=list(parameters["kept"] or ()),
    )  # fmt: skip
    old = rows.get(database.name)
    if old is not None and old.oid in {None, database.oid}:
        new.incarnation = old.incarnation
        if parameters["kept"] is None:
            new.kept_rights = old.kept_rights
    rows[database.name] = new
    return []


def release(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `RELEASE`."""
    row = _own(backend, parameters)
    if row is not None:
        row.state, row.changed_at = "released", backend.server.new_version()
    return []


def doom(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `DOOM`."""
    row, oid = _own(backend, parameters), parameters["oid"]
    if row is None or (oid is not None and row.oid not in {None, int(oid)}):
        return []
    row.state, row.changed_at = parameters["state"], backend.server.new_version()
    return [(row.database,)]


def retire(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `RETIRE`."""
    server, rows = backend.server, rows_of(backend)
    row = _own(backend, parameters)
    database = server.catalogs.databases.get(row.oid or 0) if row is not None else None
    if row is None or database is None or database.name == row.database:
        return []
    if database.name in rows:
        raise refusal("23505", 'duplicate key value violates unique constraint "ownership_pkey"')
    del rows[row.database]
    row.state, row.kept_as, row.database = "retired", row.database, database.name
    row.changed_at = server.new_version()
    rows[row.database] = row
    return []


def forget(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `FORGET`."""
    row = _own(backend, parameters)
    if row is not None:
        del rows_of(backend)[row.database]
    return []


def lose(backend: Backend, words: Mapping[str, Any]) -> None:
    """Delete a row as somebody does by hand."""
    rows_of(backend).pop(words["name"], None)


def lose_oid(backend: Backend, words: Mapping[str, Any]) -> None:
    """Have a row name another database's oid, as after a restore of the table."""
    row = rows_of(backend).get(words["name"])
    if row is not None:
        row.oid = int(words["number"])


def _own(backend: Backend, parameters: Parameters) -> Owned | None:
    row = rows_of(backend).get(parameters["database"])
    return row if row is not None and row.is_of(dict(parameters)) else None


def table_is_there(server: Server) -> bool:
    """Return whether the table has all its columns."""
    return server.catalogs.ownership is not None
