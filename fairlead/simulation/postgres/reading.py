"""The questions of providers/onprem to the catalogs, each answered as the server does."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from fairlead.simulation.postgres.access_lists import PUBLIC
from fairlead.simulation.postgres.ownership import Answer, rows_of, table_is_there
from fairlead.simulation.postgres.refusals import DENIED, refusal
from fairlead.simulation.postgres.rows import Database, Member, Owned, Role
from fairlead.simulation.postgres.server import NUMBER, SIGNAL_BACKEND, VERSION, Backend, Server

Parameters = Mapping[str, Any]


def who(backend: Backend, _parameters: Parameters) -> Answer:
    """Answer the question of `prove` (providers/onprem/session.py)."""
    return [(backend.server.identifier, backend.server.is_in_recovery)]


def about(backend: Backend, _parameters: Parameters) -> Answer:
    """Answer `SERVER`."""
    server, role = backend.server, backend.acting
    own = server.catalogs.databases[backend.database].name
    exposed = [
        database.name
        for database in server.catalogs.databases.values()
        if (database.name in {own, "postgres"} or database.template)
        and database.allows
        and any(item.grantee == PUBLIC and "CONNECT" in item.rights for item in database.whole_access)
    ]
    answer = {
        "account": server.identifier, "number": NUMBER, "version": VERSION, "recovery": server.is_in_recovery,
        "admin": role.name, "superuser": role.superuser, "createdb": role.createdb, "createrole": role.createrole,
        "secrets": True, "ownership": table_is_there(server), "exposed": sorted(exposed) or None,
    }  # fmt: skip
    return [(answer,)]


def facts(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `FACTS`."""
    server, row = backend.server, rows_of(backend).get(parameters["database"])
    database = server.database_or_none(parameters["database"])
    names = set(parameters["roles"])
    roles = sorted((role for role in server.catalogs.roles.values() if role.name in names), key=_name)
    answer = {
        "row": None if row is None else _shown_row(row),
        "elsewhere": _elsewhere(backend, parameters, row),
        "database": None if database is None else _shown_database(server, database),
        "roles": [_shown_role(server, role) for role in roles],
        "memberships": _memberships(server, names),
    }
    return [(answer,)]


def _name(thing: Role | Database) -> bytes:
    return thing.name.encode()


def _shown_row(row: Owned) -> dict[str, Any]:
    names = ("database", "installation", "identity", "claim", "namespace", "name", "resource", "state", "kept_as",
             "incarnation")  # fmt: skip
    oid = None if row.oid is None else str(row.oid)
    return {name: getattr(row, name) for name in names} | {"oid": oid, "kept_rights": list(row.kept_rights)}


def _elsewhere(backend: Backend, parameters: Parameters, row: Owned | None) -> str | None:
    """Return the name of a database that has the oid and not the name."""
    server, recorded = backend.server, parameters["oid"]
    oid = row.oid if row is not None and row.oid is not None else int(recorded) if recorded is not None else None
    database = None if oid is None else server.catalogs.databases.get(oid)
    if database is None or database.name == parameters["database"] or database.name in rows_of(backend):
        return None
    ours = {role.oid for role in server.catalogs.roles.values() if role.name in set(parameters["roles"])}
    is_granted = any(item.grantee in ours for item in database.access or ())
    return database.name if is_granted or (row is not None and row.oid is not None) else None


def _shown_database(server: Server, database: Database) -> dict[str, Any]:
    grants = sorted(
        (item.grantee, right, right in item.options) for item in database.whole_access for right in item.rights
    )
    return {
        "name": database.name, "oid": str(database.oid), "owner": server.name_of(database.owner),
        "allows": database.allows, "limit": database.limit, "template": database.template,
        "encoding": database.encoding, "collate": database.collate, "ctype": database.ctype,
        "grants": [
            {"grantee": "PUBLIC" if role == PUBLIC else server.name_of(role), "privilege": right, "grantable": option}
            for role, right, option in grants
        ],
        "settings": list(server.catalogs.settings.get((database.oid, 0), ())),
    }  # fmt: skip


def _shown_role(server: Server, role: Role) -> dict[str, Any]:
    flags = ("login", "superuser", "createdb", "createrole", "replication", "bypassrls", "inherit", "limit", "until")
    databases = server.catalogs.databases
    set_in = [databases[oid].name for oid, of in server.catalogs.settings if of == role.oid and oid]
    shown = {"name": role.name, "version": str(role.version), **{flag: getattr(role, flag) for flag in flags}}
    return shown | {
        "settings": list(server.catalogs.settings.get((0, role.oid), ())),
        "set_in": sorted(set_in),
    }


def _memberships(server: Server, names: set[str]) -> list[dict[str, Any]]:
    shown = []
    for row in server.catalogs.members:
        role, member = server.name_of(row.role), server.name_of(row.member)
        if {role, member} & names:
            options = {"admin": row.admin, "inherit": row.inherit, "set": row.set}
            shown.append((role, member, row.grantor, options))
    return [
        {"role": role, "member": member, **options, "grantor": server.name_of(grantor)}
        for role, member, grantor, options in sorted(shown, key=lambda line: line[:3])
    ]


def inside(backend: Backend, _parameters: Parameters) -> Answer:
    """Answer `INSIDE`."""
    server = backend.server
    database = server.catalogs.databases[backend.database]
    owner = None if database.public is None else server.name_of(database.public.owner)
    return [({"schema_owner": owner, "extensions": sorted(database.extensions)},)]


