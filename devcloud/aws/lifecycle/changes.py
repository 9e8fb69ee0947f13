"""What ModifyDBInstance does: at once, soon, or in the queue that the maintenance window or ApplyImmediately empties.

After "Settings for DB instances" of the RDS User Guide and ModifyDBInstance of the API Reference, whose reply still
says `available` and shows the former values. Pure.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import msgspec

from devcloud.aws.lifecycle.master_password import RESET_S, reset
from devcloud.aws.lifecycle.pending import port_of
from devcloud.aws.lifecycle.steps import Addressed, Became, Flush, Record, Step
from devcloud.aws.state import windows
from devcloud.aws.state.model import (
    NOTHING_PENDING,
    Instance,
    LogExports,
    OptionStatus,
    ParameterStatus,
    Pending,
    SecurityGroup,
    SubnetGroup,
)
from devcloud.aws.state.requests import InstanceRequest
from devcloud.simulator.work import MoveTo

_LEAD_S = 10.0
# Names that the queue has in common with the request.
_QUEUED = (
    "db_instance_class",
    "allocated_storage",
    "multi_az",
    "engine_version",
    "license_model",
    "iops",
    "storage_throughput",
    "storage_type",
    "ca_certificate_identifier",
    "dedicated_log_volume",
)
# What describes an instance and touches no server: true in the reply.
_AT_ONCE = (
    "preferred_backup_window",
    "preferred_maintenance_window",
    "auto_minor_version_upgrade",
    "copy_tags_to_snapshot",
    "deletion_protection",
    "monitoring_interval",
    "monitoring_role_arn",
    "performance_insights_kms_key_id",
    "performance_insights_retention_period",
    "database_insights_mode",
    "network_type",
)


def modified(
    record: Record,
    request: InstanceRequest,
    *,
    groups: tuple[str, ...] | None = None,
    subnet_group: SubnetGroup | None = None,
    password_after_s: float = RESET_S,
) -> tuple[Record, Instance]:
    """Return the record after a request that was found valid, and what the reply shows.

    Args:
        record: The instance.
        request: The request, with a version and a size that are offered.
        groups: The security groups asked for.
        subnet_group: The subnet group asked for.
        password_after_s: When a new master password takes the former one's place (`master_password.reset`).
    """
    queued = _queued(record.shown, request)
    shown = msgspec.structs.replace(
        record.shown,
        pending_modified_values=msgspec.structs.replace(record.shown.pending_modified_values, **queued),
        **_at_once(record.shown, request),
    )
    agenda = tuple(_soon(record.shown, request, groups, password_after_s))
    if request.apply_immediately and _waits(record.shown, shown.pending_modified_values, request):
        agenda = (*agenda, Step(status=None, seconds=_LEAD_S, ends=(Flush(),)))
    shown = _announced(shown, request, groups)
    changed = msgspec.structs.replace(
        record,
        shown=shown,
        agenda=(*record.agenda, *agenda),
        next_subnet_group=subnet_group or record.next_subnet_group,
    )
    return changed, shown


def rescheduled(record: Record, request: InstanceRequest, now: datetime) -> Record:
    """Return the record with windows that are not yet over where the request moves them.

    A new maintenance window that is open now applies what waits at once; one that was open earlier does not.
    """
    window = request.preferred_maintenance_window
    if window is not None:
        began = windows.last_maintenance_start(window, now)
        seen = began - timedelta(seconds=1) if windows.is_open(window, now) else now
        record = msgspec.structs.replace(record, window_seen=seen)
    return record if request.preferred_backup_window is None else msgspec.structs.replace(record, backup_seen=now)


def _queued(shown: Instance, request: InstanceRequest) -> dict[str, object]:
    queued: dict[str, object] = {name: getattr(request, name) for name in _QUEUED}
    queued["iam_database_authentication_enabled"] = request.enable_iam_database_authentication
    queued["db_instance_identifier"] = request.new_db_instance_identifier
    queued["backup_retention_period"] = request.backup_retention_period
    present: dict[str, object] = {name: getattr(shown, name) for name in queued}
    result = {name: None if value == present[name] else value for name, value in queued.items() if value is not None}
    if request.db_subnet_group_name is not None:
        same = request.db_subnet_group_name == shown.db_subnet_group.db_subnet_group_name
        result["db_subnet_group_name"] = None if same else request.db_subnet_group_name
    return result


def _at_once(shown: Instance, request: InstanceRequest) -> dict[str, object]:
    result: dict[str, object] = {name: value for name in _AT_ONCE if (value := getattr(request, name)) is not None}
    if request.enable_performance_insights is not None:
        result["performance_insights_enabled"] = request.enable_performance_insights
    if request.max_allocated_storage is not None:
        # The present size as the most means no autoscaling ("Turning off storage autoscaling").
        gib = request.allocated_storage or shown.allocated_storage
        result["max_allocated_storage"] = (
            None if request.max_allocated_storage == gib else request.max_allocated_storage
        )
    if request.preferred_maintenance_window is not None:
        result["preferred_maintenance_window"] = request.preferred_maintenance_window.lower()
    return result


def _waits(present: Instance, pending: Pending, request: InstanceRequest) -> bool:
    """Return whether the queue holds more than what is under way by itself."""
    own: dict[str, object] = {"master_user_password": None, "port": None, "pending_cloudwatch_logs_exports": None}
    if _retention_is_online(present, request.backup_retention_period):
        own["backup_retention_period"] = None
    return msgspec.structs.replace(pending, **own) != NOTHING_PENDING


def _retention_is_online(present: Instance, days: int | None) -> bool:
    """From one positive number to another it is applied as soon as possible; to and from 0 it waits for the window."""
    return bool(days) and bool(present.backup_retention_period) and days != present.backup_retention_period


def _announced(shown: Instance, request: InstanceRequest, groups: tuple[str, ...] | None) -> Instance:
    """Return what the instance shows while changes are on their way that need no queue."""
    pending = shown.pending_modified_values
    if request.master_user_password is not None:
        pending = msgspec.structs.replace(pending, master_user_password="****")  # noqa: S106 - what RDS shows
    if request.db_port_number not in {None, port_of(shown)}:
        pending = msgspec.structs.replace(pending, port=request.db_port_number)
    exports = request.cloudwatch_logs_export_configuration
    if exports is not None:
        pending = msgspec.structs.replace(pending, pending_cloudwatch_logs_exports=_exports(exports))
    changed: dict[str, object] = {"pending_modified_values": pending}
    if groups is not None and groups != tuple(group.vpc_security_group_id for group in shown.vpc_security_groups):
        changed["vpc_security_groups"] = _joining(shown, groups)
    if request.db_parameter_group_name not in {None, shown.db_parameter_groups[0].db_parameter_group_name}:
        joined = ParameterStatus(
            db_parameter_group_name=request.db_parameter_group_name or "", parameter_apply_status="applying"
        )
        changed["db_parameter_groups"] = (joined,)
    return msgspec.structs.replace(shown, **changed)


def _joining(shown: Instance, groups: tuple[str, ...]) -> tuple[SecurityGroup, ...]:
    present = {group.vpc_security_group_id for group in shown.vpc_security_groups}
    joined = [
        SecurityGroup(vpc_security_group_id=group, status="active" if group in present else "adding")
        for group in groups
    ]
    left = [SecurityGroup(vpc_security_group_id=name, status="removing") for name in sorted(present - set(groups))]
    return (*joined, *left)


def _exports(content: Mapping[str, tuple[str, ...]]) -> LogExports:
    return LogExports(
        log_types_to_enable=tuple(content.get("EnableLogTypes", ())),
        log_types_to_disable=tuple(content.get("DisableLogTypes", ())),
    )


def _soon(
    shown: Instance, request: InstanceRequest, groups: tuple[str, ...] | None, password_after_s: float
) -> Iterator[Step]:
    """Return the steps of what is applied as soon as possible, whatever ApplyImmediately says."""
    if request.master_user_password is not None:
        yield from reset(request.master_user_password, after_s=password_after_s, secret=shown.master_user_secret)
    if _retention_is_online(shown, request.backup_retention_period):
        name = "backup_retention_period"
        became = Became(shown={name: request.backup_retention_period}, clears=(name,))
        yield Step(status=None, seconds=15, ends=(became,))
    if request.db_port_number not in {None, port_of(shown)}:
        yield _port_change(shown, request.db_port_number or 0)
    if request.publicly_accessible not in {None, shown.publicly_accessible}:
        became = Became(shown={"publicly_accessible": request.publicly_accessible})
        yield _lead()
        yield Step(status="modifying", seconds=30, ends=(became,))
    if groups is not None:
        active = tuple(SecurityGroup(vpc_security_group_id=name) for name in groups)
        yield Step(status=None, seconds=15, ends=(Became(shown={"vpc_security_groups": active}),))
    group = request.db_parameter_group_name
    if group not in {None, shown.db_parameter_groups[0].db_parameter_group_name}:
        # A newly associated group waits for a reboot that RDS never does by itself.
        joined = ParameterStatus(db_parameter_group_name=group or "", parameter_apply_status="pending-reboot")
        yield Step(status=None, seconds=20, ends=(Became(shown={"db_parameter_groups": (joined,)}),), ended=(11,))
    exports = request.cloudwatch_logs_export_configuration
    if exports is not None:
        yield _export_change(shown, _exports(exports))
    if request.option_group_name is not None:
        membership = (OptionStatus(option_group_name=request.option_group_name),)
        yield Step(status=None, seconds=5, ends=(Became(shown={"option_group_memberships": membership}),))


def _lead() -> Step:
    return Step(status=None, seconds=_LEAD_S)


def _port_change(shown: Instance, port: int) -> Step:
    move = MoveTo(shown.db_instance_identifier, port)
    return Step(status="modifying", seconds=60, work=move, ends=(Became(clears=("port",)), Addressed()), ended=(6,))


def _export_change(shown: Instance, change: LogExports) -> Step:
    present = set(shown.enabled_cloudwatch_logs_exports or ())
    after = sorted((present | set(change.log_types_to_enable)) - set(change.log_types_to_disable))
    became = Became(
        shown={"enabled_cloudwatch_logs_exports": tuple(after) or None}, clears=("pending_cloudwatch_logs_exports",)
    )
    return Step(status="configuring-log-exports", seconds=20, ends=(became,))
