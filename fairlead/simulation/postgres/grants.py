"""GRANT and REVOKE of rights on databases and schema public (src/backend/catalog/aclchk.c of PostgreSQL 16)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.simulation.postgres import access_lists
from fairlead.simulation.postgres.access_lists import DATABASE_RIGHTS, PUBLIC, SCHEMA_RIGHTS, AccessList, Grant, Rights
from fairlead.simulation.postgres.refusals import DENIED, NO_SCHEMA, refusal
from fairlead.simulation.postgres.rows import Schema
from fairlead.simulation.postgres.server import Backend


def on_database(backend: Backend, words: Mapping[str, Any]) -> None:
    """GRANT ... ON DATABASE."""
    _change_database(backend, words, is_grant=True)


def off_database(backend: Backend, words: Mapping[str, Any]) -> None:
    """REVOKE ... ON DATABASE."""
    _change_database(backend, words, is_grant=False)


def on_schema(backend: Backend, words: Mapping[str, Any]) -> None:
    """GRANT ... ON SCHEMA public."""
    schema = schema_of(backend)
    grantee, rights = _grantee(backend, words["role"]), _rights(words["rights"], SCHEMA_RIGHTS)
    grantor, may = _grantor(backend, schema.whole_access, schema.owner, rights)
    if not may:
        _refuse_without_rights(backend, schema.whole_access, named="schema public")
    schema.access = access_lists.granted(schema.whole_access, Grant(grantee, grantor, rights & may))


def schema_of(backend: Backend) -> Schema:
    """Return schema public of the database that a backend is connected to. Raises where it is gone."""
    schema = backend.server.catalogs.databases[backend.database].public
    if schema is None:
        raise refusal(NO_SCHEMA, 'schema "public" does not exist')
    return schema


def _change_database(backend: Backend, words: Mapping[str, Any], *, is_grant: bool) -> None:
    database = backend.server.database(words["database"])
    grantee, rights = _grantee(backend, words["role"]), _rights(words["rights"], DATABASE_RIGHTS)
    access = database.whole_access
    grantor, may = _grantor(backend, access, database.owner, rights)
    if not may:
        _refuse_without_rights(backend, access, named=f"database {database.name}")
    option = bool(words["option"])
    grant = Grant(grantee, grantor, rights & may, with_option=is_grant and option, only_option=not is_grant and option)
    if is_grant:
        database.access = access_lists.granted(access, grant)
    else:
        database.access = access_lists.revoked(access, grant, database.owner)


def _grantee(backend: Backend, name: str) -> int:
    if name == "PUBLIC":
        return PUBLIC
    return backend.user if name == "CURRENT_USER" else backend.server.role(name).oid


def _rights(text: str, whole: Rights) -> Rights:
    return whole if text == "ALL" else frozenset(part.strip() for part in text.split(","))


def _grantor(backend: Backend, access: AccessList, owner: int, rights: Rights) -> tuple[int, Rights]:
    """Return in whose name something is granted, and which of the rights that one may give (select_best_grantor)."""
    if backend.inherits(owner):
        return owner, rights
    best, most = backend.user, access_lists.NONE
    for role in backend.inherited(backend.user):
        options = access_lists.options_in(access, (role,)) & rights
        if len(options) > len(most):
            best, most = role, options
    return best, most


def _refuse_without_rights(backend: Backend, access: AccessList, *, named: str) -> None:
    """Raise unless the backend has any right there; with one a GRANT has no effect but a warning."""
    if not access_lists.rights_in(access, backend.inherited(backend.user)):
        raise refusal(DENIED, f"permission denied for {named}")