def every(backend: Backend, _parameters: Parameters) -> Answer:
    """Answer `ALL`."""
    server, answer = backend.server, []
    for name, row in sorted(rows_of(backend).items()):
        if row.state not in {"creating", "ready", "released"}:
            continue
        database = server.database_or_none(name)
        owner = _owner_columns(row)
        oid = None if database is None else str(database.oid)
        answer.append((name, row.state, *owner, oid, _digest(server, row, database)))
    return answer


def strangers(backend: Backend, _parameters: Parameters) -> Answer:
    """Answer `STRANGERS`."""
    databases = backend.server.catalogs.databases
    rows = rows_of(backend)
    at_work = {name for name, row in rows.items() if row.state not in {"released", "retired"}}
    left_out = {"postgres", databases[backend.database].name, *at_work}
    return [
        (database.name, *_owner_columns(rows.get(database.name)))
        for database in databases.values()
        if not database.template and database.name not in left_out
    ]


def _owner_columns(row: Owned | None) -> tuple[str | None, ...]:
    if row is None:
        return (None,) * 6
    return row.installation, row.identity, row.claim, row.namespace, row.name, row.resource


def _digest(server: Server, row: Owned, database: Database | None) -> str | None:
    """Return a text that is another one after each change of what the server's digest is made of."""
    # The whole row of an absent database is a row of NULLs, and its text is none.
    names = {row.owner_role, *row.logins}
    roles = {role.oid: role for role in server.catalogs.roles.values() if role.name in names}
    catalogs, oid = server.catalogs, 0 if database is None else database.oid
    plain = None
    if database is not None:
        plain = (
            oid,
            database.name,
            database.owner,
            database.allows,
            database.limit,
            database.template,
            database.access,
        )
    versions = sorted((role.name, role.version) for role in roles.values())
    settings = sorted((key, lines) for key, lines in catalogs.settings.items() if key[0] == oid != 0 or key[1] in roles)
    members = sorted(map(_plain, (row for row in catalogs.members if {row.role, row.member} & set(roles))))
    return hashlib.md5(repr((plain, versions, settings, members)).encode()).hexdigest()  # noqa: S324 - as the server's


def _plain(row: Member) -> tuple[int, int, int, bool, bool, bool]:
    return (row.role, row.member, row.grantor, row.admin, row.inherit, row.set)


def predecessors(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `PREDECESSORS`."""
    rows = [
        row
        for row in rows_of(backend).values()
        if (row.installation, row.claim) == (parameters["installation"], parameters["claim"])
        and row.identity != parameters["identity"]
        and row.state in {"ready", "released", "creating"}
        and row.oid in backend.server.catalogs.databases
    ]
    return [
        (row.database, f"{row.oid}-{row.incarnation}", row.installation, row.identity, row.claim, row.namespace,
         row.name, row.resource)
        for row in sorted(rows, key=lambda row: -row.changed_at)
    ]  # fmt: skip


def retired(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `RETIRED`."""
    databases, named, rows = backend.server.catalogs.databases, parameters["database"], []
    for row in rows_of(backend).values():
        database = databases.get(row.oid or 0)
        if database is None or not row.is_of(dict(parameters)):
            continue
        is_kept = row.state == "retired" and row.kept_as == named
        if is_kept or (row.database == named and database.name != named):
            rows.append((-row.changed_at, database.name))
    return [(name,) for _, name in sorted(rows)]


def oid(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `OID`."""
    database = backend.server.database_or_none(parameters["database"])
    row = rows_of(backend).get(parameters["database"])
    return [] if database is None else [(str(database.oid), row.incarnation if row is not None else "")]


def roles(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `ROLES`."""
    there = {role.name for role in backend.server.catalogs.roles.values()}
    return [(name,) for name in sorted(there & set(parameters["roles"]))]


def limit(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `LIMIT`."""
    role = backend.server.role_or_none(parameters["login"])
    return [] if role is None else [(role.limit,)]


def busy(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `BUSY`; a role that was dropped is named by its oid."""
    database = backend.server.database_or_none(parameters["database"])
    if database is None:
        return []
    catalogs = backend.server.catalogs
    users = {other.session_user for other in backend.server.connected_to(database.oid)}
    return [
        (name,) for name in sorted(catalogs.roles[user].name if user in catalogs.roles else str(user) for user in users)
    ]


def names(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `NAMES`."""
    known = set(parameters["names"])
    return [(database.name,) for database in backend.server.catalogs.databases.values() if database.name in known]


def prepared(_backend: Backend, _parameters: Parameters) -> Answer:
    """Answer `PREPARED`: there are no prepared transactions here."""
    return []


def terminate(backend: Backend, parameters: Parameters) -> Answer:
    """Answer `TERMINATE`."""
    role = backend.server.role_or_none(parameters["login"])
    ours = [other for other in backend.server.backends if role is not None and other.session_user == role.oid]
    for other in ours:
        is_foreign = role is not None and role.superuser and not backend.is_superuser
        if is_foreign or not (backend.inherits(other.session_user) or backend.inherits(SIGNAL_BACKEND)):
            raise refusal(DENIED, "permission denied to terminate process")
        other.end()
    return [(True,)] * len(ours)
