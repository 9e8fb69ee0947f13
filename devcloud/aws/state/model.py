"""What RDS keeps, as frozen data whose fields carry the service's own names on the wire.

Names and meanings: RDS API Reference, "Data types". What the API does not show (passwords, what is under way) stands
in `Record`, beside the `Instance` that it does show.
"""

from datetime import datetime

import msgspec

_ACRONYMS = {"db": "DB", "az": "AZ", "ca": "CA", "iam": "IAM"}


def wire_name(name: str) -> str:
    """Return RDS's spelling of a field: `db_instance_class` is `DBInstanceClass`."""
    return "".join(_ACRONYMS.get(part, part.capitalize()) for part in name.split("_"))


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename=wire_name):
    """Data that goes over the wire; None is left out there."""


class Tag(Wire, frozen=True, kw_only=True):
    """A key and its value."""

    key: str
    value: str = ""


class Endpoint(Wire, frozen=True, kw_only=True):
    """Where to connect."""

    address: str
    port: int
    hosted_zone_id: str = "Z1DEVCLOUD0000"


class Zone(Wire, frozen=True, kw_only=True):
    """An Availability Zone."""

    name: str


class Subnet(Wire, frozen=True, kw_only=True):
    """A subnet of a DB subnet group."""

    subnet_identifier: str
    subnet_availability_zone: Zone
    subnet_outpost: dict[str, str] = {}
    subnet_status: str = "Active"


class SubnetGroup(Wire, frozen=True, kw_only=True):
    """A DB subnet group; `tags` is not part of the wire's shape."""

    db_subnet_group_name: str
    db_subnet_group_description: str
    vpc_id: str
    subnets: tuple[Subnet, ...]
    db_subnet_group_arn: str
    subnet_group_status: str = "Complete"
    supported_network_types: tuple[str, ...] = ("IPV4",)
    tags: tuple[Tag, ...] = msgspec.field(default=(), name="Tags")


class SecurityGroup(Wire, frozen=True, kw_only=True):
    """A VPC security group of an instance."""

    vpc_security_group_id: str
    status: str = "active"


class ParameterStatus(Wire, frozen=True, kw_only=True):
    """An instance's membership in a parameter group: `in-sync`, `applying`, `pending-reboot`."""

    db_parameter_group_name: str
    parameter_apply_status: str = "in-sync"


class OptionStatus(Wire, frozen=True, kw_only=True):
    """An instance's membership in an option group."""

    option_group_name: str
    status: str = "in-sync"


class CertificateDetails(Wire, frozen=True, kw_only=True):
    """The instance's server certificate."""

    ca_identifier: str = msgspec.field(name="CAIdentifier")
    valid_till: datetime


class MasterUserSecret(Wire, frozen=True, kw_only=True):
    """The secret in Secrets Manager that holds a managed password."""

    secret_arn: str
    secret_status: str
    kms_key_id: str


class LogExports(Wire, frozen=True, kw_only=True):
    """Log types whose export begins or ends."""

    log_types_to_enable: tuple[str, ...] = ()
    log_types_to_disable: tuple[str, ...] = ()


class Pending(Wire, frozen=True, kw_only=True):
    """PendingModifiedValues: what was asked for and is not yet so."""

    db_instance_class: str | None = None
    allocated_storage: int | None = None
    master_user_password: str | None = None
    port: int | None = None
    backup_retention_period: int | None = None
    multi_az: bool | None = None
    engine_version: str | None = None
    license_model: str | None = None
    iops: int | None = None
    storage_throughput: int | None = None
    db_instance_identifier: str | None = None
    storage_type: str | None = None
    ca_certificate_identifier: str | None = None
    db_subnet_group_name: str | None = None
    pending_cloudwatch_logs_exports: LogExports | None = None
    iam_database_authentication_enabled: bool | None = None
    dedicated_log_volume: bool | None = None


NOTHING_PENDING = Pending()


