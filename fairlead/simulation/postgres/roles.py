"""Statements about roles and memberships (src/backend/commands/user.c of PostgreSQL 16)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.simulation.postgres.refusals import (
    DENIED,
    DEPENDENT,
    DUPLICATE,
    IN_USE,
    INVALID_GRANT,
    NO_OBJECT,
    UnmodelledError,
    refusal,
)
from fairlead.simulation.postgres.rows import Member, Role
from fairlead.simulation.postgres.server import SUPERUSER, Backend, Server
from fairlead.simulation.postgres.texts import plain

_OPTION: Final = re.compile(
    r"(?:(?P<no>NO)?(?P<flag>LOGIN|SUPERUSER|CREATEDB|CREATEROLE|REPLICATION|BYPASSRLS|INHERIT)"
    r"|PASSWORD (?P<password>NULL|E?'(?:[^']|'')*')|CONNECTION LIMIT (?P<limit>-?\d+)"
    r"|VALID UNTIL (?P<until>'[^']*'))(?: |$)"
)
# What one may give only who has it.
_OWN: Final = ("createdb", "replication", "bypassrls")


def options_of(text: str) -> dict[str, Any]:
    """Return the attributes that the options of a statement set, by the names of `Role`'s fields."""
    options: dict[str, Any] = {}
    at = 0
    while at < len(text):
        match = _OPTION.match(text, at)
        if match is None:
            raise UnmodelledError(f"options of a role: {text[at:]}")
        at = match.end()
        if match["flag"]:
            options[match["flag"].lower()] = match["no"] is None
        elif match["password"]:
            options["verifier"] = None if match["password"] == "NULL" else plain(match["password"])
        elif match["limit"]:
            options["limit"] = int(match["limit"])
        else:
            options["until"] = _instant(plain(match["until"]))
    return options


def _instant(text: str) -> str:
    """Return a date as the server shows it."""
    if text != "infinity" and not re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        raise UnmodelledError(f"VALID UNTIL {text}")
    return text if text == "infinity" else f"{text} 00:00:00+00"


def create(backend: Backend, words: Mapping[str, Any]) -> None:
    """CREATE ROLE."""
    server, options = backend.server, options_of(words["options"] or "")
    if not backend.has("createrole"):
        raise refusal(DENIED, "permission denied to create role")
    if not backend.is_superuser and any(options.get(flag) for flag in ("superuser", *_OWN) if not _may(backend, flag)):
        raise refusal(DENIED, "permission denied to create role")
    if server.role_or_none(words["role"]) is not None:
        raise refusal(DUPLICATE, f'role "{words["role"]}" already exists')
    role = Role(server.new_oid(), words["role"], version=server.new_version(), **options)
    server.catalogs.roles[role.oid] = role
    if not backend.is_superuser:
        server.catalogs.members.append(Member(role.oid, backend.user, SUPERUSER, admin=True, inherit=False, set=False))


def _may(backend: Backend, flag: str) -> bool:
    return flag in _OWN and backend.has(flag)


def alter(backend: Backend, words: Mapping[str, Any]) -> None:
    """ALTER ROLE with attributes."""
    server, options = backend.server, options_of(words["options"] or "")
    role = server.role(words["role"])
    if not _may_alter(backend, role, options):
        raise refusal(DENIED, "permission denied to alter role")
    if role.oid == SUPERUSER and options.get("superuser") is False:
        raise UnmodelledError("the bootstrap superuser as no superuser")
    role.version = server.new_version()
    for name, value in options.items():
        setattr(role, name, value)


def _may_alter(backend: Backend, role: Role, options: Mapping[str, Any]) -> bool:
    if backend.is_superuser:
        return True
    if role.superuser or "superuser" in options:
        return False
    if not backend.has("createrole") or not backend.administers(role.oid):
        return set(options) == {"verifier"} and role.oid == backend.user
    return all(backend.has(flag) for flag in _OWN if flag in options)


def rename(backend: Backend, words: Mapping[str, Any]) -> None:
    """ALTER ROLE ... RENAME TO."""
    server = backend.server
    role = server.role(words["role"])
    if role.oid in {backend.session_user, backend.user}:
        raise UnmodelledError("a role that renames itself")
    if server.role_or_none(words["new"]) is not None:
        raise refusal(DUPLICATE, f'role "{words["new"]}" already exists')
    may = backend.has("createrole") and backend.administers(role.oid)
    if not backend.is_superuser and (role.superuser or not may):
        raise refusal(DENIED, "permission denied to rename role")
    role.name, role.version = words["new"], server.new_version()


def drop(backend: Backend, words: Mapping[str, Any]) -> None:
    """DROP ROLE, IF EXISTS or not."""
    server = backend.server
    if not backend.has("createrole"):
        raise refusal(DENIED, "permission denied to drop role")
    role = server.role_or_none(words["role"])
    if role is None:
        if words["if"]:
            return
        raise refusal(NO_OBJECT, f'role "{words["role"]}" does not exist')
    if role.oid == backend.user:
        raise refusal(IN_USE, "current user cannot be dropped")
    if role.oid == backend.session_user:
        raise refusal(IN_USE, "session user cannot be dropped")
    if (role.superuser and not backend.is_superuser) or not backend.administers(role.oid):
        raise refusal(DENIED, "permission denied to drop role")
    catalogs = server.catalogs
    members = [row for row in catalogs.members if role.oid not in {row.role, row.member}]
    if any(row.grantor == role.oid for row in members) or _is_named(server, role.oid):
        raise refusal(DEPENDENT, f'role "{role.name}" cannot be dropped because some objects depend on it')
    catalogs.members = members
    catalogs.settings = {key: lines for key, lines in catalogs.settings.items() if key[1] != role.oid}
    del catalogs.roles[role.oid]


