"""Our kinds as Python sees them, in Cloud SQL's own words; a test compares each with its CRD, field by field.

What each field means: the resources instances, databases and users of the Cloud SQL Admin API, v1. What stands there
below `settings` and deeper stands here by its own name, side by side.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from providers.external.diff import REQUIRED, Compare, compared
from providers.external.spec import DatabaseEnvelope, Envelope

CREATE_ONLY = compared(Compare.CREATE_ONLY)
NEVER = compared(Compare.NEVER)
Text: TypeAlias = Annotated[str, CREATE_ONLY]
Members: TypeAlias = Annotated[tuple[str, ...], compared(Compare.WHOLE_SET)]


class Reference(msgspec.Struct, frozen=True, rename="camel"):
    """Another managed resource of the same namespace."""

    name: str


class DenyMaintenancePeriod(msgspec.Struct, frozen=True, rename="camel"):
    """Days without maintenance, `yyyy-mm-dd` or each year `mm-dd`, from and to a time of day `HH:MM:SS` in UTC."""

    start_date: str
    end_date: str
    time: str = "00:00:00"

    def __str__(self) -> str:
        return f"{self.start_date} to {self.end_date} at {self.time}"


class Clone(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The state of an instance, or of that of a claim of this namespace, at a time; without one as it is now."""

    source_instance: str | None = None
    source_claim: str | None = None
    point_in_time: str | None = None


class RestoreFrom(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What a new instance starts with instead of nothing: a backup, `projects/<project>/backups/<id>`, or a clone."""

    backup: str | None = None
    clone: Clone | None = None


class CloudSQLInstanceParameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`spec.forProvider`; what is None is not managed.

    Storage is in GiB, retention in backups and days, times of day are UTC; maintenanceDay is 1 (Monday) to 7 (Sunday).
    """

    region: Annotated[str, CREATE_ONLY, REQUIRED] = ""
    database_version: Annotated[str, REQUIRED] = ""
    # Before the tier: a tier of another edition goes with its request.
    edition: Literal["ENTERPRISE", "ENTERPRISE_PLUS"] | None = None
    tier: Annotated[str, REQUIRED] = ""
    availability_type: Literal["ZONAL", "REGIONAL"] | None = None
    activation_policy: Literal["ALWAYS", "NEVER"] | None = None
    data_disk_type: Annotated[Literal["PD_SSD", "PD_HDD", "HYPERDISK_BALANCED"], CREATE_ONLY] | None = None
    data_disk_size_gb: int | None = None
    storage_auto_resize: bool | None = None
    storage_auto_resize_limit: int | None = None
    ipv4_enabled: bool | None = None
    authorized_networks: Members | None = None
    private_network: str | None = None
    allocated_ip_range: str | None = None
    enable_private_path_for_google_cloud_services: bool | None = None
    psc_enabled: Annotated[bool, CREATE_ONLY] | None = None
    psc_allowed_consumer_projects: Members | None = None
    ssl_mode: (
        Literal["ALLOW_UNENCRYPTED_AND_ENCRYPTED", "ENCRYPTED_ONLY", "TRUSTED_CLIENT_CERTIFICATE_REQUIRED"] | None
    ) = None
    connector_enforcement: Literal["NOT_REQUIRED", "REQUIRED"] | None = None
    database_flags: Annotated[dict[str, str], compared(Compare.WHOLE_MAP)] | None = None
    backup_enabled: bool | None = None
    backup_start_time: str | None = None
    backup_location: str | None = None
    retained_backups: int | None = None
    point_in_time_recovery_enabled: bool | None = None
    transaction_log_retention_days: int | None = None
    retain_backups_on_delete: bool | None = None
    final_backup_ttl_days: Annotated[int, NEVER] = 365
    zone: str | None = None
    secondary_zone: str | None = None
    maintenance_day: int | None = None
    maintenance_hour: int | None = None
    maintenance_track: Literal["canary", "stable", "week5"] | None = None
    maintenance_version: str | None = None
    deny_maintenance_period: DenyMaintenancePeriod | None = None
    query_insights_enabled: bool | None = None
    query_plans_per_minute: int | None = None
    query_string_length: int | None = None
    record_application_tags: bool | None = None
    record_client_address: bool | None = None
    data_cache_enabled: bool | None = None
    deletion_protection_enabled: bool | None = None
    collation: Text | None = None
    kms_key_name: Text | None = None
    restore_from: Annotated[RestoreFrom, CREATE_ONLY] | None = None
    user_labels: Annotated[dict[str, str], compared(Compare.SUB_MAP)] | None = None


class CloudSQLInstanceSpec(Envelope, frozen=True, rename="camel", kw_only=True):
    """`spec` of a CloudSQLInstance."""

    for_provider: CloudSQLInstanceParameters


class CloudSQLDatabaseParameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`spec.forProvider` of a CloudSQLDatabase (databases.insert); what is None is not managed."""

    instance: Text | None = None
    instance_ref: Annotated[Reference, NEVER] | None = None
    name: Annotated[str, CREATE_ONLY, REQUIRED] = ""
    charset: Text | None = None
    collation: Text | None = None


class CloudSQLDatabaseSpec(Envelope, frozen=True, rename="camel", kw_only=True):
    """`spec` of a CloudSQLDatabase."""

    for_provider: CloudSQLDatabaseParameters


class CloudSQLUserParameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`spec.forProvider` of a CloudSQLUser (users.insert).

    `database` is the one that the published connection names, `address_type` by which address of the instance.
    `logins`: one login, whose password changes at a rotation, or two that alternate. `from_backup`: a user of the name
    who came with the instance's backup is this one.
    """

    instance: Text | None = None
    instance_ref: Annotated[Reference, NEVER] | None = None
    name: Annotated[str, CREATE_ONLY, REQUIRED] = ""
    type: Annotated[
        Literal["BUILT_IN", "CLOUD_IAM_USER", "CLOUD_IAM_SERVICE_ACCOUNT", "CLOUD_IAM_GROUP"], CREATE_ONLY
    ] = "BUILT_IN"
    database: Annotated[str, NEVER] | None = None
    database_ref: Annotated[Reference, NEVER] | None = None
    address_type: Annotated[Literal["PRIMARY", "PRIVATE"], NEVER] | None = None
    logins: Annotated[Literal["Single", "Alternating"], NEVER] = "Single"
    from_backup: Annotated[bool, NEVER] = False
    database_roles: Annotated[tuple[str, ...], compared(Compare.CONTAINS)] | None = None


class CloudSQLUserSpec(DatabaseEnvelope, frozen=True, rename="camel", kw_only=True):
    """`spec` of a CloudSQLUser."""

    for_provider: CloudSQLUserParameters
