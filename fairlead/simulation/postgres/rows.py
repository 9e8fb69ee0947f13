"""The rows of a server's catalogs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fairlead.simulation.postgres.access_lists import AccessList, of_new_database, of_new_schema

INVALID_LIMIT: Final = -2


@dataclass(slots=True)
class Role:
    """A row of pg_authid; `version` moves with each change of it, as xmin does."""

    oid: int
    name: str
    version: int = 0
    login: bool = False
    superuser: bool = False
    createdb: bool = False
    createrole: bool = False
    replication: bool = False
    bypassrls: bool = False
    inherit: bool = True
    limit: int = -1
    until: str | None = None
    verifier: str | None = None


@dataclass(slots=True)
class Member:
    """A row of pg_auth_members."""

    role: int
    member: int
    grantor: int
    admin: bool
    inherit: bool
    set: bool


@dataclass(slots=True)
class Schema:
    """Schema public of one database."""

    owner: int
    access: AccessList | None = None

    @property
    def whole_access(self) -> AccessList:
        """Its list, that of a new one where it has none."""
        return of_new_schema(self.owner) if self.access is None else self.access


@dataclass(slots=True)
class Database:
    """A row of pg_database, and what is within: extensions by name with their owners."""

    oid: int
    name: str
    owner: int
    allows: bool = True
    limit: int = -1
    template: bool = False
    encoding: str = "UTF8"
    collate: str = "C"
    ctype: str = "C"
    access: AccessList | None = None
    public: Schema | None = None
    extensions: dict[str, int] = field(default_factory=dict)

    @property
    def whole_access(self) -> AccessList:
        """Its list, that of a new one where it has none."""
        return of_new_database(self.owner) if self.access is None else self.access

    @property
    def is_invalid(self) -> bool:
        """Whether a DROP DATABASE of it was cut off."""
        return self.limit == INVALID_LIMIT


@dataclass(slots=True)
class Owned:
    """A row of fairlead.ownership; `changed_at` is the number of the statement that changed it."""

    database: str
    installation: str
    identity: str
    claim: str
    namespace: str
    name: str
    resource: str
    state: str
    owner_role: str
    logins: list[str]
    incarnation: str
    oid: int | None = None
    kept_rights: list[str] = field(default_factory=list)
    kept_as: str | None = None
    changed_at: int = 0

    def is_of(self, tags: dict[str, object]) -> bool:
        """Return whether it is the row of these owner tags."""
        return all(getattr(self, tag) == tags[tag] for tag in ("installation", "identity", "claim"))