def _is_named(server: Server, role: int) -> bool:
    """Return whether anything in any database belongs to a role, or gives it a right."""
    for database in server.catalogs.databases.values():
        owners = {database.owner, *database.extensions.values()}
        access = database.access or ()
        if database.public is not None:
            owners.add(database.public.owner)
            access += database.public.access or ()
        if role in owners or any(role in {item.grantee, item.grantor} for item in access):
            return True
    return False


@dataclass(frozen=True, slots=True)
class Options:
    """What a GRANT of a role says of it; None where it says nothing."""

    admin: bool | None
    inherit: bool | None
    set: bool | None


def _of(text: str) -> Options:
    said = {word.lower(): value in {"TRUE", "OPTION"} for word, value in re.findall(r"(\w+) (TRUE|FALSE|OPTION)", text)}
    if set(said) - {"admin", "inherit", "set"}:
        raise UnmodelledError(f"options of a membership: {text}")
    return Options(said.get("admin"), said.get("inherit"), said.get("set"))


def grant(backend: Backend, words: Mapping[str, Any]) -> None:
    """GRANT of a role."""
    server, options = backend.server, _of(words["options"] or "")
    member, role = _member(backend, words["member"]), server.role(words["role"])
    _refuse_stranger(backend, role, "grant")
    grantor = backend.grantor_of(role.oid)
    if grantor is None:
        raise UnmodelledError(f"a grant of {role.name} by ADMIN that is not inherited")
    if member.oid == role.oid or backend.belongs(role.oid, member.oid):
        raise refusal(INVALID_GRANT, f'role "{role.name}" is a member of role "{member.name}"')
    if options.admin and member.oid != SUPERUSER and _is_circle(backend, role.oid, member.oid, grantor):
        raise UnmodelledError("ADMIN that is given back")
    for row in server.catalogs.members:
        if (row.role, row.member, row.grantor) == (role.oid, member.oid, grantor):
            _refuse_dependent(backend, row, is_kept=options.admin is not False)
            row.admin = row.admin if options.admin is None else options.admin
            row.inherit = row.inherit if options.inherit is None else options.inherit
            row.set = row.set if options.set is None else options.set
            return
    inherit = member.inherit if options.inherit is None else options.inherit
    row = Member(role.oid, member.oid, grantor, bool(options.admin), inherit, options.set is not False)
    server.catalogs.members.append(row)


def _is_circle(backend: Backend, role: int, member: int, grantor: int) -> bool:
    return grantor != SUPERUSER and backend.best_administrator(member, role) is not None


def revoke(backend: Backend, words: Mapping[str, Any]) -> None:
    """REVOKE of a role; one that nobody granted is a warning."""
    server = backend.server
    by = server.role(words["grantor"]) if words["grantor"] else None
    member, role = _member(backend, words["member"]), server.role(words["role"])
    _refuse_stranger(backend, role, "revoke")
    grantor = backend.grantor_of(role.oid) if by is None else by.oid
    if by is not None and not backend.inherits(by.oid):
        raise refusal(DENIED, f'permission denied to revoke privileges granted by role "{by.name}"')
    if grantor is None:
        raise UnmodelledError(f"a revocation of {role.name} by ADMIN that is not inherited")
    members = server.catalogs.members
    for row in members:
        if (row.role, row.member, row.grantor) == (role.oid, member.oid, grantor):
            _refuse_dependent(backend, row, is_kept=False)
            members.remove(row)
            return


def _refuse_stranger(backend: Backend, role: Role, verb: str) -> None:
    """Raise unless the backend may give a role to somebody."""
    may = backend.is_superuser if role.superuser else backend.administers(role.oid)
    if not may:
        raise refusal(DENIED, f'permission denied to {verb} role "{role.name}"')


def _refuse_dependent(backend: Backend, row: Member, *, is_kept: bool) -> None:
    """Raise where somebody granted by the ADMIN that this row gives and that is taken away."""
    if is_kept or not row.admin:
        return
    others = [other for other in backend.server.catalogs.members if other.role == row.role and other is not row]
    if any(other.member == row.member and other.admin for other in others):
        return
    if any(other.grantor == row.member for other in others):
        raise refusal(DEPENDENT, "dependent privileges exist")


def _member(backend: Backend, name: str) -> Role:
    return backend.acting if name == "CURRENT_USER" else backend.server.role(name)


def act_as(backend: Backend, words: Mapping[str, Any]) -> None:
    """SET ROLE; `none` is who logged in."""
    name = words["role"]
    if name == "none":
        backend.user = backend.session_user
        return
    role = backend.server.role_or_none(name)
    if role is None:
        raise refusal("22023", f'role "{name}" does not exist')
    if not backend.may_set(role.oid, of_session=True):
        raise refusal(DENIED, f'permission denied to set role "{name}"')
    backend.user = role.oid


def act_as_before(backend: Backend, _words: Mapping[str, Any]) -> None:
    """RESET ROLE."""
    backend.user = backend.reset_user