class Instance(Wire, frozen=True, kw_only=True):
    """A DB instance as DescribeDBInstances shows it."""

    db_instance_identifier: str
    db_instance_class: str
    engine: str
    db_instance_status: str
    master_username: str
    db_name: str | None = None
    endpoint: Endpoint | None = None
    allocated_storage: int
    instance_create_time: datetime | None = None
    preferred_backup_window: str
    backup_retention_period: int
    db_security_groups: tuple[str, ...] = ()
    vpc_security_groups: tuple[SecurityGroup, ...]
    db_parameter_groups: tuple[ParameterStatus, ...]
    availability_zone: str | None = None
    db_subnet_group: SubnetGroup
    preferred_maintenance_window: str
    pending_modified_values: Pending = NOTHING_PENDING
    latest_restorable_time: datetime | None = None
    multi_az: bool
    engine_version: str
    auto_minor_version_upgrade: bool
    read_replica_db_instance_identifiers: tuple[str, ...] = ()
    license_model: str = "postgresql-license"
    iops: int | None = None
    storage_throughput: int | None = None
    option_group_memberships: tuple[OptionStatus, ...]
    secondary_availability_zone: str | None = None
    publicly_accessible: bool
    storage_type: str
    db_instance_port: int = msgspec.field(default=0, name="DbInstancePort")
    storage_encrypted: bool
    kms_key_id: str | None = None
    dbi_resource_id: str
    ca_certificate_identifier: str
    domain_memberships: tuple[str, ...] = ()
    copy_tags_to_snapshot: bool
    monitoring_interval: int
    monitoring_role_arn: str | None = None
    enhanced_monitoring_resource_arn: str | None = None
    status_infos: tuple[str, ...] = ()
    db_instance_arn: str
    iam_database_authentication_enabled: bool
    database_insights_mode: str = "standard"
    performance_insights_enabled: bool
    performance_insights_kms_key_id: str | None = msgspec.field(default=None, name="PerformanceInsightsKMSKeyId")
    performance_insights_retention_period: int | None = None
    enabled_cloudwatch_logs_exports: tuple[str, ...] | None = None
    deletion_protection: bool
    associated_roles: tuple[str, ...] = ()
    max_allocated_storage: int | None = None
    tag_list: tuple[Tag, ...] = ()
    customer_owned_ip_enabled: bool = False
    network_type: str
    activity_stream_status: str = "stopped"
    backup_target: str = "region"
    automatic_restart_time: datetime | None = None
    certificate_details: CertificateDetails | None = None
    master_user_secret: MasterUserSecret | None = None
    dedicated_log_volume: bool = False
    is_storage_config_upgrade_available: bool = False
    engine_lifecycle_support: str


class SourceSettings(Wire, frozen=True, kw_only=True):
    """What a restored instance has from the source of its snapshot or backup that those do not show.

    The database's name and the windows are the source's in cloud-custodian's recording `test_rds_restore`; the class is
    its by default (RestoreDBInstanceFromDBSnapshot, DBInstanceClass).
    """

    db_name: str | None
    db_instance_class: str
    preferred_backup_window: str
    preferred_maintenance_window: str
    backup_retention_period: int


class Snapshot(Wire, frozen=True, kw_only=True):
    """A DB snapshot as DescribeDBSnapshots shows it; `source_settings` and `fails` are not part of the wire."""

    db_snapshot_identifier: str
    db_instance_identifier: str
    snapshot_create_time: datetime | None = None
    original_snapshot_create_time: datetime | None = None
    engine: str
    allocated_storage: int
    status: str
    port: int
    availability_zone: str | None = None
    vpc_id: str
    instance_create_time: datetime | None = None
    master_username: str
    engine_version: str
    license_model: str = "postgresql-license"
    snapshot_type: str
    iops: int | None = None
    storage_throughput: int | None = None
    option_group_name: str
    percent_progress: int = 0
    storage_type: str
    encrypted: bool
    kms_key_id: str | None = None
    db_snapshot_arn: str
    iam_database_authentication_enabled: bool
    dbi_resource_id: str
    processor_features: tuple[str, ...] = ()
    source_region: str | None = None
    source_db_snapshot_identifier: str | None = None
    tag_list: tuple[Tag, ...] = ()
    snapshot_target: str = "region"
    dedicated_log_volume: bool = False
    source_settings: SourceSettings | None = msgspec.field(default=None, name="SourceSettings")
    fails: bool = msgspec.field(default=False, name="Fails")


class RestoreWindow(Wire, frozen=True, kw_only=True):
    """From when to when a point in time can be restored."""

    earliest_time: datetime
    latest_time: datetime


class AutomatedBackup(Wire, frozen=True, kw_only=True):
    """An instance's automated backups; `retained` ones outlive it. `source_settings` is not part of the wire."""

    db_instance_arn: str
    dbi_resource_id: str
    region: str
    db_instance_identifier: str
    restore_window: RestoreWindow
    allocated_storage: int
    status: str
    port: int
    availability_zone: str | None = None
    vpc_id: str
    instance_create_time: datetime | None = None
    master_username: str
    engine: str
    engine_version: str
    license_model: str = "postgresql-license"
    option_group_name: str
    encrypted: bool
    storage_type: str
    kms_key_id: str | None = None
    iam_database_authentication_enabled: bool
    backup_retention_period: int
    preferred_backup_window: str
    db_instance_automated_backups_arn: str
    backup_target: str = "region"
    tag_list: tuple[Tag, ...] = ()
    source_settings: SourceSettings | None = msgspec.field(default=None, name="SourceSettings")


class ParameterGroup(Wire, frozen=True, kw_only=True):
    """A DB parameter group; `values` are those that a user set, with their apply method."""

    db_parameter_group_name: str
    db_parameter_group_family: str
    description: str
    db_parameter_group_arn: str
    values: dict[str, str] = msgspec.field(default_factory=dict, name="Values")
    methods: dict[str, str] = msgspec.field(default_factory=dict, name="Methods")
    tags: tuple[Tag, ...] = msgspec.field(default=(), name="Tags")


class Event(Wire, frozen=True, kw_only=True):
    """Something that happened. `EventID` is known from EventBridge; the API's DescribeEvents does not carry it."""

    source_identifier: str
    source_type: str
    message: str
    event_categories: tuple[str, ...]
    date: datetime
    source_arn: str
    event_id: str = msgspec.field(name="EventID")
