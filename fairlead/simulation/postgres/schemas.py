"""What a session within a database does there: schema public and extensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.simulation.postgres import access_lists
from fairlead.simulation.postgres.access_lists import of_new_owner
from fairlead.simulation.postgres.grants import schema_of
from fairlead.simulation.postgres.refusals import DENIED, DUPLICATE_SCHEMA, NO_SCHEMA, UNSUPPORTED, refusal
from fairlead.simulation.postgres.rows import Database, Role, Schema
from fairlead.simulation.postgres.server import SUPERUSER, Backend

# What is installed, and whether who may create in a database may have it there.
_EXTENSIONS: Final = {"plpgsql": True, "vector": False}


def create(backend: Backend, words: Mapping[str, Any]) -> None:
    """CREATE SCHEMA public."""
    database = _within(backend)
    owner = backend.server.role(words["role"]) if words["role"] else backend.acting
    _refuse_to_create(backend, database)
    _refuse_to_set(backend, owner)
    if database.public is not None:
        if words["if"]:
            return
        raise refusal(DUPLICATE_SCHEMA, 'schema "public" already exists')
    database.public = Schema(owner.oid)


def drop(backend: Backend, _words: Mapping[str, Any]) -> None:
    """DROP SCHEMA public CASCADE."""
    _refuse_stranger(backend, schema_of(backend))
    database = _within(backend)
    database.public = None
    database.extensions = {name: owner for name, owner in database.extensions.items() if name == "plpgsql"}


def give(backend: Backend, words: Mapping[str, Any]) -> None:
    """ALTER SCHEMA public OWNER TO."""
    new, schema = backend.server.role(words["role"]), schema_of(backend)
    if schema.owner == new.oid:
        return
    _refuse_stranger(backend, schema)
    _refuse_to_set(backend, new)
    _refuse_to_create(backend, _within(backend))
    if schema.access is not None:
        schema.access = of_new_owner(schema.access, schema.owner, new.oid)
    schema.owner = new.oid


def extend(backend: Backend, words: Mapping[str, Any]) -> None:
    """CREATE EXTENSION IF NOT EXISTS ... SCHEMA public."""
    database, name = _within(backend), words["extension"]
    if name in database.extensions:
        return
    if name not in _EXTENSIONS:
        raise refusal(UNSUPPORTED, f'extension "{name}" is not available')
    if database.public is None:
        raise refusal(NO_SCHEMA, 'schema "public" does not exist')
    if not backend.is_superuser:
        may = _EXTENSIONS[name] and "CREATE" in _rights(backend, database)
        if not may:
            raise refusal(DENIED, f'permission denied to create extension "{name}"')
    database.extensions[name] = SUPERUSER if backend.is_superuser else backend.user


def _within(backend: Backend) -> Database:
    return backend.server.catalogs.databases[backend.database]


def _rights(backend: Backend, database: Database) -> access_lists.Rights:
    return access_lists.rights_in(database.whole_access, backend.inherited(backend.user))


def _refuse_to_create(backend: Backend, database: Database) -> None:
    if not backend.is_superuser and "CREATE" not in _rights(backend, database):
        raise refusal(DENIED, f"permission denied for database {database.name}")


def _refuse_to_set(backend: Backend, role: Role) -> None:
    if role.oid != backend.user and not backend.may_set(role.oid):
        raise refusal(DENIED, f'must be able to SET ROLE "{role.name}"')


def _refuse_stranger(backend: Backend, schema: Schema) -> None:
    if not backend.inherits(schema.owner):
        raise refusal(DENIED, "must be owner of schema public")
