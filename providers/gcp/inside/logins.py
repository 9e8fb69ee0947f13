"""The pure rules of users: their names in PostgreSQL, and how an application reaches them. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from providers.external.client import Target
from providers.external.endpoint import NO_ENDPOINT, VERIFIED, VERIFIED_BY_AUTHORITY, Endpoint
from providers.external.observation import Change, Observed
from providers.gcp.instances.facts import PORT, Answer, addresses, member
from providers.gcp.models import CloudSQLUserParameters
from providers.gcp.names import own_name

Where = Target[CloudSQLUserParameters]
BUILT_IN = "BUILT_IN"
_ADMINISTRATORS = "postgres"


@dataclass(frozen=True, slots=True)
class Facts:
    """The users of PostgreSQL that stand for one resource, with their database roles by name."""

    users: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


Seen = Observed[CloudSQLUserParameters, Facts]


def has_password(spec: CloudSQLUserParameters) -> bool:
    """Return whether a user logs in with a password: those of IAM log in with a token of Google's."""
    return spec.type == BUILT_IN


def names_of(spec: CloudSQLUserParameters) -> tuple[str, ...]:
    """Return the users of PostgreSQL that a resource may have: one, or two that alternate."""
    if has_password(spec) and spec.logins == "Alternating":
        return f"{spec.name}_a", f"{spec.name}_b"
    return (spec.name,)


def logins(target: Where) -> tuple[str, str]:
    """Return the two logins that take turns, or twice the one."""
    names = names_of(target.spec)
    return names[0], names[-1]


def versions(seen: Seen) -> dict[str, str]:
    """Return when a login is to be proven anew: at another instance, address or authority.

    Cloud SQL shows no sign of a password that was changed by somebody else.
    """
    endpoint = seen.endpoint
    text = f"{seen.incarnation}\n{endpoint.host}\n{endpoint.ca}"
    version = hashlib.sha256(text.encode()).hexdigest()[:16]
    return dict.fromkeys(seen.facts.users, version) if endpoint.host else {}


def missing_database(target: Where, database: str) -> str:
    """Return the message for a database that does not exist: one that the backup of the instance did not have."""
    if not target.spec.from_backup:
        return ""
    return (
        f"instance {target.name.partition('/')[0]} has no database {database}: a restored one has those of its source;"
        " make it anew with the name of one of them (in a claim: databaseName)"
    )


def invariants(target: Where, seen: Seen) -> tuple[Change, ...]:
    """Return nothing: a user carries no label."""
    del target, seen
    return ()


def is_refused(spec: CloudSQLUserParameters) -> tuple[str, str] | None:
    """Return why nobody may ask for a user: the names that Cloud SQL keeps for itself, as its own or as its roles."""
    if _is_reserved(spec.name):
        return "InvalidValue", f"{spec.name} is a name of Cloud SQL's own; choose another name for the user"
    # Every user without databaseRoles has the role cloudsqlsuperuser.
    reserved = [role for role in spec.database_roles or () if _is_reserved(role) and role != "cloudsqlsuperuser"]
    if reserved:
        text = f"databaseRoles names {reserved[0]}, which reaches into every database of the instance; leave it out"
        return "InvalidValue", text
    return None


def _is_reserved(name: str) -> bool:
    """Return whether a role is Cloud SQL's or PostgreSQL's own: each reaches beyond what one claim has."""
    name = name.lower()
    return name == _ADMINISTRATORS or name.startswith(("cloudsql", "pg_"))


def endpoint_of(answer: Answer, authorities: str, spec: CloudSQLUserParameters) -> Endpoint:
    """Return how an application reaches an instance; `authorities` are its CAs, one or, while one follows another, two.

    A server's certificate bears the name of the instance, not its address: with an authority of the instance's own
    that proves as much. A DNS name is verified by name where the instance's authority is a shared one.
    """
    database = own_name(spec.database) if spec.database else "postgres"
    mode = str(member(member(answer, "settings"), "ipConfiguration").get("serverCaMode", ""))
    name = str(answer.get("dnsName", "")).rstrip(".")
    if name and mode in {"GOOGLE_MANAGED_CAS_CA", "CUSTOMER_MANAGED_CAS_CA"}:
        return Endpoint(name, PORT, database, VERIFIED, authorities)
    known = addresses(answer)
    wanted = (spec.address_type,) if spec.address_type is not None else ("PRIVATE", "PRIMARY")
    host = next((known[kind] for kind in wanted if kind in known), "")
    return Endpoint(host, PORT, database, VERIFIED_BY_AUTHORITY, authorities) if host else NO_ENDPOINT
