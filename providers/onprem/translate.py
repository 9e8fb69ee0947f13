"""The catalogs' answer in the model of the spec. Pure: order, case and the server's defaults end here."""

from __future__ import annotations

from providers.external.client import Target
from providers.external.observation import Change, Observed, Phase
from providers.external.ownership import Owner
from providers.onprem.facts import (
    Database,
    Facts,
    Wanted,
    broken_rules,
    foreign_rights,
    parsed_settings,
    right_text,
)
from providers.onprem.incarnations import earlier_ids, incarnation_of
from providers.onprem.models import PostgresDatabaseParameters
from providers.onprem.names import Names, names_of
from providers.onprem.statements import SETTABLE, tags_of
from runtime.objects import Object

VERSION = 2
"""Raised whenever the same answer of a server would be read differently."""


def target_names(target: Target[PostgresDatabaseParameters]) -> Names:
    """Return the names of a target; a database that was taken over keeps its own."""
    return names_of(target.spec, target.hash, external_name=target.name)


def row_of(target: Target[PostgresDatabaseParameters]) -> dict[str, str | list[str]]:
    """Return what a target's row in fairlead.ownership says of it, by column."""
    names = target_names(target)
    row: dict[str, str | list[str]] = {**tags_of(target.owner), "logins": list(names.logins)}
    return row | {"database": names.database, "owner_role": names.owner}


def wanted(target: Target[PostgresDatabaseParameters]) -> Wanted:
    """Return what the rules are made for."""
    names = target_names(target)
    active, retiring = (login if login in names.logins else "" for login in (target.active, target.retiring))
    return Wanted(names, active, retiring, SETTABLE)


def observed(
    database: Database, facts: Facts, target: Target[PostgresDatabaseParameters]
) -> Observed[PostgresDatabaseParameters, Facts]:
    """Project what the server showed into the model of the spec."""
    row, owner = facts.row, None
    incarnation = incarnation_of(database.oid, row, target.incarnation)
    if row is not None and row.state != "retired" and facts.is_row_of_database:
        owner = Owner(row.installation, row.identity, row.claim, row.namespace, row.name, row.resource)
    return Observed(
        name=database.name,
        incarnation=incarnation,
        earlier_ids=earlier_ids(incarnation),
        owner=owner,
        phase=Phase.FAILED if database.is_invalid else Phase.READY,
        state="invalid, as a DROP DATABASE of it was cut off: drop it, and restore it or start anew"
        if database.is_invalid
        else "",
        usable=not database.is_invalid,
        spec=_projected(database, facts, target.spec),
        facts=facts,
        tolerated=tuple(change for change in foreign_rights(wanted(target), facts) if right_text(change) in facts.kept),
        at_provider=_at_provider(database, facts),
    )


def _projected(database: Database, facts: Facts, spec: PostgresDatabaseParameters) -> PostgresDatabaseParameters:
    settings, inside = parsed_settings(database.settings), facts.inside
    return PostgresDatabaseParameters(
        database_name=spec.database_name,
        username=spec.username,
        version=str(facts.major),
        encoding=database.encoding,
        lc_collate=database.collate,
        lc_ctype=database.ctype,
        connection_limit=database.limit,
        # No session within: what is not observed is not missing.
        extensions=spec.extensions if inside is None else inside.extensions,
        parameters={name: value for name, value in settings.items() if name in SETTABLE},
    )


def _at_provider(database: Database, facts: Facts) -> Object:
    shown: Object = {
        "serverVersion": facts.server_version,
        "encoding": database.encoding,
        "connectionLimit": database.limit,
    }
    for key, value in (("lcCollate", database.collate), ("lcCtype", database.ctype)):
        if value is not None:
            shown[key] = value
    if facts.inside is not None:
        if facts.inside.schema_owner is not None:
            shown["owner"] = facts.inside.schema_owner
        shown["extensions"] = list(facts.inside.extensions)[:200]
    return shown


def invariants(
    target: Target[PostgresDatabaseParameters], seen: Observed[PostgresDatabaseParameters, Facts]
) -> tuple[Change, ...]:
    """Return the differences from what is kept true whatever the spec says."""
    return broken_rules(wanted(target), seen.facts)


def login_versions(seen: Observed[PostgresDatabaseParameters, Facts]) -> dict[str, str]:
    """Return the row version (xmin) of each role: it moves with every change, a password's included."""
    return {role.name: role.version for role in seen.facts.roles}
