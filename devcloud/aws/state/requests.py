"""What the calls ask that make or change an instance, by the service's own names."""

import msgspec

from devcloud.aws.state.model import Tag, Wire


class InstanceRequest(Wire, frozen=True, kw_only=True):
    """The parameters of the calls that make or change an instance; None was not given.

    What the service knows and this lacks is refused by name (`calls.converted`), never passed over.
    """

    db_instance_identifier: str = ""
    db_instance_class: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    allocated_storage: int | None = None
    max_allocated_storage: int | None = None
    storage_type: str | None = None
    iops: int | None = None
    storage_throughput: int | None = None
    storage_encrypted: bool | None = None
    kms_key_id: str | None = None
    db_name: str | None = None
    master_username: str | None = None
    master_user_password: str | None = None
    manage_master_user_password: bool | None = None
    rotate_master_user_password: bool | None = None
    master_user_secret_kms_key_id: str | None = None
    port: int | None = None
    db_port_number: int | None = None
    multi_az: bool | None = None
    availability_zone: str | None = None
    db_subnet_group_name: str | None = None
    vpc_security_group_ids: tuple[str, ...] | None = None
    db_security_groups: tuple[str, ...] | None = None
    publicly_accessible: bool | None = None
    network_type: str | None = None
    db_parameter_group_name: str | None = None
    option_group_name: str | None = None
    backup_retention_period: int | None = None
    preferred_backup_window: str | None = None
    preferred_maintenance_window: str | None = None
    auto_minor_version_upgrade: bool | None = None
    allow_major_version_upgrade: bool | None = None
    apply_immediately: bool | None = None
    ca_certificate_identifier: str | None = None
    certificate_rotation_restart: bool | None = None
    enable_iam_database_authentication: bool | None = None
    enable_cloudwatch_logs_exports: tuple[str, ...] | None = None
    cloudwatch_logs_export_configuration: dict[str, tuple[str, ...]] | None = None
    enable_performance_insights: bool | None = None
    performance_insights_kms_key_id: str | None = msgspec.field(default=None, name="PerformanceInsightsKMSKeyId")
    performance_insights_retention_period: int | None = None
    database_insights_mode: str | None = None
    monitoring_interval: int | None = None
    monitoring_role_arn: str | None = None
    copy_tags_to_snapshot: bool | None = None
    deletion_protection: bool | None = None
    tags: tuple[Tag, ...] | None = None
    license_model: str | None = None
    new_db_instance_identifier: str | None = None
    dedicated_log_volume: bool | None = None
    engine_lifecycle_support: str | None = None
    backup_target: str | None = None
