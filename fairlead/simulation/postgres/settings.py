"""Settings of databases and roles (src/backend/commands/dbcommands.c and user.c of PostgreSQL 16)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.simulation.postgres.refusals import DENIED, INVALID_VALUE, NO_OBJECT, UnmodelledError, refusal
from fairlead.simulation.postgres.rows import Database
from fairlead.simulation.postgres.server import Backend

_MEMORY: Final = r"[1-9]\d*(kB|MB|GB)"
_TIME: Final = r"\d+(ms|s|min)?"


@dataclass(frozen=True, slots=True)
class _Setting:
    """A setting: how the server spells it, which values it takes, and whether only a superuser sets it."""

    name: str
    values: str
    superuser: bool = False


_SETTINGS: Final = {
    setting.name.lower(): setting
    for setting in (
        _Setting("work_mem", _MEMORY),
        _Setting("maintenance_work_mem", _MEMORY),
        _Setting("TimeZone", "UTC|Europe/Berlin"),
        _Setting("statement_timeout", _TIME),
        _Setting("idle_session_timeout", _TIME),
        _Setting("random_page_cost", r"\d+(\.\d+)?"),
        _Setting("default_transaction_read_only", "on|off"),
        _Setting("search_path", r"\w+"),
        _Setting("role", ".+"),
        _Setting("log_min_duration_statement", r"-?\d+", superuser=True),
    )
}


def _of(name: str) -> _Setting:
    setting = _SETTINGS.get(name.lower())
    if setting is None:
        if name.startswith("no_such_"):
            raise refusal(NO_OBJECT, f'unrecognized configuration parameter "{name}"')
        raise UnmodelledError(f"setting {name}")
    return setting


def _changed(backend: Backend, key: tuple[int, int], name: str, value: str | None) -> None:
    setting, settings = _of(name), backend.server.catalogs.settings
    if setting.superuser and not backend.is_superuser:
        raise refusal(DENIED, f'permission denied to set parameter "{setting.name}"')
    if value is not None and not re.fullmatch(setting.values, value):
        raise refusal(INVALID_VALUE, f'invalid value for parameter "{setting.name}": "{value}"')
    lines = list(settings.get(key, ()))
    at = next((at for at, line in enumerate(lines) if line.startswith(f"{setting.name}=")), len(lines))
    lines[at : at + 1] = [] if value is None else [f"{setting.name}={value}"]
    _keep(backend, key, lines)


def _keep(backend: Backend, key: tuple[int, int], lines: list[str]) -> None:
    if lines:
        backend.server.catalogs.settings[key] = tuple(lines)
    else:
        backend.server.catalogs.settings.pop(key, None)


def _all_reset(backend: Backend, key: tuple[int, int]) -> None:
    lines = backend.server.catalogs.settings.get(key, ())
    kept = [line for line in lines if _of(line.partition("=")[0]).superuser and not backend.is_superuser]
    _keep(backend, key, kept)


def set_of_database(backend: Backend, words: Mapping[str, Any]) -> None:
    """ALTER DATABASE ... SET."""
    _changed(backend, (_own(backend, words).oid, 0), words["setting"], words["value"])


def reset_of_database(backend: Backend, words: Mapping[str, Any]) -> None:
    """ALTER DATABASE ... RESET."""
    _changed(backend, (_own(backend, words).oid, 0), words["setting"], None)


def _own(backend: Backend, words: Mapping[str, Any]) -> Database:
    database = backend.server.database(words["database"])
    if not backend.inherits(database.owner):
        raise refusal(DENIED, f"must be owner of database {database.name}")
    return database


def set_of_role(backend: Backend, words: Mapping[str, Any]) -> None:
    """ALTER ROLE ... SET, within one database or in all."""
    _changed(backend, _key(backend, words), words["setting"], words["value"])


def reset_of_role(backend: Backend, words: Mapping[str, Any]) -> None:
    """ALTER ROLE ... RESET ALL, within one database or in all."""
    _all_reset(backend, _key(backend, words))


def _key(backend: Backend, words: Mapping[str, Any]) -> tuple[int, int]:
    role = backend.server.role(words["role"])
    may = (backend.has("createrole") and backend.administers(role.oid)) or role.oid == backend.user
    if not (backend.is_superuser if role.superuser else may):
        raise refusal(DENIED, "permission denied to alter role")
    return (backend.server.database(words["database"]).oid if words["database"] else 0, role.oid)
