"""The custom resources of the on-prem cloud as Python sees them; tests compare each with its CRD, field by field."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from providers.external.config import AllowedNamespaces, CaReference, Limits, SecretReference
from providers.external.diff import REQUIRED, Compare, compared
from providers.external.spec import DatabaseEnvelope

CreateOnly = Annotated[str, compared(Compare.CREATE_ONLY)]


class Requirements(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What is asked of the whole server, which no database of its own can change; held against `Offerings`."""

    high_availability: bool = False
    backup_retention_days: int | None = None
    backup_start_time: str | None = None
    storage_gib: int | None = msgspec.field(name="storageGiB", default=None)
    public_access: bool = False
    allowed_cidrs: tuple[str, ...] | None = msgspec.field(name="allowedCIDRs", default=None)
    restore_from: str | None = None


class PostgresDatabaseParameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`spec.forProvider`; what is None is not managed."""

    database_name: Annotated[str, compared(Compare.CREATE_ONLY), REQUIRED] = ""
    username: Annotated[str, compared(Compare.CREATE_ONLY), REQUIRED] = ""
    version: CreateOnly | None = None
    connection_limit: int | None = None
    extensions: Annotated[tuple[str, ...], compared(Compare.CONTAINS)] | None = None
    parameters: Annotated[dict[str, str], compared(Compare.WHOLE_MAP)] | None = None
    encoding: CreateOnly | None = None
    lc_collate: CreateOnly | None = None
    lc_ctype: CreateOnly | None = None
    requirements: Annotated[Requirements, compared(Compare.NEVER)] | None = None


class PostgresDatabaseSpec(DatabaseEnvelope, frozen=True, rename="camel", kw_only=True):
    """`spec` of a PostgresDatabase."""

    for_provider: PostgresDatabaseParameters


class Offerings(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What the platform team says of the server; what it does not say is not promised to anybody."""

    high_availability: bool = False
    backup_retention_days: int | None = None
    backup_start_time: str | None = None
    storage_gib: int | None = msgspec.field(name="storageGiB", default=None)
    public_access: bool = False
    allowed_cidrs: tuple[str, ...] = msgspec.field(name="allowedCIDRs", default=())


class ProviderConfigSpec(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`spec` of onprem's ProviderConfig."""

    host: str
    port: int = 5432
    database: str = "fairlead"
    admin_secret_ref: SecretReference
    ca_secret_ref: CaReference | None = None
    ca_bundle: str | None = None
    allowed_namespaces: AllowedNamespaces = AllowedNamespaces()
    limits: Limits = Limits()
    login_check: Literal["Auto", "Required", "Off"] = "Auto"
    allow_adoption: bool = False
    allow_superuser: bool = False
    extensions: tuple[str, ...] = ()
    template_database: str | None = None
    offerings: Offerings = msgspec.field(name="offers", default=Offerings())
