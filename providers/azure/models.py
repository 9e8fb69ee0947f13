"""Our kinds as Python sees them, in Azure's own words; a test compares each with its CRD, field by field.

What each field means and when it takes effect: the REST reference of Microsoft.DBforPostgreSQL/flexibleServers, API
version 2025-08-01. ARM nests its properties; here each stands by the name of its leaf.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from providers.external.diff import REQUIRED, Compare, compared
from providers.external.spec import DatabaseEnvelope, Envelope

CREATE_ONLY = compared(Compare.CREATE_ONLY)
NEVER = compared(Compare.NEVER)
Text: TypeAlias = Annotated[str, CREATE_ONLY]
Switch: TypeAlias = Literal["Enabled", "Disabled"]
DISABLED: Final = "Disabled"
Policy: TypeAlias = Literal["Orphan", "Delete"]
"""What a deletion may do: Azure keeps no backup that outlives its server, so there is no Snapshot."""


class Reference(msgspec.Struct, frozen=True, rename="camel"):
    """Another managed resource of the same namespace."""

    name: str


class FlexibleServerParameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`spec.forProvider`; what is None is not managed.

    Storage is in GiB, throughput in MiB/s, retention in days; the maintenance window is UTC, Sunday is day 0.
    """

    resource_group_name: Annotated[str, CREATE_ONLY, REQUIRED] = ""
    location: Annotated[str, CREATE_ONLY, REQUIRED] = ""
    administrator_login: Annotated[str, CREATE_ONLY, REQUIRED] = ""
    sku_name: Annotated[str, REQUIRED] = ""
    sku_tier: Annotated[Literal["Burstable", "GeneralPurpose", "MemoryOptimized"] | None, REQUIRED] = None
    version: str | None = None
    database_name: Annotated[str, NEVER] | None = None
    storage_size_gb: int | None = msgspec.field(default=None, name="storageSizeGB")
    auto_grow: Switch | None = None
    storage_tier: str | None = None
    storage_type: Annotated[Literal["Premium_LRS", "PremiumV2_LRS"], CREATE_ONLY] | None = None
    iops: int | None = None
    throughput: int | None = None
    backup_retention_days: int | None = None
    geo_redundant_backup: Annotated[Switch, CREATE_ONLY] | None = None
    high_availability_mode: Literal["Disabled", "SameZone", "ZoneRedundant"] | None = None
    standby_availability_zone: str | None = None
    availability_zone: Text | None = None
    public_network_access: Switch | None = None
    delegated_subnet_resource_id: Text | None = None
    private_dns_zone_arm_resource_id: Text | None = None
    password_auth: Switch | None = None
    active_directory_auth: Switch | None = None
    tenant_id: str | None = None
    primary_key_uri: str | None = msgspec.field(default=None, name="primaryKeyURI")
    primary_user_assigned_identity_id: str | None = None
    custom_window: Switch | None = None
    day_of_week: int | None = None
    start_hour: int | None = None
    start_minute: int | None = None
    create_mode: Annotated[Literal["Create", "PointInTimeRestore", "GeoRestore"], CREATE_ONLY] = "Create"
    source_server_resource_id: Text | None = None
    source_claim: Text | None = None
    point_in_time_utc: Text | None = msgspec.field(default=None, name="pointInTimeUTC")
    tags: Annotated[dict[str, str], compared(Compare.SUB_MAP)] | None = None


class FlexibleServerSpec(DatabaseEnvelope, frozen=True, rename="camel", kw_only=True):
    """`spec` of a FlexibleServer."""

    for_provider: FlexibleServerParameters
    deletion_policy: Policy = "Orphan"


class FlexibleServerDatabaseParameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`spec.forProvider` of a FlexibleServerDatabase; `server` is the external name of its server."""

    name: Annotated[str, CREATE_ONLY, REQUIRED] = ""
    server: Text | None = None
    server_ref: Annotated[Reference, NEVER] | None = None
    charset: Text | None = None
    collation: Text | None = None


class FlexibleServerDatabaseSpec(Envelope, frozen=True, rename="camel", kw_only=True):
    """`spec` of a FlexibleServerDatabase."""

    for_provider: FlexibleServerDatabaseParameters
    deletion_policy: Policy = "Orphan"


class FlexibleServerFirewallRuleParameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`spec.forProvider` of a FlexibleServerFirewallRule: an IPv4 network, or both ends of a range."""

    server: Text | None = None
    server_ref: Annotated[Reference, NEVER] | None = None
    cidr: str | None = None
    start_ip_address: str | None = None
    end_ip_address: str | None = None


class FlexibleServerFirewallRuleSpec(Envelope, frozen=True, rename="camel", kw_only=True):
    """`spec` of a FlexibleServerFirewallRule."""

    for_provider: FlexibleServerFirewallRuleParameters
    deletion_policy: Policy = "Orphan"


class FlexibleServerConfigurationParameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`spec.forProvider` of a FlexibleServerConfiguration: one parameter of a server, its value as Azure writes it."""

    name: Annotated[str, CREATE_ONLY, REQUIRED] = ""
    server: Text | None = None
    server_ref: Annotated[Reference, NEVER] | None = None
    value: Annotated[str, REQUIRED] = ""


class FlexibleServerConfigurationSpec(Envelope, frozen=True, rename="camel", kw_only=True):
    """`spec` of a FlexibleServerConfiguration."""

    for_provider: FlexibleServerConfigurationParameters
    deletion_policy: Policy = "Orphan"
