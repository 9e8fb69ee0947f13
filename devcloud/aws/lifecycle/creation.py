"""How an instance begins: with what it shows at first, and through which steps it comes to life. Pure."""

from datetime import datetime, timedelta

import msgspec

from devcloud.aws.lifecycle.master_password import secret_at_creation, secret_of
from devcloud.aws.lifecycle.progress import daily_backup
from devcloud.aws.lifecycle.steps import Addressed, Became, End, Initializing, Record, Step
from devcloud.aws.state import catalog, windows
from devcloud.aws.state.model import (
    NOTHING_PENDING,
    CertificateDetails,
    Instance,
    OptionStatus,
    ParameterStatus,
    Pending,
    SecurityGroup,
    SubnetGroup,
)
from devcloud.aws.state.requests import InstanceRequest
from devcloud.simulator.work import Work

_CERTIFICATE_LIFE = timedelta(days=365)


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """What a request means where it is made: names found, defaults chosen.

    Attributes:
        identifier: In lower case.
        arn: The instance's.
        resource_id: Its DbiResourceId.
        version: A version that is offered.
        subnet_group: Where it is placed.
        security_groups: Whose members it has.
        kms_key_id: What encrypts it, None for nothing.
        password: The master password.
        now: When it is asked for.
    """

    identifier: str
    arn: str
    resource_id: str
    version: str
    subnet_group: SubnetGroup
    security_groups: tuple[str, ...]
    kms_key_id: str | None
    password: str
    now: datetime

    def __repr__(self) -> str:
        return f"Resolved({self.identifier})"

    @property
    def family(self) -> str:
        """The parameter group family, `postgres16`."""
        return f"{catalog.ENGINE}{catalog.major(self.version)}"


def instance_of(request: InstanceRequest, resolved: Resolved) -> Instance:
    """Return what CreateDBInstance replies: no endpoint, no zone, a pending password (recorded exchanges say so)."""
    kind = storage_type(request)
    gib = request.allocated_storage or 0
    iops, throughput = catalog.rates(kind, gib, iops=request.iops, throughput=request.storage_throughput)
    backup, maintenance = windows.far_windows(
        resolved.now, request.preferred_backup_window, request.preferred_maintenance_window
    )
    logs = tuple(sorted(request.enable_cloudwatch_logs_exports or ()))
    return Instance(
        db_instance_identifier=resolved.identifier,
        db_instance_class=request.db_instance_class or "",
        engine=catalog.ENGINE,
        db_instance_status="available",
        master_username=request.master_username or "",
        db_name=request.db_name,
        allocated_storage=gib,
        preferred_backup_window=backup,
        backup_retention_period=1 if request.backup_retention_period is None else request.backup_retention_period,
        vpc_security_groups=tuple(
            SecurityGroup(vpc_security_group_id=security_group) for security_group in resolved.security_groups
        ),
        db_parameter_groups=(
            ParameterStatus(db_parameter_group_name=request.db_parameter_group_name or f"default.{resolved.family}"),
        ),
        db_subnet_group=resolved.subnet_group,
        preferred_maintenance_window=maintenance.lower(),
        pending_modified_values=Pending(master_user_password="****"),  # noqa: S106 - what RDS shows
        multi_az=bool(request.multi_az),
        engine_version=resolved.version,
        auto_minor_version_upgrade=request.auto_minor_version_upgrade is not False,
        iops=iops,
        storage_throughput=throughput,
        option_group_memberships=(
            OptionStatus(option_group_name=request.option_group_name or catalog.option_group(resolved.version)),
        ),
        publicly_accessible=_is_public(request, resolved),
        storage_type=kind,
        storage_encrypted=resolved.kms_key_id is not None,
        kms_key_id=resolved.kms_key_id,
        dbi_resource_id=resolved.resource_id,
        ca_certificate_identifier=request.ca_certificate_identifier or catalog.DEFAULT_CERTIFICATE,
        copy_tags_to_snapshot=bool(request.copy_tags_to_snapshot),
        monitoring_interval=request.monitoring_interval or 0,
        monitoring_role_arn=request.monitoring_role_arn,
        db_instance_arn=resolved.arn,
        iam_database_authentication_enabled=bool(request.enable_iam_database_authentication),
        database_insights_mode=request.database_insights_mode or "standard",
        performance_insights_enabled=bool(request.enable_performance_insights),
        performance_insights_kms_key_id=request.performance_insights_kms_key_id,
        performance_insights_retention_period=_insights_retention_days(request),
        enabled_cloudwatch_logs_exports=logs or None,
        deletion_protection=bool(request.deletion_protection),
        max_allocated_storage=request.max_allocated_storage,
        tag_list=request.tags or (),
        network_type=request.network_type or "IPV4",
        master_user_secret=secret_of(request, resolved.arn),
        dedicated_log_volume=bool(request.dedicated_log_volume),
        engine_lifecycle_support=request.engine_lifecycle_support or "open-source-rds-extended-support",
    )


