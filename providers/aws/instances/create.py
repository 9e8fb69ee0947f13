"""The parameters of the calls that make an instance: from nothing, from a snapshot, from a point in time. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from providers.aws.models import PointInTime, RDSInstanceParameters
from providers.aws.tag_lists import tags_of
from providers.external.client import Target
from providers.external.credential import Credential

# What CreateDBInstance and both restores take alike, by the model's names.
_COMMON = {
    "db_instance_class": "DBInstanceClass",
    "engine": "Engine",
    "storage_type": "StorageType",
    "iops": "Iops",
    "storage_throughput": "StorageThroughput",
    "port": "Port",
    "multi_az": "MultiAZ",
    "availability_zone": "AvailabilityZone",
    "db_subnet_group_name": "DBSubnetGroupName",
    "vpc_security_group_ids": "VpcSecurityGroupIds",
    "publicly_accessible": "PubliclyAccessible",
    "network_type": "NetworkType",
    "db_parameter_group_name": "DBParameterGroupName",
    "option_group_name": "OptionGroupName",
    "auto_minor_version_upgrade": "AutoMinorVersionUpgrade",
    "ca_certificate_identifier": "CACertificateIdentifier",
    "enable_iam_database_authentication": "EnableIAMDatabaseAuthentication",
    "enable_cloudwatch_logs_exports": "EnableCloudwatchLogsExports",
    "copy_tags_to_snapshot": "CopyTagsToSnapshot",
    "deletion_protection": "DeletionProtection",
}
_NEW = _COMMON | {
    "allocated_storage": "AllocatedStorage",
    "max_allocated_storage": "MaxAllocatedStorage",
    "engine_version": "EngineVersion",
    "storage_encrypted": "StorageEncrypted",
    "kms_key_id": "KmsKeyId",
    "db_name": "DBName",
    "master_username": "MasterUsername",
    "backup_retention_period": "BackupRetentionPeriod",
    "preferred_backup_window": "PreferredBackupWindow",
    "preferred_maintenance_window": "PreferredMaintenanceWindow",
    "enable_performance_insights": "EnablePerformanceInsights",
    "performance_insights_kms_key_id": "PerformanceInsightsKMSKeyId",
    "performance_insights_retention_period": "PerformanceInsightsRetentionPeriod",
    "database_insights_mode": "DatabaseInsightsMode",
    "monitoring_interval": "MonitoringInterval",
    "monitoring_role_arn": "MonitoringRoleArn",
}


def _set_fields(spec: RDSInstanceParameters, names: dict[str, str]) -> dict[str, Any]:
    fields = {theirs: getattr(spec, ours) for ours, theirs in names.items()}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in fields.items() if value is not None
    }


def restored(spec: RDSInstanceParameters) -> bool:
    """Return whether the instance begins with another's data, and with that one's password."""
    return spec.restore_from is not None


def with_data(target: Target[RDSInstanceParameters]) -> bool:
    """Return whether the instance begins with data: another's, or its own from before it was lost."""
    return restored(target.spec) or bool(target.restore)


def missing_database(target: Target[RDSInstanceParameters], database: str) -> str:
    """Return the message for a database that does not exist: one that the source of a restore did not have."""
    if not restored(target.spec):
        return ""
    return (
        f"instance {target.name} has no database {database}: a restored one has those of its source; make it anew"
        " with the name of one of them (in a claim: databaseName)"
    )


def call_for(target: Target[RDSInstanceParameters], credential: Credential) -> tuple[str, dict[str, Any]]:
    """Return the operation and the parameters that make the instance, its owner's tags among them."""
    spec = target.spec
    identified: dict[str, Any] = {"DBInstanceIdentifier": target.name, "Tags": tags_of(target.owner, spec.tags)}
    if spec.copy_tags_to_snapshot is None:
        # A snapshot without its owner's tags can be restored by nobody whom the platform did not name.
        identified["CopyTagsToSnapshot"] = True
    source = spec.restore_from
    if source is None:
        login = {"MasterUserPassword": credential.password}
        return "create_db_instance", {**_set_fields(spec, _NEW), **identified, **login}
    if source.db_snapshot_identifier is not None:
        snapshot = {"DBSnapshotIdentifier": source.db_snapshot_identifier}
        return "restore_db_instance_from_db_snapshot", {**_set_fields(spec, _COMMON), **identified, **snapshot}
    moment = _moment(source.point_in_time or PointInTime())
    identified["TargetDBInstanceIdentifier"] = identified.pop("DBInstanceIdentifier")
    return "restore_db_instance_to_point_in_time", {**_set_fields(spec, _COMMON), **identified, **moment}


def _moment(source: PointInTime) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    if source.source_db_instance_identifier is not None:
        parameters["SourceDBInstanceIdentifier"] = source.source_db_instance_identifier
    if source.source_dbi_resource_id is not None:
        parameters["SourceDbiResourceId"] = source.source_dbi_resource_id
    if source.restore_time is None:
        return {**parameters, "UseLatestRestorableTime": True}
    return {**parameters, "RestoreTime": datetime.fromisoformat(source.restore_time)}
