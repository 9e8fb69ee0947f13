"""Our kinds as Python sees them, in RDS's own words; a test compares each with its CRD, field by field.

What each field means and when it takes effect: CreateDBInstance and ModifyDBInstance of the RDS API, 2014-10-31.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from providers.external.diff import REQUIRED, Compare, compared
from providers.external.spec import DatabaseEnvelope, Envelope

DESCRIPTION = "made by Fairlead"
"""RDS wants a description of every group; this one stands for none."""

Tags = Annotated[dict[str, str], compared(Compare.SUB_MAP)]

CREATE_ONLY = compared(Compare.CREATE_ONLY)
NEVER = compared(Compare.NEVER)
Text: TypeAlias = Annotated[str, CREATE_ONLY]
Members: TypeAlias = Annotated[tuple[str, ...], compared(Compare.WHOLE_SET)]


class Reference(msgspec.Struct, frozen=True, rename="camel"):
    """Another managed resource of the same namespace."""

    name: str


class PointInTime(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An instant of another instance's life; `restore_time` None is the latest restorable one.

    The instance is named in one of three ways; `source_claim` is a claim of the same namespace, or of what it left.
    """

    source_db_instance_identifier: str | None = msgspec.field(default=None, name="sourceDBInstanceIdentifier")
    source_dbi_resource_id: str | None = None
    source_claim: str | None = None
    restore_time: str | None = None


class RestoreFrom(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What a new instance starts with instead of nothing; exactly one is given."""

    db_snapshot_identifier: str | None = msgspec.field(default=None, name="dbSnapshotIdentifier")
    point_in_time: PointInTime | None = None


class RDSInstanceParameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`spec.forProvider`; what is None is not managed.

    Storage is in GiB, throughput in MiB/s, intervals in seconds, retention in days; windows are UTC.
    """

    db_instance_class: Annotated[str, REQUIRED] = ""
    allocated_storage: Annotated[int, REQUIRED] = 0
    master_username: Annotated[str, CREATE_ONLY, REQUIRED] = ""
    engine: Annotated[Literal["postgres"], CREATE_ONLY] = "postgres"
    engine_version: str | None = None
    max_allocated_storage: int | None = None
    storage_type: str | None = None
    iops: int | None = None
    storage_throughput: int | None = None
    storage_encrypted: Annotated[bool, CREATE_ONLY] | None = None
    kms_key_id: Text | None = None
    db_name: Text | None = None
    port: int | None = None
    multi_az: bool | None = msgspec.field(default=None, name="multiAZ")
    availability_zone: Text | None = None
    db_subnet_group_name: str | None = None
    db_subnet_group_name_ref: Annotated[Reference, NEVER] | None = None
    vpc_security_group_ids: Members | None = None
    publicly_accessible: bool | None = None
    network_type: str | None = None
    db_parameter_group_name: str | None = None
    db_parameter_group_name_ref: Annotated[Reference, NEVER] | None = None
    option_group_name: str | None = None
    backup_retention_period: int | None = None
    preferred_backup_window: str | None = None
    preferred_maintenance_window: str | None = None
    auto_minor_version_upgrade: bool | None = None
    allow_major_version_upgrade: Annotated[bool, NEVER] = False
    ca_certificate_identifier: str | None = msgspec.field(default=None, name="caCertificateIdentifier")
    enable_iam_database_authentication: bool | None = msgspec.field(
        default=None, name="enableIAMDatabaseAuthentication"
    )
    enable_cloudwatch_logs_exports: Members | None = None
    enable_performance_insights: bool | None = None
    performance_insights_kms_key_id: Text | None = msgspec.field(default=None, name="performanceInsightsKMSKeyId")
    performance_insights_retention_period: int | None = None
    database_insights_mode: str | None = None
    monitoring_interval: int | None = None
    monitoring_role_arn: str | None = None
    copy_tags_to_snapshot: bool | None = None
    deletion_protection: bool | None = None
    final_db_snapshot_identifier_prefix: Annotated[str, NEVER] | None = msgspec.field(
        default=None, name="finalDBSnapshotIdentifierPrefix"
    )
    delete_automated_backups: Annotated[bool, NEVER] = False
    restore_from: Annotated[RestoreFrom, CREATE_ONLY] | None = None
    tags: Annotated[dict[str, str], compared(Compare.SUB_MAP)] | None = None


class RDSInstanceSpec(DatabaseEnvelope, frozen=True, rename="camel", kw_only=True):
    """`spec` of an RDSInstance."""

    for_provider: RDSInstanceParameters


class DBSubnetGroupParameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`spec.forProvider` of a DBSubnetGroup (CreateDBSubnetGroup); what is None is not managed."""

    db_subnet_group_description: str = DESCRIPTION
    subnet_ids: Annotated[tuple[str, ...], compared(Compare.WHOLE_SET), REQUIRED] = ()
    tags: Tags | None = None


class DBSubnetGroupSpec(Envelope, frozen=True, rename="camel", kw_only=True):
    """`spec` of a DBSubnetGroup."""

    for_provider: DBSubnetGroupParameters


class DBParameterGroupParameters(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`spec.forProvider` of a DBParameterGroup (CreateDBParameterGroup); what is None is not managed."""

    db_parameter_group_family: Annotated[str, CREATE_ONLY, REQUIRED] = ""
    description: Annotated[str, compared(Compare.CREATE_ONLY)] = DESCRIPTION
    parameters: Annotated[dict[str, str], compared(Compare.WHOLE_MAP)] | None = None
    tags: Tags | None = None


class DBParameterGroupSpec(Envelope, frozen=True, rename="camel", kw_only=True):
    """`spec` of a DBParameterGroup."""

    for_provider: DBParameterGroupParameters
