"""Statements about databases: CREATE, ALTER and DROP DATABASE (src/backend/commands/dbcommands.c of PostgreSQL 16)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final

from fairlead.simulation.postgres.access_lists import of_new_owner
from fairlead.simulation.postgres.refusals import (
    DENIED,
    DUPLICATE_DATABASE,
    IN_USE,
    INVALID_VALUE,
    NO_DATABASE,
    UNSUPPORTED,
    WRONG_STATE,
    WRONG_TYPE,
    UnmodelledError,
    refusal,
)
from fairlead.simulation.postgres.rows import Database, Role
from fairlead.simulation.postgres.server import Backend
from fairlead.simulation.postgres.texts import name_in, plain

_OPTION: Final = re.compile(
    r'(?:(?P<name>TEMPLATE|OWNER) (?P<of>"(?:[^"]|"")+"|\w+)'
    r"|(?P<text>ENCODING|LC_COLLATE|LC_CTYPE) (?P<value>E?'[^']*')"
    r"|ALLOW_CONNECTIONS (?P<allows>true|false)|CONNECTION LIMIT (?P<limit>-?\d+)|IS_TEMPLATE (?P<template>true|false)"
    r")(?: |$)"
)
_LOCALES: Final = frozenset({"C", "POSIX"})


def _options(text: str) -> dict[str, Any]:
    options: dict[str, Any] = {"TEMPLATE": "template1", "OWNER": "", "allows": True, "limit": -1, "template": False}
    at = 0
    while at < len(text):
        match = _OPTION.match(text, at)
        if match is None:
            raise UnmodelledError(f"options of a database: {text[at:]}")
        at = match.end()
        if match["name"]:
            options[match["name"]] = name_in(match["of"])
        elif match["text"]:
            options[match["text"]] = plain(match["value"])
        elif match["limit"]:
            options["limit"] = int(match["limit"])
        else:
            key = "allows" if match["allows"] else "template"
            options[key] = match[key] == "true"
    return options


def create(backend: Backend, words: Mapping[str, Any]) -> None:
    """CREATE DATABASE."""
    server, options = backend.server, _options(words["options"] or "")
    owner = server.role(options["OWNER"]) if options["OWNER"] else backend.acting
    if not backend.has("createdb"):
        raise refusal(DENIED, "permission denied to create database")
    _refuse_to_set(backend, owner)
    source = _source(backend, options["TEMPLATE"])
    _refuse_locale(source, options)
    if server.database_or_none(words["database"]) is not None:
        raise refusal(DUPLICATE_DATABASE, f'database "{words["database"]}" already exists')
    if server.connected_to(source.oid):
        raise refusal(IN_USE, f'source database "{source.name}" is being accessed by other users')
    oid = server.new_oid()
    copy = Database(oid, words["database"], owner.oid, options["allows"], options["limit"], options["template"])
    copy.public, copy.extensions = deepcopy(source.public), dict(source.extensions)
    server.catalogs.databases[oid] = copy


def _source(backend: Backend, name: str) -> Database:
    source = backend.server.database_or_none(name)
    if source is None:
        raise refusal(NO_DATABASE, f'template database "{name}" does not exist')
    if source.is_invalid:
        raise refusal(WRONG_STATE, f'cannot use invalid database "{name}" as template')
    if not source.template and not backend.inherits(source.owner):
        raise refusal(DENIED, f'permission denied to copy database "{name}"')
    return source


def _refuse_locale(source: Database, options: Mapping[str, Any]) -> None:
    if options.get("ENCODING", "UTF8") != "UTF8":
        raise UnmodelledError(f"encoding {options['ENCODING']}")
    for word in ("LC_COLLATE", "LC_CTYPE"):
        locale = options.get(word, "C")
        if locale == "xx_YY":
            raise refusal(WRONG_TYPE, f'invalid {word} locale name: "{locale}"')
        if locale not in _LOCALES or (locale != "C" and source.name != "template0"):
            raise UnmodelledError(f"{word} {locale}")


def drop(backend: Backend, words: Mapping[str, Any]) -> None:
    """DROP DATABASE, with FORCE or not."""
    server = backend.server
    database = server.database(words["database"])
    _refuse_stranger(backend, database)
    if database.oid == backend.database:
        raise refusal(IN_USE, "cannot drop the currently open database")
    if database.template:
        raise refusal(WRONG_TYPE, "cannot drop a template database")
    if words["force"]:
        for other in server.connected_to(database.oid):
            other.end()
    _refuse_in_use(backend, database)
    del server.catalogs.databases[database.oid]
    settings = server.catalogs.settings
    server.catalogs.settings = {key: lines for key, lines in settings.items() if key[0] != database.oid}


def rename(backend: Backend, words: Mapping[str, Any]) -> None:
    """ALTER DATABASE ... RENAME TO."""
    server = backend.server
    database = server.database(words["database"])
    _refuse_stranger(backend, database)
    if not backend.has("createdb"):
        raise refusal(DENIED, "permission denied to rename database")
    if server.database_or_none(words["new"]) is not None:
        raise refusal(DUPLICATE_DATABASE, f'database "{words["new"]}" already exists')
    if database.oid == backend.database:
        raise refusal(UNSUPPORTED, "current database cannot be renamed")
    _refuse_in_use(backend, database)
    database.name = words["new"]


def limit(backend: Backend, words: Mapping[str, Any]) -> None:
    """ALTER DATABASE ... CONNECTION LIMIT."""
    database = _altered(backend, words)
    if int(words["number"]) < -1:
        raise refusal(INVALID_VALUE, f"invalid connection limit: {words['number']}")
    database.limit = int(words["number"])


def allow(backend: Backend, words: Mapping[str, Any]) -> None:
    """ALTER DATABASE ... ALLOW_CONNECTIONS."""
    database, allows = _altered(backend, words), words["truth"] == "true"
    if database.oid == backend.database and not allows:
        raise refusal(INVALID_VALUE, "cannot disallow connections for current database")
    database.allows = allows


def be_template(backend: Backend, words: Mapping[str, Any]) -> None:
    """ALTER DATABASE ... IS_TEMPLATE."""
    _altered(backend, words).template = words["truth"] == "true"


def _altered(backend: Backend, words: Mapping[str, Any]) -> Database:
    database = backend.server.database(words["database"])
    if database.is_invalid:
        # The server says it as FATAL.
        backend.end()
        raise refusal(WRONG_STATE, f'cannot alter invalid database "{database.name}"')
    _refuse_stranger(backend, database)
    return database


def give(backend: Backend, words: Mapping[str, Any]) -> None:
    """ALTER DATABASE ... OWNER TO."""
    server = backend.server
    new = backend.acting if words["role"] == "CURRENT_USER" else server.role(words["role"])
    database = server.database(words["database"])
    if database.owner == new.oid:
        return
    _refuse_stranger(backend, database)
    _refuse_to_set(backend, new)
    if not backend.has("createdb"):
        raise refusal(DENIED, "permission denied to change owner of database")
    if database.access is not None:
        database.access = of_new_owner(database.access, database.owner, new.oid)
    database.owner = new.oid


def cut_drop(backend: Backend, words: Mapping[str, Any]) -> None:
    """Have a database as a DROP DATABASE leaves it that was cut off."""
    if not backend.is_superuser:
        raise refusal(DENIED, "permission denied for table pg_database")
    database = backend.server.database_or_none(words["name"])
    if database is not None:
        database.limit = int(words["number"])


def _refuse_stranger(backend: Backend, database: Database) -> None:
    if not backend.inherits(database.owner):
        raise refusal(DENIED, f"must be owner of database {database.name}")


def _refuse_to_set(backend: Backend, role: Role) -> None:
    if role.oid != backend.user and not backend.may_set(role.oid):
        raise refusal(DENIED, f'must be able to SET ROLE "{role.name}"')


def _refuse_in_use(backend: Backend, database: Database) -> None:
    if backend.server.connected_to(database.oid):
        raise refusal(IN_USE, f'database "{database.name}" is being accessed by other users')