def _is_public(request: InstanceRequest, resolved: Resolved) -> bool:
    """Return whether it has a public address (the API: true by default only in the subnet group `default`)."""
    if request.publicly_accessible is None:
        return resolved.subnet_group.db_subnet_group_name == "default"
    return request.publicly_accessible


def _insights_retention_days(request: InstanceRequest) -> int | None:
    return (request.performance_insights_retention_period or 7) if request.enable_performance_insights else None


def storage_type(request: InstanceRequest) -> str:
    """Return the storage type asked for (CreateDBInstance: `io1` when Iops is given, otherwise `gp3`)."""
    return request.storage_type or ("io1" if request.iops is not None else "gp3")


def record_of(request: InstanceRequest, resolved: Resolved, work: Work, *, events: tuple[int, ...] = (5,)) -> Record:
    """Return a new instance's record with its steps: `creating`, `backing-up`, `available`.

    It shows its zone before its endpoint, and that of its standby with the endpoint (cloud-custodian's recording
    `test_rds_minor_upgrade_do`).

    Args:
        request: The request.
        resolved: What it means.
        work: Where its data come from.
        events: The RDS-EVENTs at its creation.
    """
    shown = instance_of(request, resolved)
    zones = sorted(subnet.subnet_availability_zone.name for subnet in resolved.subnet_group.subnets)
    details = CertificateDetails(
        ca_identifier=shown.ca_certificate_identifier, valid_till=resolved.now + _CERTIFICATE_LIFE
    )
    placed = Became(shown={"availability_zone": request.availability_zone or zones[0]})
    ready: dict[str, object] = {
        "secondary_availability_zone": zones[-1] if shown.multi_az else None,
        "certificate_details": details,
        "master_user_secret": secret_at_creation(shown.master_user_secret),
    }
    steps = [
        # A snapshot may be deleted as soon as its restore was taken.
        Step(status="creating", seconds=0, work=work),
        Step(status="creating", seconds=60, ends=(placed,)),
        Step(status="creating", seconds=180, ends=(Addressed(created=True), Became(shown=ready)), ended=events),
    ]
    record = Record(
        shown=shown,
        password=resolved.password,
        port=request.port or 5432,
        window_seen=resolved.now,
        backup_seen=resolved.now,
    )
    if shown.backup_retention_period:
        steps.append(daily_backup(record, resolved.now))
    return msgspec.structs.replace(record, agenda=tuple(steps))


def restored(record: Record, *, initialization_s: float) -> Record:
    """Return a new record as one of an instance with another's data.

    Nothing is pending, since the password is the source's; the option group is `pending-apply` while the instance is
    created (cloud-custodian's recording `test_rds_restore`).

    Args:
        record: The record that `record_of` made.
        initialization_s: How long it is in `storage-initialization` from its creation on, 0 for never.
    """
    joined = record.shown.option_group_memberships
    waiting = tuple(msgspec.structs.replace(group, status="pending-apply") for group in joined)
    shown = msgspec.structs.replace(
        record.shown, pending_modified_values=NOTHING_PENDING, option_group_memberships=waiting
    )
    ends: tuple[End, ...] = (Became(shown={"option_group_memberships": joined}),)
    if initialization_s:
        ends = (*ends, Initializing(initialization_s))
    agenda = tuple(
        msgspec.structs.replace(step, ends=(*step.ends, *ends)) if Addressed(created=True) in step.ends else step
        for step in record.agenda
    )
    return msgspec.structs.replace(record, shown=shown, agenda=agenda)
